"""A new process finds what a dead one left (groups E, K and R): stopped half-way, then recovered, in this process."""

import datetime as dt
import sqlite3
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from clarifications import finalizing
from clarifications.models import ClaimState, WaiterLease
from kandev import recovery, server, sweeping
from tasks import ending, events, instances
from tasks.models import Instance, SessionState
from tests.recovery.crashing import commits_fail, killed_at, reborn, recover, sweep, time_passes
from tests.recovery.steady import prompted, runner_of
from tests.support.climbing import Question, Stage, add_row, add_turn, answers
from tests.support.threads import beside
from turns import background, publishing, runners, timers
from turns import recovering as dispatches
from turns.models import (
    Admission,
    Dispatch,
    DispatchState,
    EndReason,
    Message,
    Runner,
    Timer,
    TimerKind,
    Turn,
)


def dies_at(point: str, question: Question, text: str = "first") -> None:
    """The responder's process is gone at this point; another one has been started and has not recovered yet."""
    with killed_at(point):
        question.respond(answers(question.count, text=text))
    reborn()


@pytest.mark.scenario("E1", "D9")
def test_a_claim_without_a_hand_over_is_given_back_and_the_same_answer_is_taken_again(detached_: Question) -> None:
    dies_at("respond.after_claim", detached_)
    assert detached_.state == "delivery_claimed"
    recover()
    recover(runner_of(detached_.stage))
    assert detached_.statuses == ["pending"]
    assert detached_.respond(answers(text="first")).short == (200, True)
    assert prompted(detached_.stage, "first") == 1


@pytest.mark.scenario("E1", "E9", "C6")
def test_a_dead_peers_claim_is_left_to_the_agent_that_waits_for_it_here(asked_: Question) -> None:
    """Its look is due within a poll; a sweep that was faster would take away an answer that it can have."""
    dies_at("respond.after_claim", asked_)
    turn = asked_.stage.turn
    waits = {"session_id": asked_.stage.session.pk, "turn_id": turn.pk, "pending_id": asked_.pending_id}
    lease = WaiterLease.objects.create(kind="rest", owner=instances.generation(), created_at=timezone.now(), **waits)
    sweep()
    assert asked_.claims[0].state == ClaimState.CLAIMED
    lease.delete()
    agent = asked_.waits()
    assert agent.ended().code == "answered"
    sweep()
    assert (asked_.claims[0].state, asked_.statuses) == (ClaimState.FINALIZED, ["answered"])


@pytest.mark.scenario("E1", "R14")
@pytest.mark.parametrize("why", ["nobody takes it in time", "only the asking itself counts as waiting"])
def test_a_dead_peers_claim_that_nobody_takes_is_given_back(asked_: Question, why: str) -> None:
    dies_at("respond.after_claim", asked_)
    turn = asked_.stage.turn
    waits = {"session_id": asked_.stage.session.pk, "turn_id": turn.pk, "pending_id": asked_.pending_id}
    if why == "nobody takes it in time":
        WaiterLease.objects.create(kind="rest", owner=instances.generation(), created_at=timezone.now(), **waits)
        time_passes()
    else:
        assert WaiterLease.objects.filter(kind="request").update(owner=instances.generation()) == 1
    sweep()
    assert asked_.claims[0].state == ClaimState.RESTORED
    assert asked_.statuses == ["pending"]


@pytest.mark.scenario("E2", "C7")
def test_exactly_the_claimed_rows_come_back_with_the_reservation_gone(running_session: Stage) -> None:
    question = running_session.ask(2)
    first = question.rows[0]
    Message.objects.filter(pk=first.pk).update(metadata={**first.metadata, "status": "cancelled"})
    question.detach()
    turns = running_session.turns()
    dies_at("dispatch.after_reserve", question)
    assert running_session.turns() == turns + 1
    recover()
    assert question.statuses == ["cancelled", "pending"]
    assert running_session.turns() == turns
    assert prompted(running_session, "first") == 0


@pytest.mark.scenario("E3", "R13")
def test_an_attempt_keeps_its_successor_until_the_runner_says_what_it_did(detached_: Question) -> None:
    runner = detached_.stage.runner
    runner.stop()
    dies_at("dispatch.after_attempt", detached_)
    recover(runner_of(detached_.stage))
    assert detached_.statuses == ["answered"]
    assert detached_.stage.turn.dispatch_attempted
    assert [frame["type"] for frame in runner.take()] == ["dispatch", "revoke"]
    recover()
    assert runner.take() == []
    runner.revoked(runner.got("revoke")[0])
    background.settle()
    assert detached_.statuses == ["pending"]
    assert [claim.state for claim in detached_.claims] == [ClaimState.RESTORED]


@pytest.mark.scenario("E3", "R13")
def test_a_journal_that_lists_the_dispatch_settles_it_whoever_owned_it(detached_: Question) -> None:
    runner = detached_.stage.runner
    runner.stop()
    dies_at("dispatch.after_attempt", detached_)
    recover()
    dispatch = Dispatch.objects.get(claim_id=detached_.claims[0].pk)
    runner.connect({dispatch.pk: "completed"})
    background.settle()
    dispatch.refresh_from_db()
    assert dispatch.state == DispatchState.PUBLISHED
    assert [claim.state for claim in detached_.claims] == [ClaimState.FINALIZED]


@pytest.mark.scenario("E3", "R13")
def test_an_absent_id_proves_nothing_and_is_asked_for(detached_: Question) -> None:
    runner = detached_.stage.runner
    runner.stop()
    dies_at("dispatch.after_attempt", detached_)
    runner.take()
    recover()
    runner.take()
    runner.connect()
    assert detached_.statuses == ["answered"]
    assert [frame["type"] for frame in runner.take()] == ["revoke"]


@pytest.mark.scenario("E4", "D13")
@pytest.mark.parametrize("point", ["dispatch.after_accept", "dispatch.after_publish"])
def test_an_accepted_dispatch_is_told_again_and_its_end_with_it(detached_: Question, point: str) -> None:
    stage = detached_.stage
    with killed_at(point):
        detached_.respond(answers(text="first"))
    stage.ready()
    reborn()
    recover()
    turn = stage.turn
    told = [event.action for event in stage.events() if event.payload.get("turn", {}).get("id") == str(turn.pk)]
    assert told[-2:] == ["turn.started", "turn.completed"]
    assert not turn.dispatch_pending
    assert not turn.start_outbox
    private = {key for event in stage.events() for key in event.payload.get("turn", {})} & set(publishing.PRIVATE)
    assert not private
    assert prompted(stage, "first") == 1


@pytest.mark.scenario("E4", "E8", "R15")
def test_a_replay_that_fails_keeps_the_marker_and_is_tried_again(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies_at("dispatch.after_accept", detached_)

    def refuse(*rows: Any) -> None:
        raise ConnectionError("the bus takes nothing")

    with monkeypatch.context() as patched:
        patched.setattr(events, "emit", refuse)
        with pytest.raises(ConnectionError):
            recovery.recover()
        sweep()
    assert detached_.stage.turn.dispatch_pending
    assert [claim.state for claim in detached_.claims] == [ClaimState.ACCEPTED]
    assert detached_.stage.send().body["admission"] == "queued"
    recover()
    assert not detached_.stage.turn.dispatch_pending
    assert [claim.state for claim in detached_.claims] == [ClaimState.FINALIZED]


@pytest.mark.scenario("R15")
def test_a_failing_recovery_backs_off_and_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from tasks.backoff import Backoff

    tried: list[str] = []
    backoff, now = Backoff("thing"), [0.0]
    monkeypatch.setattr("tasks.backoff.time.monotonic", lambda: now[0])

    def fail() -> None:
        tried.append("bad")
        raise ValueError

    import uuid

    bad, good = uuid.uuid4(), uuid.uuid4()
    for now[0] in (0.0, 0.5, 1.1, 2.0, 3.2):
        backoff.run(bad, fail)
        backoff.run(good, lambda: tried.append("good"))
    assert tried.count("bad") == 3
    assert tried.count("good") == 5


@pytest.mark.scenario("E5")
def test_a_message_that_names_the_reservation_proves_that_it_ran(detached_: Question) -> None:
    dies_at("dispatch.after_reserve", detached_)
    dispatch = Dispatch.objects.get(claim_id=detached_.claims[0].pk)
    add_row(detached_.stage.session, dispatch.turn_id, type="message")
    recover()
    dispatch.refresh_from_db()
    assert dispatch.state == DispatchState.PUBLISHED
    assert detached_.statuses == ["answered"]
    assert [claim.state for claim in detached_.claims] == [ClaimState.FINALIZED]


@pytest.mark.scenario("E6")
@pytest.mark.parametrize("claimed", ["text", 7, {"a": 1}, [""], ["x", 7], [None]])
def test_a_malformed_list_of_claimed_rows_fails_closed(detached_: Question, claimed: Any) -> None:
    dies_at("dispatch.after_reserve", detached_)
    turn = Turn.objects.filter(dispatch_pending=True).get()
    broken = {**turn.metadata, "claimed_message_ids": claimed}
    Turn.objects.filter(pk=turn.pk).update(metadata=broken)
    with pytest.raises(dispatches.MalformedReservation, match=str(turn.pk)):
        recovery.recover()
    turn.refresh_from_db()
    assert turn.metadata == broken
    assert detached_.statuses == ["answered"]
    assert [claim.state for claim in detached_.claims] == [ClaimState.CLAIMED]
    Turn.objects.filter(pk=turn.pk).update(metadata={**broken, "claimed_message_ids": []})
    recover()


@pytest.mark.scenario("E7", "R7")
@pytest.mark.parametrize("point", ["respond.after_claim", "dispatch.after_reserve"])
def test_a_claim_whose_session_has_ended_is_retired(detached_: Question, point: str) -> None:
    with killed_at(point):
        detached_.respond(answers(text="first"))
    ending.end_session(detached_.stage.session.pk, SessionState.CANCELLED)
    reborn()
    recover()
    assert detached_.statuses == ["answered"]
    assert [claim.state for claim in detached_.claims] == [ClaimState.RETIRED]
    assert detached_.respond(answers(text="second")).body["delivery"] == "undelivered"
    assert prompted(detached_.stage, "first") == 0


@pytest.mark.scenario("E7", "A2")
def test_a_claim_under_a_newer_turn_is_retired_and_brings_nothing_back(detached_: Question) -> None:
    dies_at("respond.after_claim", detached_)
    add_turn(detached_.stage.session, completed_at=timezone.now(), end_reason=EndReason.READY)
    recover(runner_of(detached_.stage))
    assert [claim.state for claim in detached_.claims] == [ClaimState.RETIRED]
    assert detached_.stage.pending_action() is None
    assert detached_.late().status == 201


@pytest.mark.scenario("E8", "E13")
def test_recovery_asks_for_reservations_then_intents_then_the_outbox() -> None:
    names = [getattr(step, "__name__", "") for step in recovery.steps()]
    assert names[:3] == ["recover_reservations", "recover_claims", "adopt"]


@pytest.mark.once
@pytest.mark.scenario("E8")
def test_a_start_waits_a_while_for_a_busy_database_and_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.7)
    tried: list[BaseException] = []
    monkeypatch.setattr("kandev.server.connections.close_all", lambda: None)

    def fails(error: Exception, times: int) -> None:
        if len(tried) < times:
            tried.append(error)
            raise error

    server._patiently(partial(fails, OperationalError("database is locked"), 2))
    assert len(tried) == 2
    with pytest.raises(OperationalError):
        server._patiently(partial(fails, OperationalError("gone"), 99))
    missing = OperationalError("no such table: tasks_epoch")
    missing.__cause__ = sqlite3.OperationalError("no such table: tasks_epoch")
    missing.__cause__.sqlite_errorname = "SQLITE_ERROR"
    for error in (dispatches.MalformedReservation("broken"), missing):
        tried.clear()
        with pytest.raises(type(error)):
            server._patiently(partial(fails, error, 99))
        assert len(tried) == 1


@pytest.mark.scenario("E13")
def test_a_store_without_recovery_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        __name__ = "bare"

        def sweep_dispatches(self) -> None: ...

    monkeypatch.setattr(recovery, "turn_store", Bare())
    with pytest.raises(recovery.IncompleteStore, match="bare"):
        recovery.recover()


@pytest.mark.scenario("E9")
def test_a_living_peers_claim_and_reservation_are_left_alone(detached_: Question) -> None:
    mine = instances.generation()
    with killed_at("dispatch.after_reserve"):
        detached_.respond(answers(text="first"))
    peer = instances.register()
    assert peer.pk != mine
    time_passes()
    recover()
    sweep()
    assert Dispatch.objects.unsettled().filter(claim_id=detached_.claims[0].pk, state="reserved").exists()
    assert [claim.state for claim in detached_.claims] == [ClaimState.CLAIMED]
    instances.end(mine)
    sweep()
    assert detached_.statuses == ["pending"]


@pytest.mark.scenario("E9")
def test_two_sweepers_take_each_piece_once(detached_: Question) -> None:
    dies_at("dispatch.after_reserve", detached_)
    done = [beside(sweep), beside(sweep), beside(sweep)]
    for one in done:
        one.result(30)
    restored = [event for event in detached_.stage.events("session.message.updated") if _status(event) == "pending"]
    assert detached_.statuses == ["pending"]
    # Once when it was detached, once when it was given back.
    assert len(restored) == 2


def _status(event: Any) -> str:
    return str(event.payload["message"]["metadata"].get("status"))


@pytest.mark.scenario("R14", "D9")
def test_what_a_living_process_left_lying_is_swept_by_itself_after_all_budgets(detached_: Question) -> None:
    with killed_at("dispatch.after_reserve"):
        detached_.respond(answers(text="first"))
    sweep()
    assert detached_.state == "delivery_claimed"
    time_passes()
    sweep()
    assert detached_.statuses == ["pending"]


@pytest.mark.scenario("R14")
def test_a_commands_dispatch_is_left_to_it_within_its_budget(
    running_session: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running_session.ready()
    background.settle()
    monkeypatch.setattr(instances, "generation", lambda: 0)
    with killed_at("dispatch.after_reserve"):
        running_session.send("by a command")
    monkeypatch.undo()
    sweep()
    assert running_session.dispatches() == ["reserved"]
    time_passes()
    sweep()
    assert running_session.dispatches() == ["undone"]


@pytest.mark.scenario("R16")
def test_a_confirmed_claim_is_finalized_by_recovery(asked_: Question) -> None:
    agent = asked_.waits()
    with killed_at("respond.before_finalize"):
        asked_.respond(answers(text="first"))
    assert agent.ended().code == "answered"
    assert [claim.state for claim in asked_.claims] == [ClaimState.CONFIRMED]
    reborn()
    recover()
    assert [claim.state for claim in asked_.claims] == [ClaimState.FINALIZED]
    assert "response_delivery_pending" not in asked_.rows[0].metadata


@pytest.mark.scenario("C1", "R16")
def test_a_confirmed_answer_shows_as_handed_over_and_what_failed_after_it_is_made_up_at_once(
    asked_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = asked_.waits()
    commits_fail(monkeypatch, "failed", finalizing, "finalize")
    assert asked_.respond(answers(text="first")).short == (200, True)
    assert agent.ended().code == "answered"
    (claim,) = asked_.claims
    assert (claim.state, asked_.state) == (ClaimState.CONFIRMED, "terminal")
    assert asked_.respond(answers(text="second")).body["delivery"] == "delivered"
    assert asked_.late().code == "already_answered"
    # The negative control: a sweep that was not told leaves it to the responder until the budgets end.
    finalizing._owed.clear()
    sweep()
    assert asked_.claims[0].state == ClaimState.CONFIRMED
    finalizing.owe(claim.pk)
    sweep()
    assert asked_.claims[0].state == ClaimState.FINALIZED
    sweep()
    assert not finalizing._owed


@pytest.mark.scenario("E12")
def test_a_waiter_whose_process_died_leaves_a_detached_question(asked_: Question) -> None:
    asked_.waits()
    assert asked_.state == "active_live"
    reborn()
    sweep()
    assert asked_.state == "active_detached"
    assert asked_.rows[0].disconnected
    recover(runner_of(asked_.stage))
    assert asked_.respond().short == (200, True)


@pytest.mark.scenario("E12")
def test_the_first_moment_of_a_request_outlives_its_process_and_pauses_nothing(asked_: Question) -> None:
    reborn()
    sweep()
    assert asked_.state == "active_live"
    assert asked_.stage.turn.cancel_requested_at is None
    agent = asked_.waits()
    assert asked_.respond().short == (200, True)
    assert agent.ended().code == "answered"


@pytest.mark.scenario("E10")
def test_a_waiter_of_a_process_that_was_declared_dead_confirms_nothing(asked_: Question) -> None:
    """The negative control: without the fence the same waiter does confirm."""
    from clarifications import confirming

    asked_.waits()
    lease = WaiterLease.objects.exclude(kind="request").get(pending_id=asked_.pending_id)
    Instance.objects.filter(pk=lease.owner).update(ended_at=timezone.now())
    assert not confirming._own(lease, timezone.now())
    Instance.objects.filter(pk=lease.owner).update(ended_at=None)
    assert confirming._own(lease, timezone.now())


@pytest.mark.scenario("F3", "A7", "R30")
def test_between_a_sessions_end_and_its_expiry_nothing_is_active_and_the_sweep_makes_up(asked_: Question) -> None:
    stage = asked_.stage
    with killed_at("expire.before_commit"):
        ending.end_session(stage.session.pk, SessionState.COMPLETED)
    assert (asked_.state, asked_.statuses) == ("terminal", ["pending"])
    assert stage.pending_action() is None
    assert asked_.respond().code == "not_active"
    turn = stage.turn
    assert [event for event in stage.events("turn.completed") if event.payload["turn"]["id"] == str(turn.pk)] == []
    reborn()
    sweep()
    sweep()
    assert asked_.statuses == ["expired"]
    told = [event.action for event in stage.events() if event.action in ("turn.completed", "session.message.updated")]
    assert told[-2:] == ["session.message.updated", "turn.completed"]


@pytest.mark.scenario("R17", "L7")
def test_a_queued_prompt_whose_process_died_goes_back_to_the_head(running_session: Stage) -> None:
    from turns import draining

    stage = running_session
    for text in ("one", "two"):
        assert stage.send(text).body["admission"] == "queued"
    with killed_at("queue.after_pop"):
        ending_of(stage)
        draining.drain(stage.session.pk)
    reborn()
    recover(runner_of(stage))
    Admission.objects.update(retry_at=None)
    sweep()
    assert (prompted(stage, "one"), prompted(stage, "two")) == (1, 0)
    stage.ready()
    background.settle()
    assert (prompted(stage, "one"), prompted(stage, "two")) == (1, 1)


def ending_of(stage: Stage) -> None:
    """The turn ends, and nothing that follows its end happens."""
    Turn.objects.filter(pk=stage.turn.pk).update(completed_at=timezone.now(), end_reason=EndReason.READY)


@pytest.mark.scenario("R25")
def test_a_pause_that_was_due_while_nobody_served_waits_for_its_grace_again(asked_: Question, settings: Any) -> None:
    settings.KANDEV_PAUSE_GRACE_S = 20
    agent = asked_.waits()
    agent.hang_up()
    agent.ended()
    assert Timer.objects.filter(kind=TimerKind.PAUSE).update(due_at=timezone.now() - dt.timedelta(seconds=100)) == 1
    timers.run_due(timezone.now())
    assert asked_.stage.turn.cancel_requested_at is None
    timers.run_due(timezone.now() - dt.timedelta(seconds=21))
    assert asked_.stage.turn.cancel_requested_at is not None


@pytest.mark.scenario("R25")
def test_a_runner_that_was_silent_while_nobody_served_is_judged_by_a_new_clock(
    running_session: Stage, settings: Any
) -> None:
    settings.KANDEV_RUNNER_LEASE_S = 30
    Runner.objects.update(last_seen_at=timezone.now() - dt.timedelta(hours=1))
    dispatches.interrupt_lost(timezone.now())
    assert running_session.turn.completed_at is None
    assert runners.silent().exists()
    dispatches.interrupt_lost(timezone.now() - dt.timedelta(seconds=31))
    assert running_session.turn.end_reason == EndReason.INTERRUPTED


@pytest.mark.scenario("R25")
def test_a_runner_whose_server_died_has_its_lease_from_then(running_session: Stage) -> None:
    Runner.objects.update(last_seen_at=timezone.now() - dt.timedelta(hours=1))
    reborn()
    recover()
    row = Runner.objects.get()
    assert row.connection_id is None
    assert not runners.silent().exists()


@pytest.mark.scenario("R45", "A5")
@pytest.mark.parametrize("flag", [True, "true", "1", 1])
def test_a_reservation_of_which_only_the_turn_row_is_left_is_undone(detached_: Question, flag: Any) -> None:
    """No dispatch, no claim, no instance: an imported installation."""
    dies_at("dispatch.after_reserve", detached_)
    turn = Turn.objects.filter(dispatch_pending=True).get()
    Turn.objects.filter(pk=turn.pk).update(metadata={**turn.metadata, "prompt_dispatch_pending": flag})
    _forget_everything()
    recover()
    assert not Turn.objects.filter(pk=turn.pk).exists()
    assert detached_.statuses == ["pending"]
    assert detached_.state == "active_detached"


@pytest.mark.scenario("R45", "E3", "E4")
@pytest.mark.parametrize("mark", ["prompt_dispatch_attempted", "prompt_start_event_outbox"])
def test_an_attempted_or_published_one_is_kept_and_told(detached_: Question, mark: str) -> None:
    dies_at("dispatch.after_reserve", detached_)
    turn = Turn.objects.filter(dispatch_pending=True).get()
    Turn.objects.filter(pk=turn.pk).update(metadata={**turn.metadata, mark: "true"})
    _forget_everything()
    recover()
    turn.refresh_from_db()
    assert not set(turn.metadata) & set(publishing.PRIVATE)
    assert detached_.statuses == ["answered"]
    started = [event for event in detached_.stage.events("turn.started") if event.payload["turn"]["id"] == str(turn.pk)]
    assert len(started) == 1


def _forget_everything() -> None:
    from clarifications.models import Claim

    for model in (Dispatch, Claim, Runner, Instance):
        model.objects.all().delete()
    instances.register()
    instances.mark_ready()


@pytest.mark.scenario("R12", "I8")
def test_pages_hear_of_a_question_that_counts_again_after_a_prompt_was_refused(detached_: Question) -> None:
    stage = detached_.stage
    runner_of(stage).refuses = True
    before = len(stage.events("session.message.updated"))
    with pytest.raises(Exception, match=r"refused|took|rejected"):
        stage.send("an ordinary prompt")
    assert detached_.state == "active_detached"
    told = stage.events("session.message.updated")[before:]
    assert [_status(event) for event in told] == ["pending"]


def test_an_idle_start_changes_nothing(running_session: Stage) -> None:
    seen = len(running_session.events())
    reborn()
    recover()
    recover()
    assert len(running_session.events()) == seen
    assert running_session.turn.completed_at is None


@pytest.mark.scenario("E9")
def test_after_a_gap_of_its_own_a_process_judges_nobody_by_silence(
    asked_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage of the database for longer than a lease: every lease is over, everybody lives."""
    asked_.waits()
    long_ago = timezone.now() - dt.timedelta(days=1)
    silent = Instance.objects.create(host="another", pid=1, started_at=long_ago, renewed_at=long_ago)
    Instance.objects.update(renewed_at=long_ago)
    monkeypatch.setattr(sweeping._Lease, "renewed_at", float("-inf"))
    sweeping._take_over()
    silent.refresh_from_db()
    assert silent.ended_at is None
    assert asked_.state == "active_live"
    monkeypatch.setattr(sweeping._Lease, "steady_since", float("-inf"))
    sweeping._take_over()
    silent.refresh_from_db()
    assert silent.ended_at is not None
    assert asked_.state == "active_live"


def test_a_process_that_is_gone_from_this_host_is_dead_at_once(serving: None) -> None:
    gone = Instance.objects.create(
        host=instances.host_name(),
        pid=2**22 - 3,
        process_start="1",
        started_at=timezone.now(),
        renewed_at=timezone.now(),
    )
    elsewhere = Instance.objects.create(
        host="another", pid=gone.pid, process_start="1", started_at=timezone.now(), renewed_at=timezone.now()
    )
    sweeping.bury_dead()
    gone.refresh_from_db()
    elsewhere.refresh_from_db()
    assert gone.ended_at is not None
    assert elsewhere.ended_at is None
