"""Two writers at the same moment (G1, C4, R11, R7, F2), each with a negative control: with the guard taken away the
second writer runs in the gap and the damage must show."""

import uuid
from collections.abc import Callable
from functools import partial

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from clarifications import answers as rules
from clarifications import bundles, claiming, closing, confirming, detaching, leases, restoring, rows
from clarifications.claiming import Lost
from clarifications.errors import NotActive
from clarifications.models import Claim, ClaimState, LeaseKind
from clarifications.standing import Ended
from tasks import ending, revisions
from tasks.models import SessionState
from tests.support.climbing import Outcome, Question, Stage, add_row, answers, by_hand
from tests.support.unguarded import first, no_constraint, no_locks
from tests.support.waiting import at_once
from turns import admitting, attempting, busy, reserving
from turns import ending as turn_ending
from turns.models import Dispatch, DispatchKind, DispatchState, EndReason, Runner, RunnerFrame

pytestmark = pytest.mark.usefixtures("serving")
ROUNDS, SOME = 60, 25


@pytest.fixture
def scene(serving: None) -> Stage:
    return by_hand()


def detached(scene: Stage) -> Question:
    row = add_row(scene.session, scene.turn.pk, {"agent_disconnected": True})
    return Question(scene, row.metadata["pending_id"])


def live(scene: Stage) -> tuple[Question, leases.Held]:
    question = Question(scene, add_row(scene.session, scene.turn.pk).metadata["pending_id"])
    with transaction.atomic():
        lease = leases.begin(scene.session.pk, scene.turn.pk, question.pending_id, LeaseKind.REST, timezone.now())
    return question, lease


def claim(question: Question, pick: str = "a") -> Claim | Lost:
    bundle = bundles.reach(question.stage.person, question.pending_id)
    said = rules.clean(answers(pick=pick, text=pick), bundle.rows)
    return claiming.claim(question.stage.person, bundle, said, timezone.now() + leases.budget())


def claimed(question: Question) -> Claim:
    made = claim(question)
    assert isinstance(made, Claim)
    return made


# --- answer against answer ----------------------------------------------------------------------------------------


@pytest.mark.scenario("G1", "G2", "R29")
@pytest.mark.timeout(400)
def test_of_two_answers_at_once_one_wins_and_the_other_hears_what_it_said(scene: Stage) -> None:
    for _ in range(ROUNDS):
        question = detached(scene)
        found = at_once(*[partial(claim, question, pick) for pick in ("a", "b")])
        won = [item for item in found if isinstance(item, Claim)]
        lost = [item for item in found if isinstance(item, Lost)]
        assert (len(won), len(lost)) == (1, 1), found
        assert lost[0].body["response"] == won[0].response
        assert (lost[0].body["claimed"], lost[0].body["delivery"]) == (False, "pending")
        assert question.rows[0].metadata["response"] == won[0].response["answers"][0]
        assert len(question.claims) == 1
        Claim.objects.update(state=ClaimState.FINALIZED)


@pytest.mark.scenario("G1", "G3", "D8")
@pytest.mark.timeout(400)
def test_two_rejections_at_once_are_one_rejection(scene: Stage) -> None:
    for _ in range(SOME):
        question = detached(scene)
        payloads = [{"rejected": True, "reject_reason": name} for name in ("one", "two")]
        found = at_once(*[partial(question.respond, payload) for payload in payloads])
        outcomes = [outcome for outcome in found if isinstance(outcome, Outcome)]
        assert sorted(outcome.short for outcome in outcomes) == [(200, False), (200, True)], found
        winner, loser = sorted(outcomes, key=lambda outcome: not outcome.body["claimed"])
        assert loser.body["response"] == {**winner.body["response"], "reject_reason": ""}
        assert [made.state for made in question.claims] == [ClaimState.FINALIZED]


@pytest.mark.scenario("G1")
def test_control_without_lock_and_constraint_two_answers_win(scene: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    question = detached(scene)
    with no_constraint(Claim, "claim_one_open"), no_locks(monkeypatch) as patch:
        between = first(patch, claiming, "_store", lambda: claim(question, "b"))
        won = claim(question, "a")
        assert [type(won), type(between[0])] == [Claim, Claim]
        assert len(question.claims) == 2


@pytest.mark.scenario("G1", "R11a")
def test_without_the_lock_the_constraint_still_refuses_the_second_claim(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = detached(scene)
    with no_locks(monkeypatch) as patch:
        first(patch, claiming, "_store", lambda: claim(question, "b"))
        with pytest.raises(IntegrityError, match=r"claim_one_open|pending_id"):
            claim(question, "a")
    assert len(question.claims) == 1


# --- confirm against restore --------------------------------------------------------------------------------------


@pytest.mark.scenario("C4", "R7", "E10")
@pytest.mark.timeout(300)
def test_either_the_confirm_or_the_restore_wins(scene: Stage) -> None:
    winners = set()
    for _ in range(SOME):
        question, lease = live(scene)
        made = claimed(question)
        confirmed, restored = at_once(partial(confirming.confirm, lease), partial(restoring.restore, made.pk))
        state = question.claims[0].state
        winners.add(state)
        if state == ClaimState.CONFIRMED:
            assert (restored, question.statuses) == (False, ["answered"])
            assert isinstance(confirmed, Ended)
        else:
            assert (confirmed, restored, state, question.statuses) == (None, True, "restored", ["pending"])
        Claim.objects.update(state=ClaimState.FINALIZED)
    assert winners <= {ClaimState.CONFIRMED, ClaimState.RESTORED}


@pytest.mark.scenario("C4")
def test_without_the_lock_the_guarded_update_still_refuses_the_late_confirm(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, lease = live(scene)
    made = claimed(question)
    with no_locks(monkeypatch) as patch:
        between = first(patch, confirming, "_take", lambda: restoring.restore(made.pk))
        assert confirming.confirm(lease) is None
    assert (between, question.claims[0].state, question.statuses) == ([True], ClaimState.RESTORED, ["pending"])


@pytest.mark.scenario("C4")
def test_control_without_the_guard_the_answer_is_given_out_and_pending_again(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, lease = live(scene)
    made = claimed(question)
    with no_locks(monkeypatch) as patch:

        def take(claim_id: uuid.UUID) -> bool:
            return bool(Claim.objects.filter(pk=claim_id).update(state=ClaimState.CONFIRMED))

        patch.setattr(confirming, "_take", take)
        first(patch, confirming, "_take", lambda: restoring.restore(made.pk))
        ended = confirming.confirm(lease)
    assert ended is not None
    assert question.statuses == ["pending"]


# --- cancel against claim -----------------------------------------------------------------------------------------


@pytest.mark.scenario("R11", "F5", "C5")
@pytest.mark.timeout(300)
def test_either_the_cancel_or_the_answer_wins(scene: Stage) -> None:
    for _ in range(SOME):
        question, _ = live(scene)
        cancelled, answered = at_once(partial(_cancel, question), partial(claim, question))
        if isinstance(answered, Claim):
            assert isinstance(cancelled, NotActive)
            assert question.statuses == ["answered"]
        else:
            assert (cancelled, type(answered), question.statuses) == (None, NotActive, ["cancelled"])
            assert not question.claims
        Claim.objects.update(state=ClaimState.FINALIZED)


def _cancel(question: Question) -> None:
    closing.cancel(question.stage.person, question.pending_id)


@pytest.mark.scenario("R11")
def test_control_without_the_lock_a_cancel_overwrites_the_answer(scene: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    question, _ = live(scene)
    with no_locks(monkeypatch) as patch:
        between = first(patch, leases, "is_live", lambda: claim(question))
        _cancel(question)
    assert isinstance(between[0], Claim)
    assert question.statuses == ["cancelled"]


# --- attempt against the session's end ----------------------------------------------------------------------------


def reserved(scene: Stage, question: Question | None = None) -> Dispatch:
    """A reservation of the session, whose turn has ended; with a question it carries its claimed answer."""
    made = claimed(question) if question is not None else None
    turn_ending.end_turn(scene.session.pk, scene.turn.pk, EndReason.READY, timezone.now())
    with transaction.atomic():
        session = revisions.lock_session(scene.session.pk)
        order = reserving.Order(
            DispatchKind.ANSWER if made else DispatchKind.PROMPT,
            "go on",
            timezone.now() + leases.budget(),
            source_turn_id=scene.turn.pk,
            claim_id=made.pk if made else None,
            message_ids=list(made.message_ids) if made else [],
        )
        return reserving.reserve(session, order, timezone.now())


def a_runner(scene: Stage) -> Runner:
    scene.runner.connect()
    return Runner.objects.get(pk=scene.runner.runner_id)


@pytest.mark.scenario("R7")
@pytest.mark.timeout(300)
def test_the_first_lock_decides_between_the_attempt_and_the_session_s_end(serving: None) -> None:
    for _ in range(SOME):
        scene = by_hand()
        dispatch, runner = reserved(scene, detached(scene)), a_runner(scene)
        attempted, ended = at_once(
            partial(attempting.attempt, dispatch.pk, runner, timezone.now()),
            partial(ending.end_session, scene.session.pk, SessionState.CANCELLED),
        )
        assert ended is True
        dispatch.refresh_from_db()
        frames = RunnerFrame.objects.filter(dispatch=dispatch).count()
        assert (attempted, dispatch.state, frames) in [
            (True, DispatchState.ATTEMPTED, 1),
            (False, DispatchState.RESERVED, 0),
        ]


@pytest.mark.scenario("R7")
def test_an_ended_session_is_not_attempted(scene: Stage) -> None:
    dispatch, runner = reserved(scene), a_runner(scene)
    ending.end_session(scene.session.pk, SessionState.CANCELLED)
    assert not attempting.attempt(dispatch.pk, runner, timezone.now())
    assert not RunnerFrame.objects.filter(dispatch=dispatch).exists()


@pytest.mark.scenario("R7")
def test_control_without_the_lock_a_prompt_goes_out_to_an_ended_session(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatch, runner = reserved(scene), a_runner(scene)
    with no_locks(monkeypatch) as patch:
        first(patch, attempting, "_mark", lambda: ending.end_session(scene.session.pk, SessionState.CANCELLED))
        assert attempting.attempt(dispatch.pk, runner, timezone.now())
    assert (scene.fresh().terminal, RunnerFrame.objects.filter(dispatch=dispatch).count()) == (True, 1)


# --- detach against answer ----------------------------------------------------------------------------------------


@pytest.mark.scenario("F2")
@pytest.mark.timeout(300)
def test_a_detach_never_overwrites_an_answer(scene: Stage) -> None:
    for _ in range(SOME):
        question, lease = live(scene)
        answered, left = at_once(partial(claim, question), partial(detaching.leave, lease, timezone.now(), grace=True))
        assert isinstance(answered, Claim)
        assert left is None
        row = question.rows[0]
        assert (row.status, row.metadata["claim_id"]) == ("answered", str(answered.pk))
        Claim.objects.update(state=ClaimState.FINALIZED)


@pytest.mark.scenario("F2")
def test_control_without_the_lock_a_detach_overwrites_the_answer(scene: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    question, lease = live(scene)
    with no_locks(monkeypatch) as patch:
        between = first(patch, rows, "write", lambda: claim(question))
        detaching.leave(lease, timezone.now(), grace=True)
    assert isinstance(between[0], Claim)
    assert question.statuses == ["pending"]


# --- two reservations ---------------------------------------------------------------------------------------------


@pytest.mark.scenario("L7", "R3")
@pytest.mark.timeout(300)
def test_of_two_prompts_at_once_one_starts_a_turn_and_the_other_queues(serving: None) -> None:
    for _ in range(SOME):
        scene = by_hand()
        turn_ending.end_turn(scene.session.pk, scene.turn.pk, EndReason.READY, timezone.now())
        found = at_once(*[_entering(scene, text) for text in ("one", "two")])
        kinds = sorted(type(item).__name__ for item in found)
        assert kinds == ["Admitted", "Dispatch"], found
        assert busy.has_queue(scene.session.pk)


def _entering(scene: Stage, text: str) -> Callable[[], object]:
    return lambda: admitting._enter(scene.session.pk, text, text, None)


@pytest.mark.scenario("L7", "R3")
def test_without_the_lock_the_constraint_still_refuses_the_second_reservation(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_ending.end_turn(scene.session.pk, scene.turn.pk, EndReason.READY, timezone.now())
    with no_locks(monkeypatch) as patch:
        first(patch, reserving, "reserve", _entering(scene, "two"))
        with pytest.raises(IntegrityError, match=r"dispatch_one_unsettled|session_id"):
            _entering(scene, "one")()
    assert Dispatch.objects.count() == 1


@pytest.mark.scenario("L7", "R3")
def test_control_without_lock_and_constraint_a_session_has_two_prompts_at_once(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_ending.end_turn(scene.session.pk, scene.turn.pk, EndReason.READY, timezone.now())
    with no_constraint(Dispatch, "dispatch_one_unsettled"), no_locks(monkeypatch) as patch:
        first(patch, reserving, "reserve", _entering(scene, "two"))
        _entering(scene, "one")()
        assert Dispatch.objects.unsettled().count() == 2
