"""This process' generation and the liveness of the others.

An instance is alive while it has not ended and its lease is fresh by the database's clock. Everything that a process
owns (claims, reservations, leases, outbox rows) carries its generation; guarded updates name it.
"""

import datetime as dt
import os
import socket
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from tasks.models import Epoch, Instance

_generation = 0


def generation() -> int:
    """This process' generation; 0 in a process that serves nothing (management commands)."""
    return _generation


def host_name() -> str:
    """The place where a process id means the same: host, boot and process namespace. Two containers on one host differ,
    so that neither takes the other's living process for a dead one (E9).
    """
    boot, space = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    since = boot.read_text().strip() if boot.exists() else ""
    return f"{socket.gethostname()}:{since}:{space.readlink() if space.is_symlink() else ''}"[:200]


def process_start(pid: int) -> str:
    """The kernel's start time of a process, so that a reused pid is not taken for the old process; "" when unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


def register() -> Instance:
    """Adds this process as a new generation and raises the epoch that all later revisions carry."""
    global _generation  # noqa: PLW0603 - one generation a process
    with transaction.atomic():
        Epoch.objects.get_or_create(id=1)
        Epoch.objects.filter(id=1).update(value=F("value") + 1)
        made = Instance.objects.create(
            host=host_name(),
            pid=os.getpid(),
            process_start=process_start(os.getpid()),
            started_at=Now(),
            renewed_at=Now(),
        )
    _generation = made.pk
    return made


def renew() -> bool:
    """Renews this process' lease; False when it was declared dead meanwhile (it must then register anew)."""
    return bool(Instance.objects.filter(pk=_generation, ended_at__isnull=True).update(renewed_at=Now()))


def mark_ready() -> None:
    Instance.objects.filter(pk=_generation).update(ready_at=Now(), renewed_at=Now())


def end(pk: int | None = None) -> bool:
    """Declares an instance dead; the count decides who takes its work over."""
    return bool(
        Instance.objects.filter(pk=_generation if pk is None else pk, ended_at__isnull=True).update(ended_at=Now())
    )


def lease() -> dt.timedelta:
    return dt.timedelta(seconds=settings.KANDEV_INSTANCE_LEASE_S)


def alive() -> QuerySet[Instance]:
    return Instance.objects.filter(ended_at__isnull=True, renewed_at__gt=Now() - lease())


def alive_ids() -> list[int]:
    """Whose work is nobody else's: every instance that was not declared dead. A lease that is merely over, as all are
    after an outage of the database, gives nobody the right to act; `end` is the one decision.
    """
    return list(Instance.objects.filter(ended_at__isnull=True).values_list("pk", flat=True))


def lapsed(*, by_lease: bool = True) -> list[Instance]:
    """Instances that were not declared dead but whose process is gone from this host or (`by_lease`) whose lease is
    over.
    """
    mine = host_name()
    rows = Instance.objects.filter(ended_at__isnull=True).exclude(pk=_generation)
    late = set(rows.filter(~Q(renewed_at__gt=Now() - lease())).values_list("pk", flat=True)) if by_lease else set()
    return [row for row in rows if row.pk in late or (row.host == mine and _gone(row))]


def _gone(row: Instance) -> bool:
    return row.pid == os.getpid() or process_start(row.pid) != row.process_start


def database_now() -> dt.datetime:
    """The database's clock, which all processes share."""
    with connection.cursor() as cursor:
        sql = (
            "SELECT clock_timestamp()"
            if connection.vendor == "postgresql"
            else "SELECT strftime('%Y-%m-%d %H:%M:%f','now')"
        )
        cursor.execute(sql)
        value = cursor.fetchone()[0]
    return value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(value).replace(tzinfo=dt.UTC)
