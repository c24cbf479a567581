"""Finalize: the hand-over stands, the intent goes, the rows are told (D2, R16). Guarded by the claim's state.

If the process dies before the commit, recovery finalizes a confirmed claim and publishes an accepted one.
"""

import datetime as dt
import uuid

from django.db import transaction
from django.utils import timezone

from clarifications import confirming, leases, rows
from clarifications.models import Claim, ClaimState
from tasks import failpoints, hints, revisions
from tasks.models import Session
from turns import background, completing
from turns.models import Message


def finalize(claim_id: uuid.UUID, expected: ClaimState, session: Session) -> bool:
    """Clears the intent of a confirmed claim or a stored rejection; False when somebody else did, or it is no longer
    so.

    A rejection is stored without the session lock: its only rival is the confirm or the restore of this very claim, and
    the guarded update decides between them.
    """
    failpoints.reach("respond.before_finalize")
    with transaction.atomic():
        return finalize_locked(claim_id, expected, session, timezone.now())


def finalize_locked(claim_id: uuid.UUID, expected: ClaimState, session: Session, now: dt.datetime) -> bool:
    """`finalize` inside the caller's transaction."""
    revisions.require_transaction()
    if not Claim.objects.filter(pk=claim_id, state=expected).update(state=ClaimState.FINALIZED):
        return False
    claim = Claim.objects.get(pk=claim_id)
    found = list(Message.objects.filter(pk__in=claim.message_ids).order_by("created_at", "id"))
    changed = rows.write(found, lambda m: {k: v for k, v in m.items() if k != "response_delivery_pending"}, now)
    rows.tell(session, changed, now)
    hints.after_commit(leases.topic(claim.pending_id), f"session:{session.pk}")
    transaction.on_commit(lambda: confirming.drop_reason(claim_id), robust=True)
    background.after_commit(completing.judge, session.task_id)
    return True
