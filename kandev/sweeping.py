"""The threads beside the requests of a process: its heartbeat, and the light sweep that every living process runs.

The sweep takes over what dead processes own, carries out due timers and watchdogs, and looks after lost hints. Each
piece is a guarded transaction, so any number of sweepers may run at once (promises E9, E12, K6).
"""

import logging
import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.utils import timezone

from clarifications import holding, watching
from clarifications import recovering as claims
from kandev import housekeeping, publisher
from tasks import hints, instances
from turns import recovering as dispatches
from turns import timers

logger = logging.getLogger(__name__)
SWEEP_S = 0.5
TAKEOVER_S = 1.0
_stop = threading.Event()
_threads: list[threading.Thread] = []
_ready_at = [timezone.now()]


def start() -> None:
    """Starts the threads, once."""
    if _threads:
        return
    _ready_at[0] = timezone.now()
    _Lease.renewed_at = time.monotonic()  # its start judged once; from now on it has no gap
    for name, interval, step in (
        ("kandev-heartbeat", min(2.0, settings.KANDEV_INSTANCE_LEASE_S / 4), _beat),
        ("kandev-sweep", SWEEP_S, _sweep),
        ("kandev-housekeeping", housekeeping.EVERY.total_seconds(), housekeeping.tidy),
        ("kandev-takeover", min(TAKEOVER_S, settings.KANDEV_INSTANCE_LEASE_S / 3), _take_over),
    ):
        thread = threading.Thread(target=_run, args=(interval, step), name=name, daemon=True)
        _threads.append(thread)
        thread.start()


def stop() -> None:
    _stop.set()


def _run(interval: float, step: Callable[[], None]) -> None:
    while not _stop.wait(interval):
        try:
            step()
        except Exception:
            logger.exception("%s failed; it goes on", threading.current_thread().name)
        finally:
            hints.release_connection()


class _Lease:
    """When this process last renewed its lease, and since when it has without a gap longer than a lease."""

    lock = threading.Lock()
    renewed_at = steady_since = float("-inf")


def _beat() -> None:
    """Renews the lease; any thread may. Declared dead meanwhile (frozen, or cut off from the database): a new
    generation; what the old one owned was taken over, and its guarded steps find so (E10).
    """
    with _Lease.lock:
        if not instances.renew():
            logger.warning("this process was declared dead; it goes on as a new generation")
            instances.register()
            instances.mark_ready()
            publisher.adopt()
        now = time.monotonic()
        if now - _Lease.renewed_at > settings.KANDEV_INSTANCE_LEASE_S:
            _Lease.steady_since = now
        _Lease.renewed_at = now


def _may_judge() -> bool:
    """Whether this process may take a peer's silence for death. After an outage of the database, or a freeze of its
    own, everybody's lease is over; a lease later those that live have renewed theirs.
    """
    return time.monotonic() - _Lease.steady_since >= settings.KANDEV_INSTANCE_LEASE_S


def _sweep() -> None:
    timers.run_due(_ready_at[0])
    watching.run_due()
    holding.poll()


def _take_over() -> None:
    _beat()
    bury_dead(by_lease=_may_judge())
    dispatches.sweep_dispatches()
    claims.sweep()
    claims.detach_dead_waiters()
    claims.detach_abandoned()
    claims.expire_ended()
    dispatches.forget_dead_sockets()
    dispatches.interrupt_lost(_ready_at[0])
    watching.take_over()


def bury_dead(*, by_lease: bool = True) -> None:
    """Declares lapsed instances dead. Their work is then nobody's, and whoever sweeps first takes each piece."""
    for row in instances.lapsed(by_lease=by_lease):
        if instances.end(row.pk):
            logger.warning("instance %s (pid %s) is dead, its work is taken over", row.pk, row.pid)
