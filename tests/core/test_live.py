"""Answering while the agent waits (C1 to C5, C9, B5, R20, R22, R34)."""

from typing import Any

import pytest

from clarifications import confirming, leases
from clarifications.models import Claim, ClaimState, LeaseKind, WaiterLease, Watchdog
from tasks import failpoints
from tests.support.climbing import SKIP, Question, Stage, answers
from tests.support.threads import beside
from tests.support.waiting import never, until
from turns import background
from turns.models import Message


@pytest.mark.scenario("C1", "K3")
def test_the_answer_reaches_the_waiting_agent_in_the_same_turn(asked_: Question) -> None:
    stage, agent = asked_.stage, asked_.waits()
    got = asked_.respond()
    assert got.short == (200, True)
    assert (got.body["status"], got.body["delivery"]) == ("answered", "delivered")
    assert agent.ended().response == got.body["response"]
    assert (stage.turns(), len(stage.runner.got("dispatch")), stage.runner.got("cancel")) == (1, 1, [])
    assert (asked_.state, stage.pending_action()) == ("terminal", None)


@pytest.mark.scenario("B6")
@pytest.mark.parametrize("keeps_alive", [False, True])
def test_an_idle_wait_asks_the_database_nothing_however_long_it_lasts(
    asked_: Question, monkeypatch: pytest.MonkeyPatch, settings: Any, keeps_alive: bool
) -> None:
    """Ten thousand of them may be open. A hint or the poll that looks after all of them wakes it."""
    settings.KANDEV_KEEPALIVE_S = 0.02
    look, looks, told = confirming.look, list[leases.Lease](), list[float]()

    def counted(lease: leases.Lease) -> object:
        looks.append(lease)
        return look(lease)

    async def note(waited_s: float) -> None:
        told.append(waited_s)

    monkeypatch.setattr(confirming, "look", counted)
    agent = asked_.waits(on_keepalive=note if keeps_alive else None)
    if keeps_alive:
        until(lambda: len(told) > 20, what="it was kept alive")
        assert told == sorted(told)
    never(lambda: len(looks) > 1, seconds=0.5, what="a second look")
    assert asked_.respond().short == (200, True)
    assert agent.ended().code == "answered"


@pytest.mark.scenario("C1", "K3")
def test_the_winner_hears_200_only_after_the_waiter_confirmed(
    asked_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The confirm is held back: the responder waits; its watchdog stands before the waiter returns."""
    from threading import Event

    held, go = Event(), Event()
    confirm = confirming.confirm

    def slow(lease: WaiterLease) -> object:
        held.set()
        assert go.wait(10)
        return confirm(lease)

    agent = asked_.waits()
    monkeypatch.setattr(confirming, "confirm", slow)
    answer = beside(asked_.respond)
    assert held.wait(10)
    assert not answer.done()
    assert not Watchdog.objects.exists()
    go.set()
    assert answer.result(10).short == (200, True)
    assert Watchdog.objects.count() == 1
    agent.ended()


@pytest.mark.scenario("C2", "R34", "D8")
def test_a_skip_reaches_the_waiting_agent_with_its_reason(asked_: Question) -> None:
    first, second = asked_.waits(), asked_.waits()
    got = asked_.respond({"rejected": True, "reject_reason": "  too early  "})
    assert (got.short, got.body["status"]) == ((200, True), "rejected")
    for agent in (first, second):
        said = agent.ended().response
        assert said is not None
        assert (said["rejected"], said["reject_reason"], said["answers"]) == (True, "too early", [])
    assert not Watchdog.objects.exists()
    until(lambda: asked_.claims[0].reject_reason == "", what="the reason is dropped once every waiter has it")
    again = asked_.respond()
    assert again.short == (200, False)
    assert again.body["response"]["reject_reason"] == ""
    assert again.body["response"]["responded_at"] == got.body["response"]["responded_at"]


@pytest.mark.scenario("B5")
def test_two_waiters_both_get_the_answer(asked_: Question) -> None:
    first, second = asked_.waits(), asked_.waits()
    got = asked_.respond()
    assert first.ended().response == second.ended().response == got.body["response"]
    assert len(asked_.claims) == 1


@pytest.mark.scenario("C1")
def test_an_answer_before_the_wait_is_handed_over_when_the_wait_comes(asked_: Question) -> None:
    answer = beside(asked_.respond)
    until(lambda: asked_.claims, what="the claim")
    agent = asked_.waits()
    assert answer.result(10).short == (200, True)
    assert agent.ended().response == answer.result().body["response"]
    assert asked_.stage.turns() == 1


@pytest.mark.scenario("R22", "R20", "B5")
def test_a_wait_that_comes_after_the_confirm_gets_the_same_response(asked_: Question) -> None:
    agent = asked_.waits(writes=False)
    got = asked_.respond()
    assert agent.ended().response == got.body["response"]
    assert asked_.stage.ask().pending_id == asked_.pending_id
    assert asked_.waits().ended().response == got.body["response"]
    assert asked_.stage.turns() == 1


@pytest.mark.scenario("R20", "B3")
def test_the_same_questions_are_new_ones_once_the_answer_was_taken(asked_: Question) -> None:
    agent = asked_.waits()
    asked_.respond()
    agent.ended()
    until(lambda: not Claim.objects.filter(replayable=True).exists())
    assert asked_.stage.ask().pending_id != asked_.pending_id


@pytest.mark.scenario("R20", "R22")
def test_an_answer_that_went_by_dispatch_is_never_given_to_a_wait_or_an_ask(answered_: Question) -> None:
    assert answered_.waits().ended().code == "detached"
    assert answered_.stage.ask().pending_id != answered_.pending_id


@pytest.mark.scenario("R22")
def test_a_wait_on_a_question_rejected_while_detached_hears_detached(detached_: Question) -> None:
    detached_.respond(SKIP)
    ended = detached_.waits().ended()
    assert (ended.code, ended.response) == ("detached", None)


@pytest.mark.scenario("R22", "D8")
def test_a_wait_on_a_question_rejected_while_nobody_waited_hears_detached_although_the_turn_runs(
    asked_: Question,
) -> None:
    agent = asked_.waits()
    agent.hang_up()
    agent.ended()
    until(lambda: asked_.state == "active_detached")
    asked_.respond(SKIP)
    ended = asked_.waits().ended()
    assert (ended.code, ended.response) == ("detached", None)


@pytest.mark.scenario("C3", "C9", "D12")
def test_a_waiter_that_cannot_confirm_keeps_the_answer_to_itself(
    asked_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the budget later the responder gives it up; without a runner the claim is given back."""
    asked_.stage.runner.disconnect()
    monkeypatch.setattr(confirming, "confirm", lambda lease: None)
    agent = asked_.waits()
    got = asked_.respond()
    assert got.short == (503, "delivery_failed")
    assert got.body["retryable"] is True
    assert asked_.statuses == ["pending"]
    agent.hang_up()
    assert agent.ended().response is None


@pytest.mark.scenario("C3", "E1")
def test_a_claim_that_nobody_confirmed_is_given_back_by_recovery(
    asked_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.utils import timezone

    from clarifications import recovering

    monkeypatch.setattr(confirming, "confirm", lambda lease: None)
    agent = asked_.waits()
    monkeypatch.setattr(failpoints, "_active", {"respond.after_claim": (True, 1)})
    monkeypatch.setattr(failpoints, "_passes", {})
    assert asked_.respond().status == 500
    Claim.objects.update(owner=999_999)
    recovering.recover_claims()
    assert asked_.claims[0].state == ClaimState.CLAIMED  # its waiter lives, and has until then
    Claim.objects.update(attended_until=timezone.now())
    recovering.recover_claims()
    assert (asked_.statuses, asked_.claims[0].state) == (["pending"], ClaimState.RESTORED)
    assert "response" not in asked_.rows[0].metadata
    monkeypatch.undo()
    assert asked_.respond().short == (200, True)
    assert agent.ended().code == "answered"


@pytest.mark.scenario("C5", "K5")
def test_a_waiter_that_vanished_leaves_the_detached_path_at_once(asked_: Question) -> None:
    stage, agent = asked_.stage, asked_.waits()
    agent.hang_up()
    agent.ended()
    got = asked_.respond()
    assert got.short == (200, True)
    assert stage.turns() == 2
    assert len(stage.runner.got("cancel")) == 1


@pytest.mark.scenario("C5")
def test_a_waiter_that_vanishes_after_the_claim_does_not_use_up_the_budget(
    asked_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.utils import timezone

    monkeypatch.setattr(confirming, "confirm", lambda lease: None)
    agent = asked_.waits()
    began = timezone.now()
    answer = beside(asked_.respond)
    until(lambda: asked_.claims)
    agent.hang_up()
    assert answer.result(10).short == (200, True)
    assert (timezone.now() - began).total_seconds() < 2.5
    assert (agent.ended().response, asked_.stage.turns()) == (None, 2)


@pytest.mark.scenario("C9", "D3")
def test_a_failed_hand_over_is_retryable_and_the_retry_reaches_the_waiter(
    asked_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("the link broke")

    with monkeypatch.context() as broken:
        broken.setattr("clarifications.delivering._await_waiter", fail)
        got = asked_.respond()
    assert (got.short, got.body["retryable"]) == ((503, "delivery_failed"), True)
    assert asked_.statuses == ["pending"]
    agent = asked_.waits()
    assert asked_.respond().short == (200, True)
    assert agent.ended().code == "answered"
    assert asked_.stage.turns() == 1


@pytest.mark.scenario("C9")
def test_a_hand_over_that_fails_after_the_confirm_is_a_success(
    asked_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clarifications import delivering

    waits = delivering._await_waiter

    def fail_after(*args: object) -> None:
        waits(*args)  # type: ignore[arg-type]
        raise RuntimeError("too late")

    monkeypatch.setattr(delivering, "_await_waiter", fail_after)
    agent = asked_.waits()
    got = asked_.respond()
    assert got.short == (200, True)
    assert agent.ended().response == got.body["response"]


@pytest.mark.scenario("C4")
def test_confirming_twice_takes_the_claim_once(asked_: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = _lease(asked_)
    answer = beside(asked_.respond)
    until(lambda: asked_.claims)
    first = confirming.confirm(lease)
    assert first is not None
    assert first.code == "answered"
    assert confirming.confirm(lease) is None
    assert answer.result(10).short == (200, True)
    assert Watchdog.objects.count() == 1


def _lease(question: Question) -> leases.Held:
    from clarifications import standing

    lease = standing.begin(question.stage.agent, question.pending_id, LeaseKind.REST)
    assert isinstance(lease, leases.Held)
    return lease


@pytest.mark.scenario("R7", "R11a")
def test_a_waiter_without_its_own_lease_confirms_nothing(asked_: Question) -> None:
    mine, other = _lease(asked_), _lease(asked_)
    assert leases.end(mine.pk)
    answer = beside(asked_.respond)
    until(lambda: asked_.claims)
    assert confirming.confirm(mine) is None
    assert asked_.claims[0].state == ClaimState.CLAIMED
    assert confirming.confirm(other) is not None
    assert answer.result(10).short == (200, True)


@pytest.mark.scenario("C5", "F1")
def test_hanging_up_after_the_confirm_changes_nothing(asked_: Question) -> None:
    agent = asked_.waits()
    got = asked_.respond()
    agent.ended()
    background.settle()
    before = list(Message.objects.bundle(asked_.pending_id).values())
    lease = WaiterLease(session_id=asked_.stage.session.pk, pending_id=asked_.pending_id, turn_id=asked_.stage.turn.pk)
    assert confirming.leave(lease, lost=True) is None
    assert list(Message.objects.bundle(asked_.pending_id).values()) == before
    assert asked_.respond(answers(pick="b")).body["response"] == got.body["response"]


@pytest.mark.scenario("R6")
def test_a_waiter_is_given_up_at_once_when_its_turn_ends(asked_: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.utils import timezone

    monkeypatch.setattr(confirming, "confirm", lambda lease: None)
    stage, agent = asked_.stage, asked_.waits()
    began = timezone.now()
    answer = beside(asked_.respond)
    until(lambda: asked_.claims)
    stage.ready()
    assert answer.result(10).short == (200, True)
    assert (timezone.now() - began).total_seconds() < 2.5
    assert (agent.ended().response, stage.turns(), stage.runner.got("cancel")) == (None, 2, [])


@pytest.mark.scenario("R9", "R6")
def test_a_detached_answer_pauses_the_turn_of_a_live_sibling(running_session: Stage) -> None:
    """The detached one goes by dispatch; the live one detaches and, the answer being accepted, is history."""
    from tests.core.test_apart import ask_another

    detached = running_session.ask()
    gone = detached.waits()
    gone.hang_up()
    gone.ended()
    live = ask_another(detached)
    agent = live.waits()
    assert detached.respond().short == (200, True)
    assert agent.ended().code in {"detached", "superseded"}
    assert len(running_session.runner.got("cancel")) == 1
    assert (live.state, live.statuses) == ("superseded_history", ["pending", "pending"])


@pytest.mark.scenario("R9", "D3")
def test_a_live_sibling_stays_answerable_when_the_detached_answer_is_refused(running_session: Stage) -> None:
    from tests.core.test_apart import ask_another

    detached = running_session.ask()
    gone = detached.waits()
    gone.hang_up()
    gone.ended()
    live = ask_another(detached)
    agent = live.waits()
    running_session.runner.on_dispatch = running_session.runner.reject
    assert detached.respond().short == (503, "delivery_failed")
    assert agent.ended().code == "detached"
    assert (live.state, detached.state) == ("active_detached", "active_detached")
    running_session.runner.on_dispatch = running_session.runner.accept
    assert live.respond().short == (200, True)


@pytest.mark.scenario("K4", "R23")
def test_another_question_of_the_turn_is_a_sign_of_life(asked_: Question) -> None:
    """The agent has gone on from its answer, so a pause of the second wait owes it no fallback."""
    agent = asked_.waits()
    asked_.respond()
    agent.ended()
    until(lambda: Watchdog.objects.filter(returned_at__isnull=False).exists(), what="the return is recorded")
    assert Watchdog.objects.filter(state="armed").count() == 1
    asked_.stage.ask(2)
    assert list(Watchdog.objects.values_list("state", "closed_because")) == [("closed", "activity")]
