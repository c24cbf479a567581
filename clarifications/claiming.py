"""Claim: the one transaction that makes a pending bundle terminal for one responder and records what it owes (G1, D2).

The claim is the only judge of activeness: there is no check before it. Other writers: another responder, a cancel, an
expiry, a newer turn, the session's end. All take the session lock first; the active rows are read under it.
If the process dies after the commit, recovery gives the rows back (E1).
"""

import datetime as dt
import logging
import uuid
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Exists, QuerySet
from django.utils import timezone

from clarifications import bundles, leases, rows, shapes
from clarifications.answers import Submission
from clarifications.errors import NotActive
from clarifications.models import Claim, ClaimPath, ClaimState, Draft, WaiterLease
from tasks import breaks, hints, instances, prepared, revisions
from tasks.errors import NotFound, Unavailable
from tasks.principals import Principal
from turns.models import Dispatch, DispatchState, Message

logger = logging.getLogger(__name__)
SLACK = dt.timedelta(seconds=10)
NOBODY = 0  # no person has this id


@dataclass(frozen=True)
class Lost:
    """Another caller had won; `body` is the 200 with the winner's payload."""

    body: dict[str, Any]


class _Wait(Exception):
    """Something undecided is in the way: look again within the pre-claim budget (R8, R10)."""


def claim(principal: Principal, bundle: bundles.Bundle, said: Submission, deadline: dt.datetime) -> Claim | Lost:
    """The stored claim of this caller, or what the winner decided.

    Raises NotActive when nobody won and the bundle is not active; Unavailable when `deadline` came first, rows
    untouched.
    """
    claim_id = uuid.uuid4()
    with hints.Waiting(f"session:{bundle.session.pk}", leases.topic(bundle.pending_id)) as waiting:
        while True:
            try:
                return _try(principal, bundle, said, claim_id)
            except DatabaseError:
                stored = _stored_after_all(claim_id)
                if stored is None:
                    logger.warning("the claim of %s failed in the database, nothing of it is stored", bundle.pending_id)
                    raise
                return stored
            except _Wait:
                left = (deadline - timezone.now()).total_seconds()
                if left <= 0:
                    raise Unavailable from None
                waiting.wait(left)


def _stored_after_all(claim_id: uuid.UUID) -> Claim | None:
    """A commit whose reply was lost: what the database says counts. None when it says no, or nothing."""
    try:
        hints.release_connection()
        return Claim.objects.filter(pk=claim_id).first()
    except DatabaseError:
        return None


def _try(principal: Principal, bundle: bundles.Bundle, said: Submission, claim_id: uuid.UUID) -> Claim | Lost:
    with transaction.atomic():
        try:
            revisions.lock_session(bundle.session.pk)
        except NotFound:
            raise NotActive from None
        found = _asked(bundle.pending_id, principal.user.pk if principal.user else NOBODY)
        turn_id = bundles.turn_identity(found)
        if turn_id is None or not bundles.well_formed(found) or not _may_claim(found):
            return _not_mine(bundle, found)
        if not said.rejected:
            _one_at_a_time(bundle)
        return _store(principal, bundle, said, found, turn_id, claim_id)


@prepared.rows
def _asked(pending_id: str, user_id: int) -> QuerySet[Message]:
    """The bundle's rows, locked, with the rule's verdict, whether anything waits and whether this person left a draft.
    Leases come and go under the session lock; a draft that is saved from now on is one of after the answer.
    """
    waits = WaiterLease.objects.filter(pending_id=pending_id, claim_id__isnull=True)
    drafts = Draft.objects.filter(pending_id=pending_id, user=user_id)
    beside = {"is_waited": Exists(waits), "is_drafted": Exists(drafts)}
    return Message.objects.bundle(pending_id).with_active().annotate(**beside).select_for_update(of=("self",))


def _may_claim(found: list[Message]) -> bool:
    return any(row.is_active for row in found) or breaks.broken("one_winner")


def _store(
    principal: Principal,
    bundle: bundles.Bundle,
    said: Submission,
    found: list[Message],
    turn_id: uuid.UUID,
    claim_id: uuid.UUID,
) -> Claim:
    now = timezone.now()
    mine = [row for row in found if row.says_pending]
    rows.write(mine, lambda metadata: _answered(metadata, said, claim_id), now)
    made = Claim(
        id=claim_id,
        pending_id=bundle.pending_id,
        session_id=bundle.session.pk,
        turn_id=turn_id,
        message_ids=[str(row.pk) for row in mine],
        status=said.status,
        response=shapes.response(bundle.pending_id, _as_stored(found, mine), now, said.reject_reason),
        reject_reason=said.reject_reason,
        responded_at=now,
        responder=principal.user,
        owner=instances.generation(),
        attended_until=now + dt.timedelta(seconds=settings.KANDEV_DELIVERY_TIMEOUT_S) + SLACK,
    )
    prepared.insert(made)
    made.claimed_rows, made.nobody_waits = mine, not any(getattr(row, "is_waited", True) for row in found)
    made.drafted = any(getattr(row, "is_drafted", True) for row in found)
    revisions.advance(bundle.session.pk, last_activity_at=now)
    hints.after_commit(leases.topic(bundle.pending_id))
    return made


def _as_stored(found: list[Message], mine: list[Message]) -> list[Message]:
    """The bundle as this transaction leaves it; `status` is a generated column, so it is set here by hand."""
    for row in mine:
        row.status = row.metadata["status"]
    return found


def _answered(metadata: dict[str, Any], said: Submission, claim_id: uuid.UUID) -> dict[str, Any]:
    changed = {**metadata, "status": said.status, "response_delivery_pending": True, "claim_id": str(claim_id)}
    return changed if said.rejected else changed | {"response": said.entry(metadata["question_id"])}


def _one_at_a_time(bundle: bundles.Bundle) -> None:
    """One outstanding detached answer a session; live ones do not hold each other up (R8)."""
    others = Claim.objects.filter(session=bundle.session.pk, state__in=(ClaimState.CLAIMED, ClaimState.ACCEPTED))
    if others.filter(path=ClaimPath.DETACHED).exists():
        raise _Wait


def _not_mine(bundle: bundles.Bundle, found: list[Message]) -> Lost:
    """One read, no retry: a winner's payload, or nobody won (G2, G3). Undecided turns are waited for (R10)."""
    status = shapes.resolved_status(found)
    if status is None:
        if _unsettled_attempt(bundle.session.pk) and _may_come_back(found):
            raise _Wait
        raise NotActive
    won = bundles.newest_claim(bundle.pending_id)
    when = won.responded_at if won else found[0].updated_at
    body = shapes.response(bundle.pending_id, found, when)
    return Lost(shapes.outcome(False, status, shapes.delivery(won), body))


def _unsettled_attempt(session_id: uuid.UUID) -> bool:
    return Dispatch.objects.filter(session=session_id, state=DispatchState.ATTEMPTED).exists()


def _may_come_back(found: list[Message]) -> bool:
    return bool(found) and any(row.says_pending for row in found)
