"""Detaching once, expiring before the event, and what a detached question still is (F1 to F4, F6, K5 in part)."""

import asyncio
import datetime as dt
import json
from collections.abc import Callable
from contextlib import suppress
from threading import Event
from typing import Any

import pytest
from django.utils import timezone

from clarifications import closing, confirming, leases, recovering, waiting
from clarifications.models import WaiterLease, Watchdog
from clarifications.signals import Signal
from tasks import ending, moving
from tasks.models import SessionState
from tasks.threads import in_thread
from tests.core.test_apart import ask_another
from tests.support.climbing import Question, Stage, add_turn
from tests.support.threads import Agent, beside
from tests.support.waiting import auntil, until
from turns import background, pausing, timers
from turns.models import Message, Timer, TimerKind, Turn

LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def run_due() -> int:
    """The sweep of a server that has been ready for years."""
    return timers.run_due(LONG_AGO)


def told(question: Question) -> list[dict[str, Any]]:
    """The `message.updated` events of the question's rows, as the rows were then."""
    ids = {str(row.pk) for row in question.rows}
    events = question.stage.events("session.message.updated")
    return [event.payload["message"] for event in events if event.payload["message"]["id"] in ids]


def timed_out(question: Question) -> None:
    agent = question.waits(timeout_s=0.05)
    assert agent.ended().code == "timeout"


def hung_up(question: Question) -> None:
    agent = question.waits()
    agent.hang_up()
    assert agent.ended().code == "gone"


def turn_ended(question: Question) -> None:
    agent = question.waits()
    question.stage.ready()
    assert agent.ended().code == "detached"


def turn_failed(question: Question) -> None:
    agent = question.waits()
    question.stage.says("failed", error="oops", fatal=False)
    assert agent.ended().code == "detached"


WAYS: dict[str, Callable[[Question], None]] = {
    "time-out": timed_out,
    "lost connection": hung_up,
    "turn ended": turn_ended,
    "turn failed": turn_failed,
}


@pytest.mark.scenario("F1", "F6", "R28")
@pytest.mark.parametrize("way", WAYS)
def test_it_detaches_once_with_one_event_a_row(running_session: Stage, way: str) -> None:
    running_session.runner.on_cancel = running_session.runner.ignore
    question = running_session.ask(2)
    WAYS[way](question)
    assert question.state == "active_detached"
    assert [row.metadata["agent_disconnected"] for row in question.rows] == [True, True]
    assert [message["metadata"]["agent_disconnected"] for message in told(question)] == [True, True]
    assert (running_session.pending_action(), running_session.listed()) == ("clarification", [question.pending_id])
    assert moving.is_blocked(running_session.task.pk)
    assert question.statuses == ["pending", "pending"]


@pytest.mark.scenario("F1")
def test_a_second_waiter_keeps_it_attached(asked_: Question) -> None:
    first, second = asked_.waits(), asked_.waits()
    first.hang_up()
    first.ended()
    assert (asked_.state, told(asked_)) == ("active_live", [])
    second.hang_up()
    second.ended()
    assert (asked_.state, len(told(asked_))) == ("active_detached", 1)


@pytest.mark.scenario("F1", "F2")
def test_the_end_of_the_turn_after_a_lost_connection_tells_nothing_more(asked_: Question) -> None:
    hung_up(asked_)
    asked_.stage.ready()
    background.settle()
    assert len(told(asked_)) == 1


@pytest.mark.scenario("F2", "A2")
def test_detaching_touches_neither_settled_rows_nor_older_turns(answered_: Question) -> None:
    stage = answered_.stage
    before = list(Message.objects.bundle(answered_.pending_id).values())
    question = stage.ask(2)
    Message.objects.filter(pk=question.rows[0].pk).update(metadata={**question.rows[0].metadata, "status": "answered"})
    settled = Message.objects.filter(pk=question.rows[0].pk).values().get()
    stage.ready()
    assert list(Message.objects.bundle(answered_.pending_id).values()) == before
    assert Message.objects.filter(pk=settled["id"]).values().get() == settled
    assert [message["id"] for message in told(question)] == [str(question.rows[1].pk)]


@pytest.mark.scenario("K5", "F1")
def test_a_time_out_pauses_the_turn_at_once_and_all_its_questions_detach(asked_: Question) -> None:
    stage = asked_.stage
    other = ask_another(asked_)
    agent = other.waits()
    timed_out(asked_)
    frame = stage.runner.expect("cancel")
    assert frame["execution_id"] == stage.dispatched["execution_id"]
    assert agent.ended().code == "detached"
    until(lambda: stage.turn.completed_at)
    assert (stage.turn.end_reason, asked_.state, other.state) == ("cancelled", "active_detached", "active_detached")
    assert asked_.respond().short == (200, True)


@pytest.mark.scenario("K5", "R27", "B3")
def test_a_lost_connection_has_a_grace_in_which_asking_again_cancels_nothing(asked_: Question) -> None:
    stage = asked_.stage
    hung_up(asked_)
    assert Timer.objects.filter(kind=TimerKind.PAUSE).count() == 1
    assert stage.ask().pending_id == asked_.pending_id
    assert not Timer.objects.filter(kind=TimerKind.PAUSE).exists()
    run_due()
    assert (stage.runner.got("cancel"), asked_.state) == ([], "active_live")


@pytest.mark.scenario("K5", "F6")
def test_the_turn_is_cancelled_when_the_grace_is_over_and_stays_current(asked_: Question) -> None:
    stage = asked_.stage
    turn = stage.turn.pk
    hung_up(asked_)
    assert run_due() == 0
    Timer.objects.update(due_at=timezone.now())
    assert run_due() == 1
    assert run_due() == 0
    stage.runner.expect("cancel")
    until(lambda: stage.turn.completed_at)
    assert (stage.turn.pk, asked_.state) == (turn, "active_detached")


@pytest.mark.scenario("K5")
def test_a_turn_that_appeared_meanwhile_is_spared(asked_: Question) -> None:
    stage = asked_.stage
    hung_up(asked_)
    Turn.objects.update(completed_at=timezone.now())
    newer = add_turn(stage.session)
    Timer.objects.update(due_at=timezone.now())
    run_due()
    newer.refresh_from_db()
    assert newer.cancel_requested_at is None
    assert not stage.runner.got("cancel")


@pytest.mark.scenario("R5", "K5")
def test_a_cancel_that_nobody_acknowledges_interrupts_the_turn_and_its_late_frames_are_stale(asked_: Question) -> None:
    stage = asked_.stage
    stage.runner.on_cancel = stage.runner.ignore
    timed_out(asked_)
    frame = stage.runner.expect("cancel")
    Timer.objects.filter(kind=TimerKind.CANCEL_OVERDUE).update(due_at=timezone.now())
    assert run_due() == 1
    assert stage.turn.end_reason == "interrupted"
    before = Message.objects.count()
    stage.runner.cancelled(frame)
    stage.says("frame", kind="message", content="too late")
    stage.ready()
    assert (Message.objects.count(), stage.turn.end_reason, asked_.state) == (before, "interrupted", "active_detached")


@pytest.mark.scenario("F6", "A2")
def test_a_detached_question_blocks_until_a_newer_turn(detached_: Question) -> None:
    stage = detached_.stage
    assert moving.is_blocked(stage.task.pk)
    assert stage.send("something else").body["admission"] == "sent"
    assert not moving.is_blocked(stage.task.pk)
    assert (detached_.state, stage.listed(), stage.pending_action()) == ("superseded_history", [], None)
    assert detached_.respond().short == (409, "not_active")


ENDS = (SessionState.COMPLETED, SessionState.FAILED, SessionState.CANCELLED)


@pytest.mark.scenario("F3", "F7", "R30")
@pytest.mark.parametrize("state", ENDS)
@pytest.mark.parametrize("live", [True, False])
def test_a_session_s_end_expires_its_questions_before_its_event(
    asked_: Question, state: SessionState, live: bool
) -> None:
    stage = asked_.stage
    agent: Agent | None = asked_.waits() if live else None
    if not live:
        hung_up(asked_)
    ending.end_session(stage.session.pk, state)
    assert asked_.statuses == ["expired"]
    assert agent is None or agent.ended().code == "expired"
    actions = [(event.action, json.dumps(event.payload)) for event in stage.events()]
    expired = next(n for n, (action, body) in enumerate(actions) if '"expired"' in body)
    completed = max(n for n, (action, _) in enumerate(actions) if action == "turn.completed")
    assert expired < completed
    assert (asked_.state, stage.pending_action(), asked_.respond().short) == ("terminal", None, (409, "not_active"))
    assert stage.runner.expect("stop")["session_id"] == str(stage.session.pk)


@pytest.mark.scenario("A7", "R30", "F3")
def test_an_expiry_that_fails_does_not_stop_the_end_and_is_swept(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("the disk is full")

    stage = detached_.stage
    with monkeypatch.context() as broken:
        broken.setattr(closing, "expire_session", fail)
        assert ending.end_session(stage.session.pk, SessionState.COMPLETED)
    assert (detached_.statuses, stage.pending_action(), stage.listed()) == (["pending"], None, [])
    assert detached_.respond().short == (409, "not_active")
    recovering.expire_ended()
    recovering.expire_ended()
    assert detached_.statuses == ["expired"]
    assert [message["metadata"]["status"] for message in told(detached_)].count("expired") == 1


@pytest.mark.scenario("F3", "A2")
def test_history_is_not_expired_with_its_session(answered_: Question) -> None:
    stage = answered_.stage
    question = stage.ask()
    stage.ready()
    stage.send("newer")
    ending.end_session(stage.session.pk, SessionState.COMPLETED)
    assert question.statuses == ["pending"]


@pytest.mark.scenario("F1", "R27")
def test_a_request_without_a_wait_detaches_after_the_budget_and_pauses_nothing(asked_: Question) -> None:
    stage = asked_.stage
    assert asked_.state == "active_live"
    Timer.objects.filter(kind=TimerKind.FIRST_WAIT).update(due_at=timezone.now())
    WaiterLease.objects.update(expires_at=timezone.now())
    assert run_due() == 1
    assert (asked_.state, len(told(asked_)), stage.runner.got("cancel")) == ("active_detached", 1, [])
    assert stage.turn.cancel_requested_at is None


@pytest.mark.scenario("F4")
@pytest.mark.parametrize("way", ["time-out", "lost connection"])
def test_detaching_outlives_the_cancelled_request(asked_: Question, way: str) -> None:
    """The wait's coroutine is cancelled with its client; what it owes the database is done all the same."""
    WAYS[way](asked_)
    until(lambda: asked_.state == "active_detached")
    assert not WaiterLease.objects.filter(pending_id=asked_.pending_id).exists()


@pytest.mark.scenario("F1", "K5")
def test_pausing_a_turn_that_has_ended_is_a_no_op(detached_: Question) -> None:
    stage = detached_.stage
    assert not pausing.cancel_turn(stage.session.pk, stage.turn.pk, "late", timezone.now())
    assert not stage.runner.got("cancel")


async def _cancelled(question: Question, at: Event | None) -> None:
    """A call that waits is cancelled, as the server does with what is left of a request; at that moment, if given."""
    call = waiting.wait(question.stage.agent, question.pending_id, "rest", 30, Signal())
    task = asyncio.ensure_future(call)
    waits = WaiterLease.objects.filter(pending_id=question.pending_id, kind="rest")
    await auntil(lambda: in_thread(waits.exists), what="the wait is registered")
    if at is not None:
        assert await asyncio.to_thread(at.wait, 20)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await asyncio.gather(*waiting._leaving)


@pytest.mark.scenario("F1", "C5", "R27")
def test_a_cancelled_call_gives_its_lease_up_as_a_lost_connection_does(asked_: Question) -> None:
    asyncio.run(_cancelled(asked_, None))
    assert (asked_.state, asked_.stage.turn.cancel_requested_at) == ("active_detached", None)
    assert not WaiterLease.objects.filter(pending_id=asked_.pending_id).exists()
    assert Timer.objects.filter(turn_id=asked_.stage.turn.pk).count() == 1  # the grace for asking again


@pytest.mark.scenario("C3", "K3", "R20")
def test_a_call_that_is_cancelled_after_its_confirm_leaves_the_answer_to_the_watchdog(
    asked_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirmed, go, confirm = Event(), Event(), confirming.confirm

    def slow(lease: leases.Lease) -> object:
        ended = confirm(lease)
        if ended is not None:
            confirmed.set()
            assert go.wait(20)
        return ended

    monkeypatch.setattr(confirming, "confirm", slow)
    said = beside(asked_.respond)
    asyncio.run(_cancelled(asked_, confirmed))
    go.set()
    assert said.result(20).short == (200, True)
    assert not WaiterLease.objects.filter(pending_id=asked_.pending_id).exists()
    watchdog = Watchdog.objects.get()
    assert (watchdog.state, watchdog.returned_at) == ("armed", None)
