"""When the way back fails, is late or is asked of recovery (D9, D10, D11, R7, R10, R12, R14)."""

import threading
from typing import Any

import pytest

from clarifications import recovering as claims_recovering
from clarifications import restoring
from clarifications.models import Claim, ClaimState
from tasks import ending, failpoints, summaries
from tasks.models import SessionState
from tests.core.outcomes import as_before, retries
from tests.support.climbing import Question, Stage
from tests.support.threads import beside
from tests.support.waiting import until
from turns import admitting, background, busy, draining, recovering, settling
from turns.admitting import DispatchAmbiguous
from turns.models import Admission, Dispatch, DispatchState, Message, Turn


def fail(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("the database went away")


@pytest.mark.scenario("D9", "R14", "K1")
def test_a_rollback_that_fails_closes_the_session_until_recovery(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, runner = detached_.stage, detached_.stage.runner
    prompts = len(runner.got("dispatch"))
    with monkeypatch.context() as broken:
        broken.setattr("turns.attempting._mark", fail)
        broken.setattr(settling, "_remove", fail)
        got = detached_.respond()
        assert (got.short, got.body["retryable"]) == ((500, "dispatch_ambiguous"), False)
    assert (detached_.statuses, stage.dispatches()) == (["answered"], [DispatchState.RESERVED])
    assert busy.is_busy(stage.session.pk)
    assert stage.send("hello", "k").body["admission"] == "queued"
    assert not draining.drain(stage.session.pk)
    assert len(runner.got("dispatch")) == prompts
    stage.ready()
    assert Turn.objects.get(pk=Dispatch.objects.get(state="reserved").turn_id).completed_at is None
    _abandon()
    recovering.recover_reservations()
    background.settle()
    assert detached_.statuses == ["pending"]
    until(lambda: runner.got("dispatch")[-1]["prompt"] == "hello", what="the queue goes on")


def _abandon() -> None:
    """As if the process that made them had died."""
    Dispatch.objects.update(owner=987_654)
    Claim.objects.update(owner=987_654)


@pytest.mark.scenario("D9", "C9")
def test_a_restore_that_fails_is_ambiguous_and_swept_later(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    detached_.stage.runner.disconnect()
    with monkeypatch.context() as broken:
        broken.setattr(restoring, "restore_locked", fail)
        assert detached_.respond().short == (500, "dispatch_ambiguous")
    assert detached_.statuses == ["answered"]
    again = detached_.respond()
    assert (again.short, again.body["delivery"]) == ((200, False), "pending")
    _abandon()
    claims_recovering.recover_claims()
    assert (detached_.statuses, detached_.state) == (["pending"], "active_detached")
    detached_.stage.runner.connect()
    retries(detached_)


@pytest.mark.scenario("R14", "D9")
def test_a_process_sweeps_its_own_work_once_its_budget_is_over(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.utils import timezone

    detached_.stage.runner.disconnect()
    with monkeypatch.context() as broken:
        broken.setattr(restoring, "restore_locked", fail)
        detached_.respond()
    assert not Claim.objects.unattended(timezone.now()).exists()
    Claim.objects.update(attended_until=timezone.now())
    assert Claim.objects.unattended(timezone.now()).exists()
    claims_recovering.recover_claims()
    assert detached_.statuses == ["pending"]


@pytest.mark.scenario("D10", "R32")
def test_a_summary_that_cannot_be_stored_is_told_as_convergence_failed_and_the_rows_are_announced(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = detached_.stage
    stage.runner.on_dispatch = stage.runner.reject
    before = len(stage.events("session.message.updated"))

    def exhausted(task_id: Any) -> None:
        raise summaries.SummaryConflict

    with monkeypatch.context() as broken:
        broken.setattr(summaries, "refresh", exhausted)
        got = detached_.respond()
    assert got.code == "convergence_failed"
    as_before(detached_, got)
    told = stage.events("session.message.updated")[before:]
    assert told[-1].payload["message"]["metadata"]["status"] == "pending"
    retries(detached_)


@pytest.mark.scenario("R32", "D10")
def test_a_summary_that_fails_after_success_does_not_make_it_a_failure(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "refresh", fail)
    assert detached_.respond().short == (200, True)


@pytest.mark.scenario("D11", "F4")
@pytest.mark.parametrize("accepts", [True, False])
def test_the_work_ends_in_an_outcome_though_nobody_reads_it(detached_: Question, accepts: bool) -> None:
    """Nobody takes the responder's result: its thread carries the answer to its end."""
    runner = detached_.stage.runner
    called, go = threading.Event(), threading.Event()

    def late(frame: dict[str, Any]) -> None:
        called.set()
        assert go.wait(10)
        (runner.accept if accepts else runner.reject)(frame)

    runner.on_dispatch = late
    beside(detached_.respond)
    assert called.wait(10)
    go.set()
    until(lambda: not Claim.objects.open().exists())
    assert detached_.statuses == (["answered"] if accepts else ["pending"])


@pytest.mark.scenario("R10", "G2")
def test_an_unsettled_attempt_makes_another_question_of_the_turn_wait_and_never_409(
    detached_: Question, settings: Any
) -> None:
    from tests.support.climbing import add_row

    settings.KANDEV_DELIVERY_TIMEOUT_S, settings.KANDEV_CLAIM_TIMEOUT_S = 1, 0.3
    stage, runner = detached_.stage, detached_.stage.runner
    other = Question(stage, add_row(stage.session, stage.turn.pk).metadata["pending_id"])
    runner.on_dispatch = runner.on_revoke = runner.ignore
    assert detached_.respond().short == (500, "dispatch_ambiguous")
    for got in (other.respond(), other.respond({"rejected": True}), other.late("k")):
        assert (got.short, got.body["retryable"]) == ((503, "temporarily_unavailable"), True)
    assert other.statuses == ["pending"]
    runner.revoked(stage.dispatched)
    assert other.state == "active_detached"
    runner.on_dispatch = runner.accept
    assert other.respond().short == (200, True)


@pytest.mark.scenario("R10", "A2")
def test_what_waited_for_an_unsettled_attempt_is_history_once_it_was_accepted(
    detached_: Question, settings: Any
) -> None:
    from tests.support.climbing import add_row

    settings.KANDEV_DELIVERY_TIMEOUT_S, settings.KANDEV_CLAIM_TIMEOUT_S = 1, 10
    stage, runner = detached_.stage, detached_.stage.runner
    other = Question(stage, add_row(stage.session, stage.turn.pk).metadata["pending_id"])
    runner.on_dispatch = runner.on_revoke = runner.ignore
    assert detached_.respond().short == (500, "dispatch_ambiguous")
    waiting = beside(other.respond)
    assert runner.accept(stage.dispatched)
    assert waiting.result(10).short == (409, "not_active")


@pytest.mark.scenario("R12", "R7")
def test_never_ran_is_retired_when_the_session_has_ended_by_then(detached_: Question, settings: Any) -> None:
    settings.KANDEV_DELIVERY_TIMEOUT_S = 1
    stage, runner = detached_.stage, detached_.stage.runner
    runner.on_dispatch = runner.on_revoke = runner.ignore
    assert detached_.respond().short == (500, "dispatch_ambiguous")
    ending.end_session(stage.session.pk, SessionState.COMPLETED)
    assert runner.revoked(stage.dispatched)
    assert (detached_.claims[0].state, detached_.statuses) == (ClaimState.RETIRED, ["answered"])
    assert detached_.respond().body["delivery"] == "undelivered"


@pytest.mark.scenario("R12", "D5")
def test_the_dispatch_record_outlives_markers_and_intent(answered_: Question) -> None:
    dispatch = Dispatch.objects.get(claim_id=answered_.claims[0].pk)
    assert dispatch.turn_id == answered_.stage.turn.pk
    assert dispatch.claimed_message_ids == [str(row.pk) for row in answered_.rows]
    assert (dispatch.state, answered_.stage.turn.metadata) == (DispatchState.PUBLISHED, {})
    assert answered_.rows[0].metadata["claim_id"] == str(answered_.claims[0].pk)


@pytest.mark.scenario("E5", "R12", "D5")
def test_a_frame_of_the_successor_proves_that_it_ran_whatever_the_word_says(detached_: Question, settings: Any) -> None:
    settings.KANDEV_DELIVERY_TIMEOUT_S = 1
    stage, runner = detached_.stage, detached_.stage.runner
    runner.on_dispatch = runner.on_revoke = runner.ignore
    assert detached_.respond().short == (500, "dispatch_ambiguous")
    stage.says("frame", kind="message", content="on it")
    assert not runner.revoked(stage.dispatched)
    background.settle()
    assert stage.dispatches() == [DispatchState.PUBLISHED]
    assert detached_.respond().body["delivery"] == "delivered"


@pytest.mark.scenario("R17", "L5")
def test_an_ordinary_prompt_nobody_confirmed_keeps_its_message_and_repeats_its_verdict(
    running_session: Stage, settings: Any
) -> None:
    settings.KANDEV_DELIVERY_TIMEOUT_S = 1
    stage, runner = running_session, running_session.runner
    stage.ready()
    background.settle()
    runner.on_dispatch = runner.on_revoke = runner.ignore
    for _ in range(2):
        with pytest.raises(DispatchAmbiguous):
            stage.send("more", "key")
    assert Message.objects.filter(content="more").count() == 1
    assert len(runner.got("dispatch")) == 2
    runner.on_dispatch = runner.accept
    assert runner.revoked(stage.dispatched)
    Admission.objects.update(retry_at=None)
    background.settle()
    draining.drain(stage.session.pk)
    assert [frame["prompt"] for frame in runner.got("dispatch")] == ["go", "more", "more"]
    assert Message.objects.filter(content="more").count() == 1
    assert stage.send("more", "key").status == 200


@pytest.mark.scenario("R17", "L5")
def test_a_prompt_that_was_refused_leaves_nothing_and_its_key_may_be_used_again(running_session: Stage) -> None:
    stage, runner = running_session, running_session.runner
    stage.ready()
    background.settle()
    runner.on_dispatch = runner.reject
    with pytest.raises(admitting.DispatchFailed):
        stage.send("more", "key")
    assert not Message.objects.filter(content="more").exists()
    assert not Admission.objects.filter(client_message_id="key").exists()
    assert stage.turns() == 1
    runner.on_dispatch = runner.accept
    assert stage.send("more", "key").status == 201


@pytest.mark.scenario("D6", "R15")
def test_a_replay_that_fails_again_keeps_the_marker_and_the_session_closed(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = detached_.stage
    with monkeypatch.context() as broken:
        broken.setattr(failpoints, "_active", {"dispatch.after_accept": (True, 1)})
        broken.setattr(failpoints, "_passes", {})
        assert detached_.respond().short == (500, "dispatch_accepted_unpublished")
    stage.ready()
    with monkeypatch.context() as broken:
        broken.setattr("turns.publishing._announce", fail)
        with pytest.raises(RuntimeError):
            recovering.recover_reservations()
    assert (stage.turn.dispatch_pending, busy.is_busy(stage.session.pk)) == (True, True)
    assert stage.send("hello").body["admission"] == "queued"
    recovering.recover_reservations()
    background.settle()
    assert not stage.turn.dispatch_pending
    until(lambda: stage.dispatched["prompt"] == "hello")
