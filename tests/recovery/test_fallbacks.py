"""Fallbacks, and what races the end of a turn: activity, a late `ready`, an answer beside a prompt (group K)."""

from typing import Any

import pytest
from django.utils import timezone

from clarifications import watching
from clarifications.models import Watchdog
from tasks import instances
from tests.recovery.crashing import killed_at, reborn, recover, sweep, time_passes
from tests.recovery.steady import prompted, runner_of
from tests.support.climbing import Question, answers
from tests.support.threads import beside
from tests.support.waiting import until
from turns import background, dispatching, incoming
from turns.models import Dispatch, DispatchKind, EndReason


@pytest.mark.scenario("K6")
def test_a_fallback_whose_process_died_before_its_dispatch_is_begun_again(asked_: Question) -> None:
    agent = asked_.waits(writes=False)
    assert asked_.respond(answers(text="first")).short == (200, True)
    agent.ended()
    time_passes()
    with killed_at("dispatch.after_reserve"):
        assert watching._begin(asked_.claims[0].pk, timezone.now())
        runner_of(asked_.stage).pending()
        background.settle()
        watching.carry_out(asked_.claims[0].pk)
    reborn()
    recover(runner_of(asked_.stage))
    for _ in range(4):
        time_passes()
        sweep()
    assert Watchdog.objects.get().state == "closed"
    assert prompted(asked_.stage, "first") == 1


def begun(asked: Question) -> Watchdog:
    """Silence is over and this process has begun the fallback, whose task is not there; the silent turn runs on."""
    runner = runner_of(asked.stage)
    runner.on_cancel = runner.ignore
    agent = asked.waits(writes=False)
    assert asked.respond(answers(text="first")).short == (200, True)
    agent.ended()
    time_passes()
    assert watching._begin(asked.claims[0].pk, timezone.now())
    row = Watchdog.objects.get()
    assert (row.state, row.owner) == ("fallback", instances.generation())
    return row


@pytest.mark.scenario("K6", "E9")
def test_a_fallback_of_a_dead_process_is_taken_over_at_once(asked_: Question) -> None:
    row = begun(asked_)
    watching.take_over()
    row.refresh_from_db()
    assert row.state == "fallback"
    reborn()
    recover(runner_of(asked_.stage))
    row.refresh_from_db()
    assert (row.state, row.due_at < timezone.now()) == ("armed", True)
    asked_.stage.says("cancelled")
    sweep()
    assert (Watchdog.objects.get().closed_because, prompted(asked_.stage, "first")) == ("fallback", 1)


@pytest.mark.scenario("E9")
def test_a_fallback_of_a_living_peer_is_left_to_it_however_late_it_is(asked_: Question) -> None:
    """The negative control: dead, the same row is taken over."""
    row = begun(asked_)
    peer = row.owner
    instances.register()
    time_passes()
    sweep()
    row.refresh_from_db()
    assert (row.state, row.owner) == ("fallback", peer)
    instances.end(peer)
    sweep()
    row.refresh_from_db()
    assert row.state == "armed"


@pytest.mark.scenario("E10", "K6")
@pytest.mark.parametrize("fenced", [True, False], ids=["taken over", "still its own"])
def test_a_frozen_process_that_wakes_finds_the_steps_of_its_fallback_refused(asked_: Question, fenced: bool) -> None:
    """It is frozen while it waits for the end of the silent turn. The negative control: not taken over, it goes on."""
    row = begun(asked_)
    waiting = beside(watching.carry_out, row.pk)
    if fenced:
        Watchdog.objects.update(owner=row.owner + 1)
    asked_.stage.says("cancelled")
    waiting.result(20)
    background.settle()
    row.refresh_from_db()
    assert prompted(asked_.stage, "first") == (0 if fenced else 1)
    assert row.state == ("fallback" if fenced else "closed")


@pytest.mark.scenario("E10", "K6")
def test_a_frozen_process_neither_begins_nor_attempts_a_fallback_that_another_one_has(asked_: Question) -> None:
    row = begun(asked_)
    asked_.stage.says("cancelled")
    Watchdog.objects.update(owner=row.owner + 1)
    watching.carry_out(row.pk)
    assert Watchdog.objects.get().state == "fallback"
    mine = Dispatch(kind=DispatchKind.FALLBACK, claim_id=row.pk, owner=row.owner)
    assert not watching.may_attempt(mine)
    watching.rearm(row.pk, row.owner, timezone.now())
    assert Watchdog.objects.get().state == "fallback"
    Watchdog.objects.update(owner=row.owner)
    assert watching.may_attempt(mine)
    watching.carry_out(row.pk)
    assert prompted(asked_.stage, "first") == 1


@pytest.mark.scenario("K4", "R19")
@pytest.mark.parametrize(("kind", "stops"), [("message", True), ("thinking", True), ("tool", True), ("status", False)])
def test_activity_stops_a_fallback_in_flight_and_its_own_cancel_does_not(
    asked_: Question, kind: str, stops: bool
) -> None:
    runner = runner_of(asked_.stage)
    runner.on_cancel = runner.ignore
    agent = asked_.waits()
    assert asked_.respond(answers(text="first")).short == (200, True)
    agent.ended()
    time_passes()
    watching.run_due()
    cancel = until(lambda: runner.got("cancel"), what="the silent turn is told to end")[-1]
    runner.talk(kind=kind)
    runner.cancelled(cancel)
    background.settle()
    assert prompted(asked_.stage, "first") == (0 if stops else 1)
    assert Watchdog.objects.get().closed_because == ("activity" if stops else "fallback")


@pytest.mark.scenario("R4", "R7")
def test_a_reserved_prompt_gives_way_to_an_answer_that_was_claimed_since(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = detached_.stage
    real, said = dispatching.carry_out, []

    def answered_first(*args: Any) -> dispatching.Carried:
        monkeypatch.undo()
        said.append(beside(detached_.respond, answers(text="first")))
        until(lambda: detached_.claims, what="the answer is claimed")
        return real(*args)

    monkeypatch.setattr(dispatching, "carry_out", answered_first)
    with pytest.raises(Exception, match="moved on"):
        stage.send("too early")
    assert said[0].result(20).short == (200, True)
    assert (prompted(stage, "first"), prompted(stage, "too early")) == (1, 0)


@pytest.mark.scenario("K1", "K2")
def test_a_ready_of_the_predecessor_never_ends_the_successor(detached_: Question) -> None:
    stage = detached_.stage
    first = stage.runner.got("dispatch")[0]
    assert detached_.respond().short == (200, True)
    stage.runner.say("ready", first)
    incoming.handle(stage.runner.runner_id, {**first, "type": "ready", "prompt_generation": None})
    assert stage.turn.completed_at is None
    stage.ready()
    assert stage.turn.completed_at is not None


@pytest.mark.scenario("K2")
def test_a_ready_without_a_generation_is_dropped_while_something_overlaps(asked_: Question) -> None:
    stage = asked_.stage
    frame = {**stage.dispatched, "type": "ready", "prompt_generation": None}
    with killed_at("respond.after_claim"):
        asked_.respond()
    incoming.handle(stage.runner.runner_id, frame)
    assert stage.turn.completed_at is None
    reborn()
    recover(runner_of(stage))
    stage.ready()
    background.settle()
    assert stage.turn.end_reason == EndReason.READY
    assert stage.send("next").body["admission"] == "sent"
