"""Detach: nobody waits any more, the question stands (promises F1, F2, F4).

Other writers: a claim or a newer turn (their rows are no longer active, so the guarded read under the session lock
skips them), a re-ask (it took the lease back first). Again is a no-op without write or event.
"""

import datetime as dt
import uuid

from django.conf import settings
from django.db import transaction

from clarifications import leases, rows
from clarifications.models import WaiterLease
from tasks import failpoints, hints, revisions
from tasks.errors import NotFound
from tasks.models import Session
from turns import pausing
from turns.models import Message, Turn
from turns.querysets import MessageQuerySet


def leave(lease: leases.Lease, now: dt.datetime, *, grace: bool) -> None:
    """A waiter's end by time-out (`grace` False: the turn is paused at once) or lost connection (after the grace,
    K5).
    """
    try:
        with transaction.atomic():
            revisions.lock_session(lease.session_id)
            if not leases.end(lease.pk):
                return
            detach_if_alone(lease.session_id, lease.pending_id, now)
            _pause(lease, now, grace)
            failpoints.reach("detach.before_commit")
    except NotFound:
        return


def _pause(lease: leases.Lease, now: dt.datetime, grace: bool) -> None:
    """The pause names the turn that asked; it is moot when another waiter is there or the question is settled."""
    if leases.is_live(lease.pending_id, now) or not _stands(lease.pending_id):
        return
    if not Turn.objects.filter(pk=lease.turn_id, completed_at__isnull=True).exists():
        return
    if grace:
        due = now + dt.timedelta(seconds=settings.KANDEV_PAUSE_GRACE_S)
        pausing.schedule(lease.session_id, lease.turn_id, lease.pending_id, due)
    else:
        pausing.cancel_locked(lease.session_id, lease.turn_id, "the question waited too long for its answer", now)


def _stands(pending_id: str) -> bool:
    return Message.objects.bundle(pending_id).active().exists()


def detach_if_alone(session_id: uuid.UUID, pending_id: str, now: dt.datetime) -> None:
    """Detaches when no live waiter is left; needs the session lock."""
    revisions.require_transaction()
    hints.after_commit(leases.topic(pending_id))
    if not leases.is_live(pending_id, now):
        detach(session_id, Message.objects.bundle(pending_id), now)


def detach(session_id: uuid.UUID, within: MessageQuerySet, now: dt.datetime) -> list[Message]:
    """Marks active, not yet detached rows as disconnected and tells exactly those; needs the session lock."""
    revisions.require_transaction()
    found = rows.locked(within.active().filter(disconnected=False))
    changed = rows.write(found, lambda metadata: {**metadata, "agent_disconnected": True}, now)
    if changed:
        rows.tell(_session(session_id), changed, now)
    return changed


def reattach(session_id: uuid.UUID, pending_id: str, now: dt.datetime) -> None:
    """A re-ask makes a detached bundle live again: one update, one event (R28); needs the session lock."""
    revisions.require_transaction()
    found = rows.locked(Message.objects.bundle(pending_id).active().filter(disconnected=True))
    changed = rows.write(found, lambda metadata: {**metadata, "agent_disconnected": False}, now)
    if changed:
        rows.tell(_session(session_id), changed, now)


def turn_over(turn: Turn, now: dt.datetime) -> None:
    """The turn has ended or is told to end: its waiters lose their leases and its questions detach, in this
    transaction.
    """
    revisions.require_transaction()
    mine = WaiterLease.objects.filter(turn_id=turn.pk, claim_id__isnull=True)
    for pending_id in set(mine.values_list("pending_id", flat=True)):
        hints.after_commit(leases.topic(pending_id))
    mine.delete()
    detach(turn.session_id, Message.objects.filter(session=turn.session_id), now)


def _session(session_id: uuid.UUID) -> Session:
    return Session.objects.select_related("task").get(pk=session_id)
