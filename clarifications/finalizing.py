"""Finalize: the hand-over stands, the intent goes, the rows are told (D2, R16). Guarded by the claim's state.

If the process dies before the commit, recovery finalizes a confirmed claim and publishes an accepted one.
"""

import datetime as dt
import uuid
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from clarifications import confirming, leases, rows
from clarifications.models import Claim, ClaimPath, ClaimState
from tasks import failpoints, hints, prepared, revisions
from tasks.models import Session
from turns import background, completing
from turns.models import Message

# Handed-over claims of this process whose finalize failed: its next sweep makes it up. If the process dies, a peer's.
_owed: set[uuid.UUID] = set()


def owe(claim_id: uuid.UUID) -> None:
    """The responder could not finalize, or could not even learn whether its claim was confirmed."""
    _owed.add(claim_id)


def owed() -> list[Claim]:
    """The claims to finalize now; one that is neither confirmed nor open any more is forgotten."""
    wanted = list(_owed)
    rows = {row.pk: row for row in Claim.objects.open().filter(pk__in=wanted)} if wanted else {}
    _owed.difference_update(pk for pk in wanted if pk not in rows)
    return [row for row in rows.values() if row.state == ClaimState.CONFIRMED]


def finalize(claim: Claim, expected: ClaimState, session: Session) -> bool:
    """Clears the intent of a confirmed claim or a stored rejection; False when somebody else did, or it is no longer
    so.

    A rejection is stored without the session lock: its only rival is the confirm or the restore of this very claim, and
    the guarded update decides between them.
    """
    failpoints.reach("respond.before_finalize")
    with transaction.atomic():
        return finalize_locked(claim, expected, session, timezone.now())


def finalize_locked(claim: Claim, expected: ClaimState, session: Session, now: dt.datetime) -> bool:
    """`finalize` inside the caller's transaction."""
    revisions.require_transaction()
    # A rejection that nobody waited for was not handed over live, so a wait that comes later hears `detached` (R22).
    # Only a confirm owes the reason to anybody, so it goes at once (R34).
    unheard = expected == ClaimState.CLAIMED
    if not _settle(claim.pk, expected, unheard):
        return False
    rows.tell(session, _without_intent(claim, now), now)
    hints.after_commit(leases.topic(claim.pending_id), f"session:{session.pk}")
    if claim.reject_reason and not unheard:
        transaction.on_commit(partial(confirming.drop_reason, claim.pk), robust=True)
    background.after_commit(completing.judge, session.task_id)
    return True


@prepared.update
def _settle(claim_id: uuid.UUID, expected: str, unheard: bool) -> prepared.Change:
    changes = {"path": ClaimPath.DETACHED, "reject_reason": ""} if unheard else {}
    return Claim.objects.filter(pk=claim_id, state=expected), {"state": ClaimState.FINALIZED, **changes}


def _without_intent(claim: Claim, now: dt.datetime) -> list[Message]:
    """The claim's rows as they are now. Nobody rewrites a claimed row but who moves its claim on, so the claimer's own
    copy is as good as a read; only a deletion comes between, and then they are read after all.
    """
    mine = list(claim.claimed_rows)
    if mine and rows.write_counted(mine, _drop_intent, now) == len(mine):
        return mine
    return rows.write(
        list(Message.objects.filter(pk__in=claim.message_ids).order_by("created_at", "id")), _drop_intent, now
    )


def _drop_intent(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != "response_delivery_pending"}
