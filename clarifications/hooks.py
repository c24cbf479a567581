"""What this layer does inside the lower layers' changes (connected in `kandev.wiring`)."""

import datetime as dt
import uuid
from collections.abc import Sequence

from django.db.models import Exists, Min, OuterRef, Q

from clarifications import closing, detaching, restoring, watching
from clarifications import rows as question_rows
from clarifications.finalizing import finalize_locked
from clarifications.models import Claim, ClaimState, WaiterLease
from clarifications.querysets import ClaimQuerySet
from tasks.models import Session
from tasks.registry import PendingKind
from turns import ending
from turns.models import Dispatch, DispatchKind, Message, Timer, Turn


def turn_ending(turn: Turn, reason: str, now: dt.datetime) -> None:
    detaching.turn_over(turn, now)
    watching.turn_over(turn, reason, now)
    Claim.objects.filter(turn_id=turn.pk, replayable=True).update(replayable=False)


def turn_cancelling(turn: Turn, now: dt.datetime) -> None:
    """A paused turn: all its live bundles detach with it (K5, R9)."""
    detaching.turn_over(turn, now)


def outstanding(session_id: uuid.UUID) -> bool:
    return Claim.objects.open().filter(session=session_id).exists() or watching.is_open(session_id)


def may_attempt(dispatch: Dispatch) -> bool:
    """A prompt gives way to an answer that was claimed since its reservation: the first lock wins, and the answer goes
    before what was queued (R4, R7).
    """
    if dispatch.kind == DispatchKind.ANSWER:
        return _claims(dispatch).filter(state=ClaimState.CLAIMED).exists()
    if dispatch.kind == DispatchKind.PROMPT:
        return not Claim.objects.open().filter(session=dispatch.session_id).exists()
    return dispatch.kind != DispatchKind.FALLBACK or watching.may_attempt(dispatch)


def dispatch_accepted(dispatch: Dispatch, now: dt.datetime) -> None:
    if dispatch.kind == DispatchKind.ANSWER:
        _claims(dispatch).filter(state=ClaimState.CLAIMED).update(state=ClaimState.ACCEPTED)


def _claims(dispatch: Dispatch) -> ClaimQuerySet:
    """The claim that rides on a dispatch, as a queryset; empty for one that carries none."""
    return Claim.objects.filter(pk__in=[dispatch.claim_id] if dispatch.claim_id else [])


def dispatch_published(dispatch: Dispatch, session: Session, now: dt.datetime) -> None:
    claim = _claims(dispatch).first() if dispatch.kind == DispatchKind.ANSWER else None
    if claim is not None:
        finalize_locked(claim, ClaimState.ACCEPTED, session, now)
    elif dispatch.kind == DispatchKind.FALLBACK:
        watching.published(dispatch)


def dispatch_undone(dispatch: Dispatch, session: Session, now: dt.datetime) -> None:
    if dispatch.kind == DispatchKind.FALLBACK:
        watching.undone(dispatch, now)
    claim = _claims(dispatch).first() if dispatch.kind == DispatchKind.ANSWER else None
    if claim is not None:
        restoring.restore_locked(claim, session, now)
    elif dispatch.attempted_at is not None:
        _show_again(session, now)


def _show_again(session: Session, now: dt.datetime) -> None:
    """The attempt had made older questions history; now they count again, and pages must hear of it."""
    question_rows.tell(session, list(Message.objects.filter(session=session).active()), now)


def orphan_undone(turn: Turn, session: Session, now: dt.datetime) -> None:
    """A reservation of which only the turn is left names the rows to give back (E2, R45)."""
    ids = [str(item) for item in turn.metadata.get("claimed_message_ids", [])]
    found = question_rows.locked(Message.objects.filter(session=session, pk__in=ids))
    changed = question_rows.write(found, restoring.given_back, now)
    question_rows.tell(session, changed, now)


def session_ended(session_id: uuid.UUID, now: dt.datetime) -> None:
    closing.expire_session(session_id, now)
    ending.announce_ended(session_id, now)


def first_wait_due(timer: Timer, now: dt.datetime) -> None:
    """No wait came within the hand-over budget: detached, without a pause (contract 3)."""
    rows = WaiterLease.objects.filter(pending_id=timer.pending_id, kind="request", claim_id__isnull=True)
    rows.filter(expires_at__lte=now).delete()
    detaching.detach_if_alone(timer.session_id, timer.pending_id, now)


def input_capable() -> Q:
    """A detached question makes its session input-capable even without a runner (R41)."""
    mine = Message.objects.filter(session=OuterRef("pk")).active().filter(disconnected=True)
    return Q(Exists(mine))


def question_exists(reference: OuterRef) -> Exists:
    return Exists(Message.objects.filter(session=reference).active())


def blocked_since(session_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, dt.datetime]:
    rows = Message.objects.filter(session__in=session_ids).active()
    return dict(rows.order_by().values_list("session").annotate(Min("created_at")))


KIND = PendingKind("clarification", 0, question_exists, "clarifications:question-panel", blocked_since)
