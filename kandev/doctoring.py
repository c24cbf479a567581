"""What is stuck or waits, read from the database alone; for `manage.py doctor`. It changes nothing."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models.functions import Now
from django.utils import timezone

from clarifications.models import Claim, WaiterLease, Watchdog, WatchdogState
from tasks import instances
from tasks.models import TERMINAL, Event, Instance
from turns.models import Admission, AdmissionState, Dispatch, Timer, Turn

# Budgets end by themselves and a sweep passes every second: what is older than that has been left lying.
PATIENCE = dt.timedelta(seconds=60)


@dataclass(frozen=True)
class Finding:
    """One thing that is not settled. `overdue`: something should have settled it by now."""

    what: str
    name: str
    since: dt.datetime
    overdue: bool
    about: str = ""

    def __str__(self) -> str:
        mark = "OVERDUE" if self.overdue else "waits  "
        return f"{mark}  {self.what} {self.name}  since {self.since:%Y-%m-%d %H:%M:%S}  {self.about}".rstrip()


def examine(now: dt.datetime | None = None) -> list[Finding]:
    """Everything unsettled, the overdue first."""
    at = now or timezone.now()
    parts = (_dispatches, _claims, _watchdogs, _waiters, _timers, _events, _queue, _ends, _instances)
    found = [finding for part in parts for finding in part(at)]
    return sorted(found, key=lambda finding: (not finding.overdue, finding.since))


def _dispatches(now: dt.datetime) -> Iterator[Finding]:
    for row in Dispatch.objects.unsettled():
        late = row.attended_until < now - PATIENCE
        about = f"{row.kind} {row.state}, session {row.session_id}, runner {row.runner_id or 'none yet'}"
        yield Finding("dispatch", str(row.pk), row.reserved_at, late, about)


def _claims(now: dt.datetime) -> Iterator[Finding]:
    for row in Claim.objects.open():
        late = row.attended_until < now - PATIENCE
        yield Finding("claim", str(row.pk), row.responded_at, late, f"{row.state}, request {row.pending_id}")


def _watchdogs(now: dt.datetime) -> Iterator[Finding]:
    for row in Watchdog.objects.exclude(state=WatchdogState.CLOSED).select_related("claim"):
        late = row.due_at < now - PATIENCE or row.claim.responded_at < now - dt.timedelta(hours=1)
        about = f"{row.state}, request {row.claim.pending_id}, session {row.session_id}"
        yield Finding("watchdog", str(row.pk), row.claim.responded_at, late, about)


def _waiters(now: dt.datetime) -> Iterator[Finding]:
    for row in WaiterLease.objects.exclude(owner__in=instances.alive_ids()):
        yield Finding("waiter", str(row.pk), row.created_at, row.created_at < now - PATIENCE, "of a dead process")


def _timers(now: dt.datetime) -> Iterator[Finding]:
    for row in Timer.objects.filter(due_at__lt=now):
        yield Finding("timer", row.kind, row.due_at, row.due_at < now - PATIENCE, f"session {row.session_id}")


def _events(now: dt.datetime) -> Iterator[Finding]:
    first = Event.objects.order_by("id").first()
    if first is not None:
        about = f"{Event.objects.count()} not published"
        yield Finding("events", f"from {first.pk}", first.created_at, first.created_at < now - PATIENCE, about)


def _queue(now: dt.datetime) -> Iterator[Finding]:
    """A prompt that waits in the queue, or a POST that never ended."""
    waiting = (AdmissionState.QUEUED, AdmissionState.IN_PROGRESS)
    for row in Admission.objects.filter(state__in=waiting).exclude(session__state__in=TERMINAL):
        busy = Turn.objects.filter(session=row.session_id, completed_at__isnull=True).exists()
        late = not busy and row.created_at < now - PATIENCE
        yield Finding("prompt", str(row.pk), row.created_at, late, f"{row.state}, session {row.session_id}")


def _ends(now: dt.datetime) -> Iterator[Finding]:
    for row in Turn.objects.filter(completion_unpublished=True):
        since = row.completed_at or row.started_at
        yield Finding("end", str(row.pk), since, since < now - PATIENCE, f"not published, session {row.session_id}")


def _instances(now: dt.datetime) -> Iterator[Finding]:
    """Processes that stopped renewing their lease and that nobody has declared dead: no server runs."""
    for row in Instance.objects.filter(ended_at__isnull=True, renewed_at__lte=Now() - instances.lease()):
        late = row.renewed_at < now - PATIENCE
        yield Finding("instance", str(row.pk), row.renewed_at, late, f"process {row.pid} is silent")
