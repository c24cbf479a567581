"""Hand over: the claimed answer goes to the live waiter, else as one dispatch (contract 4, design "Durable order").

One budget holds everything (R6): a waiter that does not confirm is given up after half of it, the old turn's end is
awaited until a quarter is left, the revoke and its reply fit into the last sixth of the dispatch's share.
The caller's thread runs this to its end whether or not its client still listens (D11).
"""

import datetime as dt
import logging
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from clarifications import finalizing, leases, restoring, shapes, wording
from clarifications.errors import ConvergenceFailed, DeliveryFailed, DispatchAmbiguous, DispatchUnpublished, NotActive
from clarifications.models import Claim, ClaimPath, ClaimState
from tasks import hints, revisions, summaries
from tasks.errors import KandevError
from tasks.models import Session
from turns import dispatching, pausing, reserving, runners
from turns.models import Dispatch, DispatchKind, Message, Turn

logger = logging.getLogger(__name__)


def deliver(claim: Claim, session: Session) -> dict[str, Any]:
    """Hands the claim over and returns the winner's 200.

    Raises DeliveryFailed or ConvergenceFailed (the bundle is pending again), NotActive (retired: beaten by a newer
    turn or the session's end), DispatchUnpublished, DispatchAmbiguous (not retryable).
    """
    deadline = claim.responded_at + leases.budget()
    try:
        if not (claim.nobody_waits and claim.status == "rejected"):
            _await_waiter(claim, claim.responded_at + leases.budget() / 2)
        while claim.state == ClaimState.CLAIMED:
            if claim.status == "rejected" and _store_rejection(claim, session):
                break
            if claim.status != "rejected":
                _resume(claim, session, deadline)
            claim.refresh_from_db()
        return _conclude(claim, session)
    except KandevError:
        raise
    except Claim.DoesNotExist:  # deleted with its session, which had ended before (R7)
        raise NotActive from None
    except Exception as error:  # noqa: BLE001 - logged there; the database says what it meant
        return _after_fault(claim, session, error)


def _await_waiter(claim: Claim, until: dt.datetime) -> None:
    """Until the claim is confirmed, no waiter is left, or the waiter is given up; `claim` is fresh afterwards."""
    with hints.Waiting(leases.topic(claim.pending_id), f"session:{claim.session_id}") as waiting:
        while True:
            now = timezone.now()
            live = leases.is_live(claim.pending_id, now)
            claim.refresh_from_db()
            if claim.state != ClaimState.CLAIMED or not live or now >= until:
                return
            waiting.wait((until - now).total_seconds())


def _store_rejection(claim: Claim, session: Session) -> bool:
    """Nobody waits: a rejection is final as it is stored, and resumes nobody (D8). False when somebody else settled it.

    A waiter that came after the claim either confirms first, and the guarded update here fails, or it finds the claim
    final, and ends by itself (`confirming.look`).
    """
    if not finalizing.finalize(claim, ClaimState.CLAIMED, session):
        return False
    claim.state = ClaimState.FINALIZED
    if not claim.nobody_waits:
        with transaction.atomic():
            leases.drop_bundle(claim.pending_id)
    return True


def _resume(claim: Claim, session: Session, deadline: dt.datetime) -> None:
    """The detached path: one dispatch that carries the answer; raises when it did not come about."""
    runner, reason = runners.choose(Session.objects.get(pk=session.pk))
    if runner is None:
        _give_back(claim, session, reason)
    if not _detach(claim) or not _await_turn_end(claim, deadline - leases.budget() / 4):
        _give_back(claim, session, "the agent's turn did not end in time")
    dispatch = reserving.when_free(
        claim.session_id, partial(_may_reserve, claim), partial(_order, claim, deadline), deadline
    )
    if dispatch is None:
        _give_back(claim, session, "the session was busy with something else")
        return
    _carry(claim, session, dispatch, deadline)


def _detach(claim: Claim) -> bool:
    """Gives the waiters up and pauses the turn; from then on nothing but a dispatch hands this claim over."""
    with transaction.atomic():
        revisions.lock_session(claim.session_id)
        mine = Claim.objects.filter(pk=claim.pk, state=ClaimState.CLAIMED)
        if not mine.update(path=ClaimPath.DETACHED):
            return True
        leases.drop_bundle(claim.pending_id)
        pausing.cancel_locked(claim.session_id, claim.turn_id, "the answer comes as a new prompt", timezone.now())
    return True


def _await_turn_end(claim: Claim, until: dt.datetime) -> bool:
    """D14: the dispatch follows the end of the old turn."""
    with hints.Waiting(f"session:{claim.session_id}", leases.topic(claim.pending_id)) as waiting:
        while True:
            turn = Turn.objects.filter(pk=claim.turn_id).first()
            left = (until - timezone.now()).total_seconds()
            if turn is None or turn.completed_at is not None or not _still_mine(claim):
                return True
            if left <= 0:
                return False
            waiting.wait(left)


def _still_mine(claim: Claim) -> bool:
    return Claim.objects.filter(pk=claim.pk, state=ClaimState.CLAIMED).exists()


def _may_reserve(claim: Claim, session: Session) -> bool | None:
    """True now, False not yet, None never again. Needs the session lock."""
    current = Turn.objects.current_of(session.pk)
    if session.terminal or current is None or current.pk != claim.turn_id or not _still_mine(claim):
        return None
    rival = Dispatch.objects.unsettled().filter(session=session).exists()
    return current.completed_at is not None and not rival and not _watched(session)


def _watched(session: Session) -> bool:
    from clarifications.models import Watchdog

    return Watchdog.objects.filter(session=session, state__in=("armed", "fallback")).exists()


def _order(claim: Claim, deadline: dt.datetime) -> reserving.Order:
    rows = list(Message.objects.bundle(claim.pending_id))
    return reserving.Order(
        kind=DispatchKind.ANSWER,
        prompt=wording.resumed(claim.pending_id, rows, claim.response["answers"]),
        attended_until=deadline,
        source_turn_id=claim.turn_id,
        pending_id=claim.pending_id,
        claim_id=claim.pk,
        message_ids=list(claim.message_ids),
    )


def _carry(claim: Claim, session: Session, dispatch: Dispatch, deadline: dt.datetime) -> None:
    carried = dispatching.carry_out(dispatch.pk, deadline)
    if carried.result is dispatching.Result.REFUSED:
        _told_refused(claim, session, carried.reason)
    if carried.result is dispatching.Result.UNPUBLISHED:
        raise DispatchUnpublished
    if carried.result is dispatching.Result.AMBIGUOUS:
        raise DispatchAmbiguous


def _give_back(claim: Claim, session: Session, reason: str) -> None:
    """Nothing was sent: the rows are pending again before anybody is told so; raises unless the claim was settled
    meanwhile.
    """
    if restoring.restore(claim.pk):
        _told_refused(claim, session, reason)


def _told_refused(claim: Claim, session: Session, reason: str) -> None:
    """After the restore's commit: 503 once the summary shows the restored rows (R32), or 409 when the claim was
    beaten.
    """
    claim.refresh_from_db()
    if claim.state == ClaimState.RETIRED:
        raise NotActive
    try:
        summaries.refresh(session.task_id)
    except KandevError:
        raise ConvergenceFailed from None
    raise DeliveryFailed(f"{DeliveryFailed.message}: {reason}" if reason else None)


def _after_fault(claim: Claim, session: Session, error: Exception) -> dict[str, Any]:
    """Something broke: what the database says decides what the caller is told; the rest is the sweep's (D9, R14)."""
    logger.error("claim %s: the hand-over failed", claim.pk, exc_info=error)
    try:
        if restoring.restore(claim.pk):
            _told_refused(claim, session, "something failed on the server")
        claim.refresh_from_db()
    except KandevError:
        raise
    except Exception:
        logger.exception("claim %s: the rollback failed as well", claim.pk)
        finalizing.owe(claim.pk)
        raise DispatchAmbiguous from error
    if claim.state == ClaimState.CLAIMED:
        raise DispatchAmbiguous from error
    return _conclude(claim, session)


def _conclude(claim: Claim, session: Session) -> dict[str, Any]:
    """The claim is settled: its own outcome is told, whoever settled it (R11a)."""
    if claim.state == ClaimState.CONFIRMED:
        try:
            finalizing.finalize(claim, ClaimState.CONFIRMED, session)
        except Exception:  # the agent has it; the next sweep finalizes
            logger.exception("claim %s was confirmed but not finalized yet", claim.pk)
            finalizing.owe(claim.pk)
    if claim.state == ClaimState.RETIRED:
        raise NotActive
    if claim.state == ClaimState.RESTORED:
        _told_refused(claim, session, "")
    if claim.state == ClaimState.ACCEPTED:
        raise DispatchUnpublished
    return shapes.outcome(True, claim.status, "delivered", claim.response)
