"""What a dead process left in this layer: claims without a hand-over, waiters, questions of ended sessions (E1, E7,
E12, R16).

Runs after the reservations (promise E8). Each piece is one guarded transaction, so two sweepers cannot both act.
"""

import datetime as dt
import uuid
from functools import partial

from django.utils import timezone

from clarifications import closing, confirming, detaching, finalizing, holding, leases, restoring
from clarifications.models import Claim, ClaimState, LeaseKind, WaiterLease
from tasks import breaks, failpoints, instances
from tasks.backoff import Backoff
from tasks.models import TERMINAL, Session
from turns import ending, recovering
from turns.models import Dispatch, Message

_backoff = Backoff("claim")
ABANDONED = dt.timedelta(seconds=30)


def recover_claims() -> None:
    """Every unattended claim: confirmed → finalized, else given back or retired; raises on failure."""
    for claim in Claim.objects.unattended(timezone.now()).order_by("responded_at"):
        recover_claim(claim)


def recover_claim(claim: Claim) -> None:
    """One unattended claim brought to its end; a dispatch that carries it goes first. Again is a no-op."""
    session = Session.objects.select_related("task").filter(pk=claim.session_id).first()
    if breaks.broken("claim_recovery"):
        return
    if session is None or Dispatch.objects.unsettled().filter(claim_id=claim.pk).exists():
        return
    if claim.state == ClaimState.CLAIMED:
        if _has_taker(claim):
            return
        if restoring.restore(claim.pk):
            failpoints.reach("recovery.after_claim_restore")
        return
    if claim.state in (ClaimState.CONFIRMED, ClaimState.ACCEPTED):
        finalizing.finalize(claim, ClaimState(claim.state), session)


def _has_taker(claim: Claim) -> bool:
    """A living peer's agent waits for this answer and takes it with its next look: it is not snatched away before that,
    for as long as a responder would have attended to it.
    """
    now = timezone.now()
    waits = WaiterLease.objects.live(now).filter(pending_id=claim.pending_id).exclude(kind=LeaseKind.REQUEST)
    return claim.attended_until > now and waits.exists()


def detach_dead_waiters() -> None:
    """Leases of dead processes: their questions detach, with the grace for the agent to ask again (E12).

    A request's first moment of waiting is nobody's connection: it only changes hands, its timer ends it (contract 3).
    """
    now = timezone.now()
    dead = WaiterLease.objects.exclude(owner__in=instances.alive_ids())
    if dead.exists():  # on SQLite a write takes the one lock even when it finds nothing
        dead.filter(kind=LeaseKind.REQUEST, claim_id__isnull=True).update(owner=instances.generation())
    for lease in dead[:1000]:
        if lease.claim_id is not None:
            confirming.forget_lease(lease.pk, lease.claim_id)
        else:
            detaching.leave(lease, now, grace=True)
    leases.release_stranded()


def detach_abandoned() -> None:
    """Leases of this process that none of its waits holds any more: a wait that broke could not give its own up
    (R14)."""
    old = timezone.now() - ABANDONED
    mine = WaiterLease.objects.filter(owner=instances.generation(), claim_id__isnull=True, created_at__lt=old)
    for lease in mine.exclude(kind=LeaseKind.REQUEST).exclude(pk__in=holding.held())[:1000]:
        detaching.leave(lease, timezone.now(), grace=True)


def expire_ended() -> None:
    """Sessions that ended but whose questions were not expired or whose event was not told (A7, R30)."""
    for session_id in {*_open_after_end(), *recovering.ends_unpublished()}:
        now = timezone.now()
        closing.expire_session(session_id, now)
        ending.announce_ended(session_id, now)


def _open_after_end() -> list[uuid.UUID]:
    rows = Message.objects.open_in_current_turn().filter(session__state__in=TERMINAL)
    return list(rows.values_list("session_id", flat=True).distinct()[:100])


def sweep() -> None:
    """The running process' sweep: one failure does not keep the others from their turn (R15)."""
    for claim in (*Claim.objects.unattended(timezone.now()).order_by("responded_at"), *finalizing.owed()):
        _backoff.run(claim.pk, partial(recover_claim, claim))
