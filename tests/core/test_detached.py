"""Answering a detached question: one dispatch, or everything as before (D1 to D8, D12, D14)."""

import importlib
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from clarifications.models import Claim, ClaimState
from tasks import failpoints
from tasks.models import SessionState
from tests.core.outcomes import as_before, retries
from tests.support.climbing import (
    SKIP,
    Question,
    Stage,
    add_session,
    add_turn,
)
from tests.support.waiting import until
from turns import attempting, background, recovering, settling
from turns.models import Dispatch, DispatchState, Turn


@pytest.mark.scenario("D1")
def test_success_means_accepted_published_and_cleared_while_the_turn_still_runs(detached_: Question) -> None:
    stage = detached_.stage
    got = detached_.respond()
    assert got.short == (200, True)
    assert (got.body["delivery"], got.body["status"]) == ("delivered", "answered")
    assert stage.dispatches() == [DispatchState.PUBLISHED]
    assert (stage.turns(), stage.turn.completed_at, stage.fresh().state) == (2, None, SessionState.RUNNING)
    assert stage.turn.metadata == {}
    assert [claim.state for claim in detached_.claims] == [ClaimState.FINALIZED]
    assert "response_delivery_pending" not in detached_.rows[0].metadata
    assert detached_.pending_id in stage.dispatched["prompt"]
    assert [event.payload["turn"]["id"] for event in stage.events("turn.started")][-1] == str(stage.turn.pk)


@pytest.mark.scenario("D2")
def test_the_steps_come_in_their_order(detached_: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def watch(where: str, name: str) -> None:
        module = importlib.import_module(where)
        original = getattr(module, name)

        def recorded(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            order.append(name)
            return result

        monkeypatch.setattr(module, name, recorded)

    for where, name in (
        ("clarifications.claiming", "_store"),
        ("turns.reserving", "reserve"),
        ("turns.attempting", "_mark"),
        ("turns.settling", "accept"),
        ("turns.publishing", "_announce"),
        ("turns.publishing", "_clear"),
    ):
        watch(where, name)

    def called(frame: dict[str, Any]) -> None:
        order.append("call")
        settling.accept(uuid.UUID(frame["dispatch_id"]), "runner-1")

    detached_.stage.runner.on_dispatch = called
    assert detached_.respond().short == (200, True)
    assert order == ["_store", "reserve", "_mark", "call", "accept", "_announce", "_clear"]


@pytest.mark.scenario("D2", "R11a")
def test_the_intent_and_the_markers_go_in_the_transaction_that_tells_the_rows(detached_: Question) -> None:
    stage = detached_.stage
    assert detached_.respond().short == (200, True)
    told = [(event.action, event.payload) for event in stage.events()]
    actions = [action for action, _ in told]
    started = len(actions) - 1 - actions[::-1].index("turn.started")
    rows = [n for n, (action, body) in enumerate(told) if action == "session.message.updated" and _answers(body)]
    assert rows
    assert min(rows) > started
    assert not Turn.objects.filter(dispatch_pending=True).exists()
    assert not Claim.objects.open().exists()


def _answers(body: dict[str, Any]) -> bool:
    return bool(body["message"]["metadata"].get("status") == "answered")


@pytest.mark.scenario("D2", "E2")
def test_the_attempt_is_stored_before_the_executor_is_called(detached_: Question) -> None:
    seen: list[tuple[str, bool, str]] = []

    def look(frame: dict[str, Any]) -> None:
        turn = Turn.objects.get(pk=frame["turn_id"])
        seen.append((Dispatch.objects.get(turn_id=turn.pk).state, turn.dispatch_attempted, detached_.claims[0].state))
        detached_.stage.runner.accept(frame)

    detached_.stage.runner.on_dispatch = look
    detached_.respond()
    assert seen == [("attempted", True, "claimed")]


@pytest.mark.scenario("D3")
@pytest.mark.parametrize("code", ["busy", "unknown_agent", "already_received"])
def test_a_refusal_leaves_everything_as_before(detached_: Question, code: str) -> None:
    runner = detached_.stage.runner
    runner.on_dispatch = lambda frame: runner.reject(frame, code, "because of that")
    got = detached_.respond()
    as_before(detached_, got)
    assert got.code == "delivery_failed"
    assert "because of that" in got.body["error"]
    retries(detached_)


@pytest.mark.scenario("D3", "D10")
def test_rows_are_restored_and_told_after_each_of_several_refusals(detached_: Question) -> None:
    stage = detached_.stage
    stage.runner.on_dispatch = stage.runner.reject
    for _ in range(3):
        before = len(stage.events("session.message.updated"))
        as_before(detached_, detached_.respond())
        told = stage.events("session.message.updated")[before:]
        assert told[-1].payload["message"]["metadata"]["status"] == "pending"
    retries(detached_)


@pytest.mark.scenario("D4")
def test_without_a_stored_attempt_the_executor_is_not_called(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> bool:
        raise RuntimeError("the marker cannot be stored")

    monkeypatch.setattr(attempting, "_mark", fail)
    before = len(detached_.stage.runner.got("dispatch"))
    got = detached_.respond()
    assert len(detached_.stage.runner.got("dispatch")) == before
    as_before(detached_, got)
    monkeypatch.undo()
    retries(detached_)


@pytest.mark.scenario("D4")
def test_an_attempt_that_was_stored_though_its_reply_was_lost_is_carried_on(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = attempting.attempt

    def stored_but_lost(*args: Any) -> bool:
        assert attempt(*args)
        raise RuntimeError("the connection broke after the commit")

    monkeypatch.setattr(attempting, "attempt", stored_but_lost)
    assert detached_.respond().short == (200, True)
    assert detached_.stage.dispatches() == [DispatchState.PUBLISHED]


@pytest.mark.scenario("D5", "R6", "R13")
def test_silence_is_revoked_inside_the_budget_and_ends_as_before(detached_: Question, settings: Any) -> None:
    settings.KANDEV_DELIVERY_TIMEOUT_S = 2
    runner = detached_.stage.runner
    runner.on_dispatch = runner.ignore
    got = detached_.respond()
    assert len(runner.got("revoke")) == 1
    as_before(detached_, got)
    retries(detached_)


@pytest.mark.scenario("D5", "R13")
def test_accepted_in_reply_to_a_revoke_counts(detached_: Question, settings: Any) -> None:
    settings.KANDEV_DELIVERY_TIMEOUT_S = 2
    runner = detached_.stage.runner
    runner.on_dispatch, runner.on_revoke = runner.ignore, runner.accept
    assert detached_.respond().short == (200, True)
    assert detached_.stage.dispatches() == [DispatchState.PUBLISHED]


@pytest.mark.scenario("D5", "R10", "R14")
@pytest.mark.parametrize("word", ["accepted", "revoked", "rejected"])
def test_what_nobody_confirmed_is_ambiguous_until_a_late_word_settles_it(
    detached_: Question, settings: Any, word: str
) -> None:
    stage, runner = detached_.stage, detached_.stage.runner
    settings.KANDEV_DELIVERY_TIMEOUT_S, settings.KANDEV_CLAIM_TIMEOUT_S = 1, 0.3
    runner.on_dispatch = runner.on_revoke = runner.ignore
    got = detached_.respond()
    assert (got.short, got.body["retryable"]) == ((500, "dispatch_ambiguous"), False)
    assert (detached_.statuses, detached_.state) == (["answered"], "terminal")
    again = detached_.respond()
    assert (again.short, again.body["delivery"]) == ((200, False), "pending")
    assert len(runner.got("dispatch")) == 2
    settling_words: dict[str, Callable[[dict[str, Any]], bool]] = {
        "accepted": runner.accept,
        "revoked": runner.revoked,
        "rejected": runner.reject,
    }
    assert settling_words[word](stage.dispatched)
    assert not settling_words[word](stage.dispatched)
    background.settle()
    if word == "accepted":
        assert stage.dispatches() == [DispatchState.PUBLISHED]
        assert detached_.respond().body["delivery"] == "delivered"
        assert stage.fresh().state == SessionState.RUNNING
    else:
        assert (detached_.statuses, detached_.state) == (["pending"], "active_detached")
        retries(detached_)


@pytest.mark.scenario("D6", "R18")
@pytest.mark.parametrize("step", ["dispatch.after_accept", "dispatch.after_publish"])
def test_a_publication_that_fails_is_final_and_made_up_by_recovery(
    detached_: Question, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    stage = detached_.stage
    monkeypatch.setattr(failpoints, "_active", {step: (True, 1)})
    monkeypatch.setattr(failpoints, "_passes", {})
    got = detached_.respond()
    assert (got.short, got.body["retryable"]) == ((500, "dispatch_accepted_unpublished"), False)
    assert (detached_.statuses, detached_.state) == (["answered"], "terminal")
    assert stage.turn.pk == Turn.objects.get(pk=stage.dispatched["turn_id"]).pk
    assert stage.fresh().state != SessionState.RUNNING
    assert detached_.respond().short == (200, False)
    monkeypatch.undo()
    recovering.recover_reservations()
    recovering.recover_reservations()
    assert stage.dispatches() == [DispatchState.PUBLISHED]
    assert (stage.fresh().state, stage.turn.metadata) == (SessionState.RUNNING, {})
    assert len(stage.runner.got("dispatch")) == 2


@pytest.mark.scenario("D7")
def test_an_agent_that_fails_after_acceptance_is_cleaned_up_and_the_rows_stay(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = detached_.stage

    def take_and_break(frame: dict[str, Any]) -> None:
        stage.runner.accept(frame)
        stage.runner.say("failed", frame, error="the transport broke", fatal=False)

    stage.runner.on_dispatch = take_and_break
    monkeypatch.setattr(failpoints, "_active", {"dispatch.after_accept": (True, 1)})
    monkeypatch.setattr(failpoints, "_passes", {})
    assert detached_.respond().short == (500, "dispatch_accepted_unpublished")
    monkeypatch.undo()
    recovering.recover_reservations()
    background.settle()
    until(lambda: stage.turn.end_reason == "failed")
    background.settle()
    assert stage.fresh().state == SessionState.WAITING
    assert detached_.statuses == ["answered"]
    assert [
        event.action for event in stage.events() if event.payload.get("turn", {}).get("id") == str(stage.turn.pk)
    ] == ["turn.started", "turn.completed"]


@pytest.mark.scenario("D8")
def test_a_rejection_is_stored_and_resumes_nobody(detached_: Question) -> None:
    stage = detached_.stage
    before = len(stage.runner.frames)
    got = detached_.respond(SKIP)
    background.settle()
    assert (got.short, got.body["status"], got.body["delivery"]) == ((200, True), "rejected", "delivered")
    assert got.body["response"]["reject_reason"] == "not now"
    assert (stage.turns(), stage.dispatches(), len(stage.runner.frames)) == (1, [], before)
    assert (stage.fresh().state, stage.pending_action(), detached_.state) == (SessionState.WAITING, None, "terminal")
    assert detached_.claims[0].reject_reason == ""
    again = detached_.respond()
    assert (again.body["status"], again.body["response"]["reject_reason"]) == ("rejected", "")


@pytest.mark.scenario("D8", "R8", "D12")
def test_a_rejection_needs_no_runner(detached_: Question) -> None:
    detached_.stage.runner.disconnect()
    assert detached_.respond(SKIP).short == (200, True)


@pytest.mark.scenario("D12")
@pytest.mark.parametrize("why", ["no runner", "another agent", "full"])
def test_without_a_runner_for_the_agent_it_ends_as_before_and_says_why(detached_: Question, why: str) -> None:
    stage, runner = detached_.stage, detached_.stage.runner
    stage.session.runner_id = ""
    type(stage.session).objects.filter(pk=stage.session.pk).update(runner_id="")
    if why == "no runner":
        runner.disconnect()
    elif why == "another agent":
        runner.agents = ["other"]
        runner.connect()
    else:
        runner.max_sessions = 1
        runner.connect()
        _occupied(stage)
    got = detached_.respond()
    as_before(detached_, got)
    assert ("busy" if why == "full" else "no connected runner offers the agent demo") in got.body["error"]
    runner.agents, runner.max_sessions = ["demo"], 50
    runner.connect()
    retries(detached_)


def _occupied(stage: Stage) -> None:
    add_turn(add_session(stage.task), runner_id=stage.runner.runner_id)


@pytest.mark.scenario("D12")
def test_a_session_waits_for_its_own_runner_and_says_so(detached_: Question) -> None:
    detached_.stage.runner.disconnect()
    got = detached_.respond()
    as_before(detached_, got)
    assert "runner-1" in got.body["error"]
