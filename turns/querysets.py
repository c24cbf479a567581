"""The one rule (design.md): which turn is a session's current one, and which questions and permission requests are
active.

Guard, detach, expiry, claim, restore, projection, summary, discovery and pages are built on `MessageQuerySet.active`;
nothing else orders turns to find the newest one or tests a question's status for pending (promise A10).
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.db.models import BooleanField, Case, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When

from tasks import prepared
from tasks.models import TERMINAL

if TYPE_CHECKING:
    from turns.models import Dispatch, Message, Turn  # noqa: F401 - the classes below are generic in them

PENDING = ("", "pending")
QUESTION, PERMISSION = "clarification_request", "permission_request"


class TurnQuerySet(QuerySet["Turn"]):
    def authoritative(self) -> TurnQuerySet:
        """Turns that may be current: all but empty reservations (pending marker, no attempt marker, no message; A4)."""
        from turns.models import Message

        evidence = Exists(Message.objects.filter(turn_id=OuterRef("pk")))
        return self.filter(Q(dispatch_pending=False) | Q(dispatch_attempted=True) | evidence)

    def newest_first(self) -> TurnQuerySet:
        """Newest = last by (started_at, created_at, id), the same on both databases (A6)."""
        return self.order_by(F("started_at").desc(), F("created_at").desc(), F("id").desc())

    def published(self) -> TurnQuerySet:
        """Turns that people see: a reservation stays hidden until it is published or an agent's row references it."""
        from turns.models import Message

        evidence = Exists(Message.objects.filter(turn_id=OuterRef("pk")))
        return self.filter(Q(dispatch_pending=False) | evidence)

    def current_of(self, session_id: uuid.UUID) -> Turn | None:
        """The session's current turn, or None."""
        if self.query.where:  # only some turns are looked at
            return self.newest_of(session_id).first()
        return _current.first(session_id)

    def newest_of(self, session_id: uuid.UUID) -> TurnQuerySet:
        return self.filter(session=session_id).authoritative().newest_first()


@prepared.rows
def _current(session_id: uuid.UUID) -> QuerySet[Turn]:
    from turns.models import Turn

    return Turn.objects.newest_of(session_id)[:1]


def current_turn_id(session_reference: str) -> Subquery:
    """The id of the current turn of the session at `session_reference` of the outer row."""
    from turns.models import Turn

    turns = Turn.objects.filter(session=OuterRef(session_reference)).authoritative().newest_first()
    return Subquery(turns.values("pk")[:1])


class MessageQuerySet(QuerySet["Message"]):
    def questions(self) -> MessageQuerySet:
        return self.filter(type=QUESTION)

    def pending(self, kind: str = QUESTION) -> MessageQuerySet:
        """Rows of that kind that say pending; only `active` tells whether they count.

        Not `IN`: SQLite finds the partial indexes' condition in `a OR b`, but not in a list of parameters.
        """
        return self.filter(Q(status="") | Q(status="pending"), type=kind)

    def open_in_current_turn(self, kind: str = QUESTION) -> MessageQuerySet:
        """Pending rows of that kind in the current turn, whatever the session's state: what an ended session expires
        (F3).
        """
        return self.pending(kind).filter(turn_id=current_turn_id("session"))

    def active(self, kind: str = QUESTION) -> MessageQuerySet:
        """Rows of that kind, questions or permission requests, that count now: pending, turn current, session not
        terminal (A1, A2, A7).
        """
        return self.open_in_current_turn(kind).exclude(session__state__in=TERMINAL)

    def with_active(self) -> MessageQuerySet:
        """Adds `is_active`: the same rule as a column."""
        from turns.models import Message

        mine = Message.objects.filter(pk=OuterRef("pk")).active()
        whens = When(Exists(mine), then=Value(True))
        return self.annotate(  # type: ignore[no-redef]
            is_active=Case(whens, default=Value(False), output_field=BooleanField())
        )

    def bundle(self, pending_id: str) -> MessageQuerySet:
        """All rows of a bundle in its question order; () of an unknown one."""
        return self.filter(pending_id=pending_id).exclude(pending_id="").order_by("created_at", "id")


class DispatchQuerySet(QuerySet["Dispatch"]):
    def unsettled(self) -> DispatchQuerySet:
        from turns.models import UNSETTLED

        return self.filter(state__in=UNSETTLED)
