"""A detached answer among other things: the old turn, the session that ends, a second answer, the queue."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from clarifications import delivering
from clarifications.models import ClaimState, WaiterLease
from tasks import ending, hints
from tasks.models import SessionState
from tests.core.outcomes import retries
from tests.support.climbing import (
    PUBLIC_TURN,
    SKIP,
    Question,
    add_row,
    answers,
)
from tests.support.scripted import ScriptedRunner
from tests.support.threads import beside
from turns import attempting, background, publishing
from turns.models import DispatchState, Message, Turn


@pytest.mark.scenario("D14", "R1")
def test_an_answer_during_the_old_turn_pauses_it_and_follows_its_end(asked_: Question) -> None:
    stage, runner = asked_.stage, asked_.stage.runner
    WaiterLease.objects.all().delete()
    seen: list[tuple[str, int]] = []

    def end(frame: dict[str, Any]) -> None:
        seen.append((asked_.claims[0].state, stage.turns()))
        runner.cancelled(frame)

    runner.on_cancel = end
    assert asked_.respond().short == (200, True)
    assert seen == [("claimed", 1)]
    assert (len(runner.got("cancel")), stage.turns(), stage.dispatches()) == (1, 2, [DispatchState.PUBLISHED])
    assert Turn.objects.filter(session=stage.session).first().end_reason == "cancelled"  # type: ignore[union-attr]


@pytest.mark.scenario("D14", "R1", "K1")
def test_ready_of_the_old_turn_ends_it_as_well(asked_: Question) -> None:
    runner = asked_.stage.runner
    WaiterLease.objects.all().delete()
    runner.on_cancel = lambda frame: runner.say("ready", frame, stop_reason="end_turn")
    assert asked_.respond().short == (200, True)
    assert asked_.stage.turns() == 2


@pytest.mark.scenario("D14", "R5", "R1")
def test_a_turn_that_will_not_end_makes_it_end_as_before(asked_: Question, settings: Any) -> None:
    settings.KANDEV_DELIVERY_TIMEOUT_S = 2
    stage, runner = asked_.stage, asked_.stage.runner
    WaiterLease.objects.all().delete()
    runner.on_cancel = runner.ignore
    got = asked_.respond()
    assert (got.short, got.body["retryable"]) == ((503, "delivery_failed"), True)
    assert (asked_.statuses, stage.turns(), stage.turn.completed_at) == (["pending"], 1, None)
    assert asked_.respond().short == (503, "delivery_failed")
    assert len(runner.got("cancel")) == 1
    runner.cancelled(runner.got("cancel")[0])
    retries(asked_)


@pytest.mark.scenario("R7", "D3")
@pytest.mark.parametrize("when", ["before the attempt", "before the word"])
def test_an_answer_beaten_by_the_session_s_end_is_retired(
    detached_: Question, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    stage, runner = detached_.stage, detached_.stage.runner

    def end_first(then: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            ending.end_session(stage.session.pk, SessionState.CANCELLED)
            return then(*args)

        return call

    if when == "before the word":
        runner.on_dispatch = end_first(runner.reject)
    else:
        monkeypatch.setattr(attempting, "attempt", end_first(attempting.attempt))
    assert detached_.respond().short == (409, "not_active")
    assert detached_.statuses == ["answered"]
    assert detached_.claims[0].state == ClaimState.RETIRED
    again = detached_.respond()
    assert (again.short, again.body["delivery"]) == ((200, False), "undelivered")
    assert stage.turns() == 1
    assert detached_.late().short == (409, "session_unavailable")


@pytest.mark.scenario("R8")
def test_a_second_detached_answer_waits_and_then_is_told_to_try_again(
    detached_: Question, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.KANDEV_CLAIM_TIMEOUT_S = 0.4
    runner, other = detached_.stage.runner, _second(detached_)
    held, go = _hold(runner, runner.reject)
    first = beside(detached_.respond)
    assert held.wait(10)
    got = other.respond()
    assert got.short == (503, "temporarily_unavailable")
    assert other.statuses == ["pending"]
    go.set()
    assert first.result(10).short == (503, "delivery_failed")
    runner.on_dispatch = runner.accept
    assert other.respond().short == (200, True)


def _hold(runner: ScriptedRunner, then: Callable[[dict[str, Any]], object]) -> tuple[threading.Event, threading.Event]:
    """The runner is called, says so with the first event and answers after the second."""
    held, go = threading.Event(), threading.Event()

    def react(frame: dict[str, Any]) -> None:
        held.set()
        assert go.wait(10)
        then(frame)

    runner.on_dispatch = react
    return held, go


def _second(question: Question) -> Question:
    """Another detached question of the same turn."""
    row = add_row(question.stage.session, question.stage.turn.pk, {"agent_disconnected": True})
    return Question(question.stage, row.metadata["pending_id"])


@pytest.mark.scenario("R8")
def test_rejections_are_not_held_up_by_an_answer_under_way(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, held, go = _second(detached_), threading.Event(), threading.Event()
    resume = delivering._resume

    def slow(*args: Any) -> None:
        held.set()
        assert go.wait(10)
        resume(*args)

    monkeypatch.setattr(delivering, "_resume", slow)
    first = beside(detached_.respond)
    assert held.wait(10)
    assert other.respond(SKIP).short == (200, True)
    go.set()
    assert first.result(10).short == (200, True)


@pytest.mark.scenario("R8", "A2")
def test_a_second_answer_that_waited_hears_409_once_the_first_was_accepted(detached_: Question) -> None:
    other, runner = _second(detached_), detached_.stage.runner
    held, go = _hold(runner, runner.accept)
    first = beside(detached_.respond)
    assert held.wait(10)
    second = beside(other.respond)
    hints.send(f"session:{detached_.stage.session.pk}")
    go.set()
    assert first.result(10).short == (200, True)
    assert second.result(10).short == (409, "not_active")
    assert other.statuses == ["pending"]


@pytest.mark.scenario("D13", "E4")
def test_a_completion_that_overtakes_the_publication_is_told_after_the_start_and_shows_nothing_private(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = detached_.stage
    announce = publishing._announce

    def finished_first(dispatch_id: Any) -> bool:
        stage.ready()
        return announce(dispatch_id)

    monkeypatch.setattr(publishing, "_announce", finished_first)
    assert detached_.respond().short == (200, True)
    background.settle()
    told = [event for event in stage.events() if event.action.startswith("turn.")]
    mine = [event.action for event in told if event.payload["turn"]["id"] == stage.dispatched["turn_id"]]
    assert mine == ["turn.started", "turn.completed"]
    assert {frozenset(event.payload["turn"]) for event in told} == {frozenset(PUBLIC_TURN)}


@pytest.mark.scenario("D13")
def test_no_event_shows_a_private_field(detached_: Question) -> None:
    stage = detached_.stage
    stage.runner.on_dispatch = stage.runner.reject
    detached_.respond()
    retries(detached_)
    private = {"claim_id", "owner_instance", "source_turn_id", "claimed_message_ids", "asked_fingerprint"}
    private |= set(publishing.PRIVATE) - {"pending_id"}
    for event in stage.events():
        assert not private & set(_keys(event.payload)), event.payload


def _keys(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for item in value.values() for key in _keys(item))]
    return [key for item in value for key in _keys(item)] if isinstance(value, list) else []


@pytest.mark.scenario("R4", "L7")
def test_the_answer_goes_before_messages_that_were_queued_earlier(asked_: Question) -> None:
    stage = asked_.stage
    assert stage.send("later", "k1").body["admission"] == "queued"
    WaiterLease.objects.all().delete()
    assert asked_.respond().short == (200, True)
    assert asked_.pending_id in stage.runner.got("dispatch")[1]["prompt"]
    stage.ready()
    background.settle()
    assert [frame["prompt"] for frame in stage.runner.got("dispatch")][2:] == ["later"]


@pytest.mark.scenario("R4", "A2")
def test_after_a_failed_answer_the_queue_goes_on_and_a_retry_is_a_409(detached_: Question) -> None:
    stage, runner = detached_.stage, detached_.stage.runner

    def refuse_once(frame: dict[str, Any]) -> None:
        assert stage.send("meanwhile", "k1").body["admission"] == "queued"
        runner.on_dispatch = runner.accept
        runner.reject(frame)

    runner.on_dispatch = refuse_once
    assert detached_.respond().short == (503, "delivery_failed")
    background.settle()
    assert stage.dispatched["prompt"] == "meanwhile"
    assert detached_.respond().short == (409, "not_active")
    assert detached_.respond(answers()).short == (409, "not_active")
    assert Message.objects.filter(content="meanwhile", turn_id=stage.turn.pk).exists()
