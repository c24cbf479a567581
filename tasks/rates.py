"""Rate limits that hold across processes: one row a key, counted under a guarded update (H8, R38).

A window begins with the first attempt of its key and holds at most the limit, whoever counts at the same moment; any
span of a window's length so holds less than twice the limit. Nothing here runs inside the transaction of a change.
"""

import datetime as dt
import hashlib

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from tasks import prepared
from tasks.errors import TooMany
from tasks.models import RateWindow
from tasks.principals import Principal

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
ROUNDS = 5


def parse(text: str) -> tuple[int, dt.timedelta]:
    """`"10/m"` to (10, one minute)."""
    count, _, unit = text.partition("/")
    return int(count), dt.timedelta(seconds=UNITS[unit.strip()[:1]])


def count(scope: str, key: str, limit: str) -> None:
    """Counts one attempt of `key`; TooMany with the seconds to wait when it is over `limit`.

    A round is lost only to a process that began, or ended, the window in between; the next one then sees that window.
    """
    allowed, length = parse(limit)
    row = _row(scope, key)
    for _ in range(ROUNDS):
        now = timezone.now()
        fresh = RateWindow.objects.filter(pk=row, started_at__gt=now - length)
        if _take(row, now - length, allowed):
            return
        _refuse_if_full(fresh, allowed, now - length)
        if allowed and _begin(row, now, now - length):
            return
    raise TooMany(1)


@prepared.update
def _take(row: str, begun_after: dt.datetime, allowed: int) -> prepared.Change:
    fresh = RateWindow.objects.filter(pk=row, started_at__gt=begun_after)
    return fresh.filter(count__lt=allowed), {"count": F("count") + 1}


def _row(scope: str, key: str) -> str:
    return f"{scope}:{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def _refuse_if_full(fresh: QuerySet[RateWindow], allowed: int, start: dt.datetime) -> None:
    window = fresh.filter(count__gte=allowed).first()
    if window is not None:
        raise TooMany(max(1, int((window.started_at - start).total_seconds()) + 1))


def _begin(row: str, now: dt.datetime, start: dt.datetime) -> bool:
    """A new window with this attempt in it; False when another process began it first."""
    if RateWindow.objects.filter(pk=row, started_at__lte=start).update(started_at=now, count=1):
        return True
    try:
        with transaction.atomic():
            RateWindow.objects.create(key=row, started_at=now, count=1)
    except IntegrityError:
        return False
    return True


def count_failed_token(address: str) -> None:
    count("token", address, settings.KANDEV_RATE_TOKEN)


def count_login(address: str) -> None:
    """Counts a log-in before its password is looked at, so that attempts at the same moment cannot all pass."""
    count("login", address, settings.KANDEV_RATE_LOGIN)


def forgive_login(address: str) -> None:
    """Takes the count of a log-in back that succeeded: only failed ones are limited (contract 2)."""
    RateWindow.objects.filter(pk=_row("login", address), count__gt=0).update(count=F("count") - 1)


def count_answer(principal: Principal) -> None:
    """Answer attempts per person, lost ones counted; per address when authentication is off (R38)."""
    key = f"address:{principal.address}" if principal.anybody else principal.pk
    count("answer", key, settings.KANDEV_RATE_ANSWER)
