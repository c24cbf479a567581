"""Queries over claims and leases that more than one place needs."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from django.db.models import Q, QuerySet

from tasks import instances

if TYPE_CHECKING:
    from clarifications.models import Claim, WaiterLease  # noqa: F401 - the classes below are generic in them

OPEN = ("claimed", "confirmed", "accepted")


class ClaimQuerySet(QuerySet["Claim"]):
    def open(self) -> ClaimQuerySet:
        """Claims whose intent stands: the hand-over is owed, or done and not yet finalized."""
        return self.filter(state__in=OPEN)

    def unattended(self, now: dt.datetime) -> ClaimQuerySet:
        """Open claims whose owner is dead, or that their owner's task left behind (R14); never a living peer's."""
        mine = Q(owner=instances.generation(), attended_until__lt=now)
        return self.open().filter(~Q(owner__in=instances.alive_ids()) | mine)


class LeaseQuerySet(QuerySet["WaiterLease"]):
    def live(self, now: dt.datetime) -> LeaseQuerySet:
        """Waiters that count: not yet owed a response, not expired, in a living process. Their turn is open, because
        whatever ends a turn or session takes its leases in the same transaction (END_TAKES_LEASE)."""
        fresh = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
        return self.filter(fresh, claim_id__isnull=True, owner__in=instances.alive().values("pk"))
