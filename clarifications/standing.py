"""Begin a wait, or say at once how it ends: what stands decides (R22)."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from clarifications import bundles, detaching, leases, shapes
from clarifications.models import Claim, ClaimPath, ClaimState, LeaseKind
from tasks import revisions
from tasks.principals import Need, Principal
from turns import pausing
from turns.models import Message, Turn


@dataclass(frozen=True)
class Ended:
    """The end of a wait; `response` and `claim_id` only when the answer is handed to this waiter."""

    code: str
    response: dict[str, Any] | None = None
    claim_id: uuid.UUID | None = None


def begin(principal: Principal, pending_id: str, kind: LeaseKind) -> leases.Held | Ended:
    """A lease for this waiter, or the end of its wait. UnknownClarification for unknown and foreign alike (H1)."""
    # Who waits takes the agent's place: the agent itself, or one who may write to the task (contract 3).
    bundle = bundles.reach(principal, pending_id, Need.WRITE)
    with transaction.atomic():
        revisions.lock_session(bundle.session.pk)
        now = timezone.now()
        turn = _own_open_turn(principal, bundle)
        if turn is not None and (_active(pending_id) or _claimed(pending_id)):
            pausing.unschedule(turn.pk, pending_id)
            detaching.reattach(bundle.session.pk, pending_id, now)
            return leases.begin(bundle.session.pk, turn.pk, pending_id, kind, now)
        return over(pending_id, turn is not None)


def _own_open_turn(principal: Principal, bundle: bundles.Bundle) -> Turn | None:
    """The bundle's turn when it is current, runs, is not told to end, and is the one of this token (R26)."""
    turn = Turn.objects.current_of(bundle.session.pk)
    if (
        turn is None
        or turn.pk != bundle.turn_id
        or turn.completed_at is not None
        or turn.cancel_requested_at is not None
    ):
        return None
    token = principal.token
    return turn if token is None or token.turn_id in (None, turn.pk) else None


def _active(pending_id: str) -> bool:
    return Message.objects.bundle(pending_id).active().exists()


def _claimed(pending_id: str) -> bool:
    """Claimed and not handed over: the same questions join and get the answer (JOIN_CLAIMED)."""
    return Claim.objects.filter(pending_id=pending_id, state=ClaimState.CLAIMED).exists()


def over(pending_id: str, turn_open: bool = True) -> Ended:
    """How a wait on this bundle ends when there is nothing to wait for; needs the session lock or may be outdated."""
    claim = bundles.newest_claim(pending_id)
    rows = list(Message.objects.bundle(pending_id))
    if (
        claim is not None
        and claim.path == ClaimPath.LIVE
        and claim.state in (ClaimState.CONFIRMED, ClaimState.FINALIZED)
    ):
        return handed(claim, rows) if turn_open or claim.replayable else Ended("detached")
    return Ended(_code(rows, claim))


def handed(claim: Claim, rows: list[Message]) -> Ended:
    """The confirmed claim's response, with its reason while it is kept (R34)."""
    body = shapes.response(claim.pending_id, rows, claim.responded_at, claim.reject_reason)
    return Ended(claim.status, body, claim.pk)


def _code(rows: list[Message], claim: Claim | None) -> str:
    statuses = {row.status for row in rows}
    if claim is not None or statuses & set(shapes.RESOLVED):
        return "detached"
    if "expired" in statuses:
        return "expired"
    if not rows or "cancelled" in statuses:
        return "cancelled"
    if rows[0].session.terminal:
        return "expired"
    return "detached" if _is_current(rows) else "superseded"


def _is_current(rows: list[Message]) -> bool:
    return Message.objects.filter(pk__in=[row.pk for row in rows]).open_in_current_turn().exists()
