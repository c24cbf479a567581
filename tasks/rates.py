"""Rate limits that hold across processes: one row a key, counted under a guarded update (H8, R38).

A window begins with the first attempt of its key, so no window of that length ever holds more than the limit.
"""

import datetime as dt
import hashlib

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from tasks.errors import TooMany
from tasks.models import RateWindow
from tasks.principals import Principal

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse(text: str) -> tuple[int, int]:
    """`"10/m"` to (10, 60)."""
    count, _, unit = text.partition("/")
    return int(count), UNITS[unit.strip()[:1]]


def count(scope: str, key: str, limit: str) -> None:
    """Counts one attempt of `key`; TooMany with the seconds to wait when it is over `limit`."""
    allowed, seconds = parse(limit)
    row, now = f"{scope}:{hashlib.sha256(key.encode()).hexdigest()[:32]}", timezone.now()
    start = now - dt.timedelta(seconds=seconds)
    fresh = RateWindow.objects.filter(pk=row, started_at__gt=start)
    if fresh.filter(count__lt=allowed).update(count=F("count") + 1):
        return
    window = fresh.first()
    if window is not None:
        raise TooMany(max(1, int((window.started_at - start).total_seconds()) + 1))
    _begin(row, now, start, scope, key, limit)


def _begin(row: str, now: dt.datetime, start: dt.datetime, scope: str, key: str, limit: str) -> None:
    """A new window; when another process began it first, this attempt counts in that one."""
    if RateWindow.objects.filter(pk=row, started_at__lte=start).update(started_at=now, count=1):
        return
    try:
        with transaction.atomic():
            RateWindow.objects.create(key=row, started_at=now, count=1)
    except IntegrityError:
        count(scope, key, limit)


def count_failed_token(address: str) -> None:
    count("token", address, settings.KANDEV_RATE_TOKEN)


def count_failed_login(address: str) -> None:
    count("login", address, settings.KANDEV_RATE_LOGIN)


def check_login(address: str) -> None:
    """TooMany when the address has used up its failed log-ins; counts nothing."""
    allowed, seconds = parse(settings.KANDEV_RATE_LOGIN)
    row, start = f"login:{hashlib.sha256(address.encode()).hexdigest()[:32]}", timezone.now() - dt.timedelta(seconds=seconds)
    window = RateWindow.objects.filter(pk=row, started_at__gt=start, count__gte=allowed).first()
    if window is not None:
        raise TooMany(max(1, int((window.started_at - start).total_seconds()) + 1))


def count_answer(principal: Principal) -> None:
    """Answer attempts per person, lost ones counted; per address when authentication is off (R38)."""
    key = principal.pk if settings.KANDEV_AUTH != "off" else f"address:{principal.address}"
    count("answer", key, settings.KANDEV_RATE_ANSWER)
