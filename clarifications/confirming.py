"""Confirm: the waiter takes the answer durably, then returns it (promises C1, C3, C4).

Other writers: the responder's restore or its switch to the detached path, a sweep, the end of the turn or session, a
fellow waiter. The session lock orders them; the confirm restates the claim, its own lease, the session and the turn
(CONFIRM_LEASE). If the process dies before the commit, the claim is restored; after it, the watchdog covers the
silence.
"""

import datetime as dt
import uuid

from django.db import transaction
from django.db.models import Exists, QuerySet
from django.utils import timezone

from clarifications import bundles, detaching, leases, standing, watching
from clarifications.models import Claim, ClaimState, WaiterLease
from clarifications.standing import Ended
from tasks import breaks, failpoints, hints, instances, prepared, revisions
from tasks.errors import NotFound
from turns.models import Message, Turn


def look(lease: leases.Lease) -> Ended | None:
    """What became of this waiter: None to wait on, else its end. Reads without a lock; only a confirm takes it."""
    mine = _stored.first(lease.pk)
    if mine is None:
        return _after_loss(lease)
    if mine.claim_id is not None:
        return _owed(mine.claim_id)
    if not _claimed(lease.pending_id):
        return None if _stands(lease.pending_id) else _settled(lease)
    failpoints.reach("live.after_wake")  # whatever woke it: the hint, or the poll that looks after all
    return confirm(lease)


@prepared.rows
def _stored(lease_id: uuid.UUID) -> QuerySet[WaiterLease]:
    return WaiterLease.objects.filter(pk=lease_id)


@prepared.rows
def _claimed(pending_id: str) -> QuerySet[Claim]:
    return Claim.objects.filter(pending_id=pending_id, state=ClaimState.CLAIMED)[:1]


def _stands(pending_id: str) -> bool:
    return Message.objects.bundle(pending_id).active().exists()


def _after_loss(lease: leases.Lease) -> Ended:
    """The lease was taken: by the end of turn or session, a cancel, an expiry, or the detached path."""
    return standing.over(lease.pending_id, _turn_open(lease.turn_id))


def _turn_open(turn_id: uuid.UUID) -> bool:
    return Turn.objects.filter(pk=turn_id, completed_at__isnull=True).exists()


def _owed(claim_id: uuid.UUID) -> Ended:
    claim = Claim.objects.get(pk=claim_id)
    return standing.handed(claim, bundles.stored(claim.pending_id))


def _settled(lease: leases.Lease) -> Ended | None:
    """No active row and no open claim: the answer was confirmed between two looks, or the bundle is over (A8)."""
    mine = WaiterLease.objects.filter(pk=lease.pk).first()
    if mine is not None and mine.claim_id is not None:
        return _owed(mine.claim_id)
    if Claim.objects.open().filter(pending_id=lease.pending_id).exists() or _stands(lease.pending_id):
        return None
    leases.end(lease.pk)
    return _after_loss(lease)


def confirm(lease: leases.Lease) -> Ended | None:
    """Takes the claim for this waiter; None when there was nothing (any more) to take, so that it looks again."""
    try:
        with transaction.atomic():
            session = revisions.lock_session(lease.session_id)
            now = timezone.now()
            if session.terminal or not _own(lease, now) or not _current(lease):
                return None
            claim = _claimed.first(lease.pending_id)
            if claim is None or not _take(claim.pk):
                return None
            _owe(lease.pending_id, claim.pk)
            if claim.status == "answered" and not breaks.broken("watchdog"):
                watching.arm(claim, now)
            hints.after_commit(leases.topic(lease.pending_id))
    except NotFound:
        return Ended("expired")
    failpoints.reach("live.after_confirm")
    return standing.handed(claim, bundles.stored(claim.pending_id))


def _own(lease: leases.Lease, now: dt.datetime) -> bool:
    """Live also means that this process was not declared dead: one that was frozen past its lease and wakes confirms
    nothing (E10).
    """
    return bool(_live(lease.pk, now, instances.lease()))


@prepared.rows
def _live(lease_id: uuid.UUID, now: dt.datetime, shaped_by: dt.timedelta) -> QuerySet[WaiterLease]:
    return WaiterLease.objects.live(now).filter(pk=lease_id)


def _current(lease: leases.Lease) -> bool:
    """The turn still runs, is current, and no cancel was sent for it."""
    turn = Turn.objects.current_of(lease.session_id)
    return (
        turn is not None and turn.pk == lease.turn_id and turn.completed_at is None and turn.cancel_requested_at is None
    )


@prepared.update
def _take(claim_id: uuid.UUID) -> prepared.Change:
    mine = Claim.objects.filter(pk=claim_id, state=ClaimState.CLAIMED)
    return mine, {"state": ClaimState.CONFIRMED, "path": "live", "replayable": True}


@prepared.update
def _owe(pending_id: str, claim_id: uuid.UUID) -> prepared.Change:
    """Every waiter of the bundle gets this answer."""
    return WaiterLease.objects.filter(pending_id=pending_id, claim_id__isnull=True), {"claim_id": claim_id}


def leave(lease: leases.Lease, lost: bool) -> Ended | None:
    """The waiter gives up; None when it did so empty-handed, else what it is owed after all."""
    mine = WaiterLease.objects.filter(pk=lease.pk).first()
    if mine is not None and mine.claim_id is not None and not lost:
        return _owed(mine.claim_id)
    if mine is None and not lost:
        return _after_loss(lease)
    detaching.leave(lease, timezone.now(), grace=lost)
    return None


def record_return(claim_id: uuid.UUID, lease: leases.Lease | None, written_at: dt.datetime) -> None:
    """The bytes were written at `written_at`: the replay ends, frames since then close the watchdog, the lease goes."""
    if lease is not None:
        WaiterLease.objects.filter(pk=lease.pk).delete()
    Claim.objects.filter(pk=claim_id).update(replayable=False)
    watching.returned(claim_id, written_at)
    drop_reason(claim_id)


def forget_lease(lease_id: uuid.UUID, claim_id: uuid.UUID | None) -> None:
    """A waiter whose client was gone at the return: owed no more; the watchdog stays armed."""
    WaiterLease.objects.filter(pk=lease_id).delete()
    if claim_id is not None:
        drop_reason(claim_id)


def drop_reason(claim_id: uuid.UUID) -> None:
    """The reason goes once the claim is final and every waiter of it has it (R34)."""
    owed = WaiterLease.objects.filter(claim_id=claim_id)
    mine = Claim.objects.filter(~Exists(owed), pk=claim_id, state=ClaimState.FINALIZED, replayable=False)
    mine.update(reject_reason="")
