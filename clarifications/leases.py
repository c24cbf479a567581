"""Who waits: leases, written and taken under the session lock."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Protocol

from django.conf import settings
from django.db.models import QuerySet

from clarifications.models import LeaseKind, WaiterLease
from tasks import hints, instances, prepared, revisions
from turns.models import Timer, TimerKind, Turn


class Lease(Protocol):
    """What is asked of a lease: the row has it, and so has what a wait keeps of it."""

    @property
    def pk(self) -> uuid.UUID: ...
    @property
    def pending_id(self) -> str: ...
    @property
    def session_id(self) -> uuid.UUID: ...
    @property
    def turn_id(self) -> uuid.UUID: ...


@dataclass(frozen=True, slots=True)
class Held:
    """What a wait keeps of its lease for hours: a tenth of the row."""

    pk: uuid.UUID
    pending_id: str
    session_id: uuid.UUID
    turn_id: uuid.UUID


def budget() -> dt.timedelta:
    """The hand-over budget (contract 2)."""
    return dt.timedelta(seconds=settings.KANDEV_DELIVERY_TIMEOUT_S)


def topic(pending_id: str) -> str:
    return f"bundle:{pending_id}"


def first_moment(session_id: uuid.UUID, turn_id: uuid.UUID, pending_id: str, now: dt.datetime) -> None:
    """The request itself counts as the first moment of waiting, for one hand-over budget (contract 3)."""
    revisions.require_transaction()
    due = now + budget()
    requests = WaiterLease.objects.filter(pending_id=pending_id, kind=LeaseKind.REQUEST, claim_id__isnull=True)
    if not requests.update(expires_at=due, owner=instances.generation()):
        WaiterLease.objects.create(
            pending_id=pending_id,
            session_id=session_id,
            turn_id=turn_id,
            kind=LeaseKind.REQUEST,
            owner=instances.generation(),
            expires_at=due,
            created_at=now,
        )
    Timer.objects.update_or_create(
        kind=TimerKind.FIRST_WAIT,
        turn_id=turn_id,
        pending_id=pending_id,
        defaults={"session_id": session_id, "due_at": due},
    )


def begin(session_id: uuid.UUID, turn_id: uuid.UUID, pending_id: str, kind: LeaseKind, now: dt.datetime) -> Held:
    """A waiter's own lease; it takes the place of the request's first moment."""
    revisions.require_transaction()
    WaiterLease.objects.filter(pending_id=pending_id, kind=LeaseKind.REQUEST, claim_id__isnull=True).delete()
    Timer.objects.filter(kind=TimerKind.FIRST_WAIT, turn_id=turn_id, pending_id=pending_id).delete()
    hints.after_commit(topic(pending_id))
    row = WaiterLease.objects.create(
        pending_id=pending_id,
        session_id=session_id,
        turn_id=turn_id,
        kind=kind,
        owner=instances.generation(),
        created_at=now,
    )
    return Held(row.pk, pending_id, session_id, turn_id)


def is_live(pending_id: str, now: dt.datetime) -> bool:
    return bool(_live(pending_id, now, instances.lease()))


@prepared.rows
def _live(pending_id: str, now: dt.datetime, shaped_by: dt.timedelta) -> QuerySet[WaiterLease]:
    return WaiterLease.objects.live(now).filter(pending_id=pending_id)[:1]


def end(lease_id: uuid.UUID) -> bool:
    """A waiter gives its lease up; False when something else took it first."""
    return bool(WaiterLease.objects.filter(pk=lease_id).delete()[0])


def drop_bundle(pending_id: str) -> None:
    """Every waiter of the bundle that is not owed a response loses its lease and is woken after the commit."""
    revisions.require_transaction()
    WaiterLease.objects.filter(pending_id=pending_id, claim_id__isnull=True).delete()
    hints.after_commit(topic(pending_id))


def release_stranded() -> None:
    """Lets waiters go whose turn is over or gone: no ordinary way leads there, imported rows may (A8)."""
    running = Turn.objects.filter(completed_at__isnull=True)
    for lease in WaiterLease.objects.filter(claim_id__isnull=True).exclude(turn_id__in=running.values("pk"))[:1000]:
        if end(lease.pk):
            hints.send(topic(lease.pending_id))
