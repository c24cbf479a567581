"""Restore or retire: what becomes of a claim whose hand-over is known not to have happened (D3, D9, R7, R12).

Restore gives back exactly the rows of the claim: pending while their turn is current, expired once the session has
ended. A claim beaten by a newer turn or the session's end is retired: its rows stay, nothing reached the agent.
Other writers: the confirm, the accept, another restore. The guarded update on the claim's state decides.
"""

import datetime as dt
import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone

from clarifications import leases, rows
from clarifications.models import Claim, ClaimState
from tasks import failpoints, hints, revisions
from tasks.errors import NotFound
from tasks.models import Session
from turns import background
from turns.models import Dispatch, Message, Turn

TAKEN = ("response", "response_delivery_pending", "claim_id")


def restore(claim_id: uuid.UUID) -> bool:
    """Undoes a claim that was neither confirmed nor dispatched; False when somebody else settled it."""
    with transaction.atomic():
        claim = Claim.objects.filter(pk=claim_id).first()
        if claim is None:
            return False
        try:
            revisions.lock_session(claim.session_id)
        except NotFound:
            return False
        if Dispatch.objects.unsettled().filter(claim_id=claim_id).exists():
            return False
        session = Session.objects.select_related("task").get(pk=claim.session_id)
        done = restore_locked(claim, session, timezone.now())
        failpoints.reach("restore.before_commit")
    return done


def restore_locked(claim: Claim, session: Session, now: dt.datetime) -> bool:
    """`restore` inside the caller's transaction; needs the session lock. Judges currency as it is now."""
    revisions.require_transaction()
    current = Turn.objects.current_of(session.pk)
    beaten = session.terminal or current is None or current.pk != claim.turn_id
    state = ClaimState.RETIRED if beaten else ClaimState.RESTORED
    if not Claim.objects.filter(pk=claim.pk, state=ClaimState.CLAIMED).update(state=state):
        return False
    found = rows.locked(Message.objects.filter(pk__in=claim.message_ids))
    mine = [row for row in found if row.metadata.get("claim_id") == str(claim.pk)]
    changed = rows.write(mine, _kept if beaten else given_back, now)
    revisions.advance(session.pk)
    rows.tell(session, changed, now)
    hints.after_commit(leases.topic(claim.pending_id), f"session:{session.pk}")
    from turns import draining

    background.after_commit(draining.follow_up, session.pk)
    return True


def given_back(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in TAKEN} | {"status": "pending"}


def _kept(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != "response_delivery_pending"}
