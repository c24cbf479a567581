"""The waits that this process holds open, so that one slow poll looks after all of them with two queries (B6).

A hint wakes a waiter at once; this poll makes a lost hint cost at most one interval.
"""

import threading
import time
import uuid
from collections.abc import Callable

from django.conf import settings
from django.db.models import QuerySet

from clarifications.models import Claim, ClaimState, WaiterLease
from tasks import instances
from turns.models import Message

_lock = threading.Lock()
_held: dict[uuid.UUID, tuple[str, Callable[[], None]]] = {}
_stood_at = [0.0]


def add(lease_id: uuid.UUID, pending_id: str, wake: Callable[[], None]) -> None:
    with _lock:
        _held[lease_id] = (pending_id, wake)


def discard(lease_id: uuid.UUID) -> None:
    with _lock:
        _held.pop(lease_id, None)


def held() -> set[uuid.UUID]:
    with _lock:
        return set(_held)


def count() -> int:
    return len(_held)


def wake_all() -> None:
    with _lock:
        held = list(_held.values())
    for _, wake in held:
        wake()


def poll() -> None:
    """Wakes the waiters whose lease is gone or owed a response, or whose bundle has a claim: one to confirm, or one
    that was final before they came. Once in a keepalive's time also those whose bundle does not stand any more: no
    ordinary way leads there without taking the lease, rows that somebody else wrote or deleted may.
    """
    with _lock:
        held = dict(_held)
    if not held:
        return
    mine = WaiterLease.objects.filter(owner=instances.generation(), claim_id__isnull=True)
    present = set(mine.values_list("pk", flat=True))
    claims = Claim.objects.filter(pending_id__in=mine.values("pending_id")).exclude(state=ClaimState.RESTORED)
    claimed = set(claims.values_list("pending_id", flat=True))
    standing = _standing(mine, {pending_id for pending_id, _ in held.values()})
    for lease_id, (pending_id, wake) in held.items():
        if lease_id not in present or pending_id in claimed or pending_id not in standing:
            wake()


def _standing(mine: QuerySet[WaiterLease], pending_ids: set[str]) -> set[str]:
    """Those that stand; all of them in between."""
    if time.monotonic() - _stood_at[0] < settings.KANDEV_KEEPALIVE_S:
        return pending_ids
    _stood_at[0] = time.monotonic()
    rows = Message.objects.filter(pending_id__in=mine.values("pending_id")).active()
    return set(rows.values_list("pending_id", flat=True))
