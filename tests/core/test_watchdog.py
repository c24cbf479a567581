"""Silence after a live answer, and the pause (K3, K4, K5, R5, R19, R23, R24)."""

import datetime as dt

import pytest
from django.utils import timezone

from clarifications import watching
from clarifications.models import Watchdog
from tasks import ending
from tasks.models import SessionState
from tests.support.climbing import Question, answers
from tests.support.scripted import Frame
from tests.support.waiting import until
from turns import background, timers
from turns.models import Timer, TimerKind, Turn

LONG = dt.timedelta(seconds=3600)


def handed_over(asked: Question, *, writes: bool = True) -> Watchdog:
    """The answer "marked" was given to the waiting agent; its return is recorded unless nothing was written."""
    agent = asked.waits(writes=writes)
    assert asked.respond(answers(text="marked")).short == (200, True)
    agent.ended()
    if writes:
        until(lambda: Watchdog.objects.filter(returned_at__isnull=False).exists(), what="the return is recorded")
    return Watchdog.objects.get()


def silence_passes() -> None:
    """Nothing was heard for longer than the watchdog's time; whoever lives then looks."""
    Watchdog.objects.filter(state="armed").update(due_at=timezone.now() - dt.timedelta(seconds=1))
    watching.run_due()
    background.settle()


def fallbacks(asked: Question) -> list[Frame]:
    return [frame for frame in asked.stage.runner.got("dispatch")[1:] if "marked" in frame["prompt"]]


@pytest.mark.scenario("K3", "R24")
def test_silence_gives_one_fallback_that_names_the_request_and_the_silent_prompt(asked_: Question) -> None:
    first = asked_.stage.dispatched
    handed_over(asked_)
    silence_passes()
    silence_passes()
    (sent,) = fallbacks(asked_)
    assert asked_.pending_id in sent["prompt"]
    assert sent["replaces"] == {key: first[key] for key in ("execution_id", "prompt_generation")}
    assert (Watchdog.objects.get().state, asked_.stage.turns()) == ("closed", 2)
    assert len(asked_.stage.runner.got("cancel")) == 1


@pytest.mark.scenario("K4", "R24")
@pytest.mark.parametrize("kind", ["message", "thinking", "tool"])
def test_a_frame_of_the_agent_closes_the_watchdog(asked_: Question, kind: str) -> None:
    handed_over(asked_)
    asked_.stage.says("frame", kind=kind, content="going on")
    silence_passes()
    assert (Watchdog.objects.get().closed_because, fallbacks(asked_)) == ("activity", [])


@pytest.mark.scenario("K4")
def test_a_status_frame_and_a_frame_of_another_generation_are_no_activity(asked_: Question) -> None:
    handed_over(asked_)
    asked_.stage.says("frame", kind="status", content="alive")
    other = {**asked_.stage.dispatched, "prompt_generation": 999}
    asked_.stage.runner.say("frame", other, kind="message", content="from elsewhere")
    assert Watchdog.objects.get().state == "armed"


@pytest.mark.scenario("K3", "R19")
def test_frames_before_the_return_was_written_close_nothing(asked_: Question) -> None:
    handed_over(asked_, writes=False)
    asked_.stage.says("frame", kind="message", content="I go on without it")
    silence_passes()
    assert len(fallbacks(asked_)) == 1


@pytest.mark.scenario("K3")
def test_a_normal_end_of_the_turn_is_activity(asked_: Question) -> None:
    handed_over(asked_)
    asked_.stage.ready()
    background.settle()
    silence_passes()
    assert (Watchdog.objects.get().state, fallbacks(asked_)) == ("closed", [])


@pytest.mark.scenario("R19")
@pytest.mark.parametrize("kind", ["cancelled", "failed"])
def test_an_abnormal_end_makes_the_watchdog_due_at_once(asked_: Question, kind: str) -> None:
    handed_over(asked_)
    asked_.stage.says(kind, error="crashed")
    watching.run_due()
    background.settle()
    assert len(fallbacks(asked_)) == 1


@pytest.mark.scenario("K3")
def test_a_stale_watchdog_neither_prompts_nor_cancels_the_successor(asked_: Question) -> None:
    handed_over(asked_)
    now = timezone.now()
    Turn.objects.update(completed_at=now)
    newer = Turn.objects.create(session=asked_.stage.session, started_at=now + LONG, created_at=now)
    silence_passes()
    newer.refresh_from_db()
    assert (Watchdog.objects.get().closed_because, newer.cancel_requested_at) == ("stale", None)
    assert fallbacks(asked_) == []


@pytest.mark.scenario("K3")
def test_a_turn_that_appears_between_the_cancel_and_the_admission_stops_the_fallback(asked_: Question) -> None:
    """The second look, inside the admission: the silent turn is not current any more."""
    row = handed_over(asked_)
    asked_.stage.runner.on_cancel = asked_.stage.runner.ignore
    Watchdog.objects.update(due_at=timezone.now())
    assert watching._begin(row.pk, timezone.now())
    assert not watching._begin(row.pk, timezone.now())
    now = timezone.now()
    Turn.objects.update(completed_at=now)
    Turn.objects.create(session=asked_.stage.session, started_at=now + LONG, created_at=now, completed_at=now)
    watching.carry_out(row.pk)
    assert fallbacks(asked_) == []


@pytest.mark.scenario("K4")
def test_activity_stops_a_fallback_that_is_under_way_but_its_own_cancel_does_not(asked_: Question) -> None:
    row = handed_over(asked_)
    asked_.stage.runner.on_cancel = asked_.stage.runner.ignore
    Watchdog.objects.update(due_at=timezone.now())
    assert watching._begin(row.pk, timezone.now())
    asked_.stage.says("frame", kind="tool", content="still here")
    asked_.stage.says("cancelled")
    watching.carry_out(row.pk)
    assert (Watchdog.objects.get().closed_because, fallbacks(asked_)) == ("activity", [])


@pytest.mark.scenario("R23")
def test_no_fallback_while_an_agent_of_the_turn_waits(asked_: Question) -> None:
    handed_over(asked_)
    Watchdog.objects.update(returned_at=None)  # whatever the first call heard, the turn holds another one open
    other = asked_.stage.ask(2)
    other.waits()
    until(lambda: other.state == "active_live")
    silence_passes()
    row = Watchdog.objects.get()
    assert (row.state, fallbacks(asked_)) == ("armed", [])
    assert row.due_at > timezone.now()


@pytest.mark.scenario("R24")
def test_the_runner_that_knows_better_closes_the_watchdog(asked_: Question) -> None:
    runner = asked_.stage.runner
    handed_over(asked_)
    runner.on_dispatch = lambda frame: runner.reject(frame, code="already_received")
    silence_passes()
    assert (Watchdog.objects.get().closed_because, asked_.stage.turns()) == ("already_received", 1)


@pytest.mark.scenario("R24")
def test_without_a_runner_the_fallback_is_tried_again(asked_: Question) -> None:
    handed_over(asked_)
    asked_.stage.says("cancelled")
    asked_.stage.runner.disconnect()
    silence_passes()
    assert (Watchdog.objects.get().state, fallbacks(asked_)) == ("armed", [])
    asked_.stage.runner.connect()
    silence_passes()
    assert (Watchdog.objects.get().state, len(fallbacks(asked_))) == ("closed", 1)


@pytest.mark.scenario("K3")
def test_the_end_of_the_session_closes_the_watchdog(asked_: Question) -> None:
    handed_over(asked_)
    ending.end_session(asked_.stage.session.pk, SessionState.CANCELLED)
    silence_passes()
    assert (Watchdog.objects.get().closed_because, fallbacks(asked_)) == ("session_ended", [])


@pytest.mark.scenario("K5", "R5")
def test_a_cancel_that_nobody_acknowledges_ends_the_turn_as_interrupted(asked_: Question) -> None:
    stage = asked_.stage
    stage.runner.on_cancel = stage.runner.ignore
    asked_.waits(timeout_s=0.1).ended()
    until(lambda: stage.runner.got("cancel"), what="the cancel of the pause")
    assert Turn.objects.get().completed_at is None
    Timer.objects.filter(kind=TimerKind.CANCEL_OVERDUE).update(due_at=timezone.now())
    timers.run_due(timezone.now() - LONG)
    background.settle()
    assert (Turn.objects.get().end_reason, asked_.state) == ("interrupted", "active_detached")
    stage.says("frame", kind="message", content="too late")
    assert "too late" not in [row.content for row in asked_.stage.session.transcript.all()]


@pytest.mark.scenario("K5", "R19")
def test_a_lost_connection_pauses_after_its_grace_unless_the_agent_asks_again(asked_: Question) -> None:
    agent = asked_.waits()
    agent.hang_up()
    agent.ended()
    assert Timer.objects.get(kind=TimerKind.PAUSE).due_at > timezone.now()
    assert asked_.stage.ask().pending_id == asked_.pending_id
    assert not Timer.objects.filter(kind=TimerKind.PAUSE).exists()
    agent = asked_.waits()
    agent.hang_up()
    agent.ended()
    Timer.objects.filter(kind=TimerKind.PAUSE).update(due_at=timezone.now())
    timers.run_due(timezone.now() - LONG)
    until(lambda: Turn.objects.get().end_reason == "cancelled", what="the cancel is acknowledged")
    background.settle()
    assert (asked_.state, len(asked_.stage.runner.got("cancel"))) == ("active_detached", 1)


@pytest.mark.scenario("K5")
def test_a_pause_does_not_cancel_a_turn_that_appeared_meanwhile(asked_: Question) -> None:
    agent = asked_.waits()
    agent.hang_up()
    agent.ended()
    now = timezone.now()
    Turn.objects.create(session=asked_.stage.session, started_at=now + LONG, created_at=now)
    Timer.objects.filter(kind=TimerKind.PAUSE).update(due_at=now)
    timers.run_due(now - LONG)
    assert not Turn.objects.filter(cancel_requested_at__isnull=False).exists()
