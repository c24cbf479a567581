"""Prometheus gauges, read when they are scraped; what is stuck shows here (R15)."""

from django.utils import timezone
from prometheus_client import Gauge

from clarifications import holding
from clarifications.models import Claim, Watchdog
from kandev import publisher
from tasks import instances
from tasks.models import Event
from turns.models import Dispatch, DispatchState, Runner

WAITERS = Gauge("kandev_waiters", "Waits that this process holds open")
OUTBOX = Gauge("kandev_outbox_events", "Events not yet published")
CLAIMS = Gauge("kandev_open_claims", "Answers whose hand-over is not finalized")
STUCK = Gauge("kandev_unsettled_dispatches", "Dispatches whose runner has not said what became of them", ["state"])
WATCHDOGS = Gauge("kandev_open_watchdogs", "Live answers followed by silence so far")
OVERDUE = Gauge("kandev_overdue_watchdogs", "Watchdogs past their time")
RUNNERS = Gauge("kandev_connected_runners", "Runners with a socket")
INSTANCES = Gauge("kandev_live_instances", "Server processes with a fresh lease")
HELD = Gauge("kandev_publisher_held_batches", "Batches that the channel layer has not taken")


def collect() -> None:
    """Reads every gauge once."""
    WAITERS.set(holding.count())
    OUTBOX.set(Event.objects.count())
    CLAIMS.set(Claim.objects.open().count())
    for state in (DispatchState.RESERVED, DispatchState.ATTEMPTED, DispatchState.ACCEPTED):
        STUCK.labels(state).set(Dispatch.objects.filter(state=state).count())
    open_watchdogs = Watchdog.objects.filter(state__in=("armed", "fallback"))
    WATCHDOGS.set(open_watchdogs.count())
    OVERDUE.set(open_watchdogs.filter(due_at__lt=timezone.now()).count())
    RUNNERS.set(Runner.objects.filter(connection_id__isnull=False).count())
    INSTANCES.set(instances.alive().count())
    HELD.set(publisher.state()["held"])
