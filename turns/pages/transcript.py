"""The transcript in windows: the last rows first, earlier ones when asked for, and from an anchor on when refreshed."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import HttpResponse

from tasks import access
from tasks.models import Session
from tasks.pages.base import PageRequest, page, show
from tasks.principals import Principal
from turns.models import Message
from turns.pages.entries import entries

WINDOW = 100
LONGEST = 400


@dataclass(frozen=True)
class Window:
    rows: list[Message]
    earlier: bool

    @property
    def first(self) -> Message | None:
        return self.rows[0] if self.rows else None


@page
def transcript(request: PageRequest, principal: Principal, session_id: str) -> HttpResponse:
    session = access.session(principal, session_id)
    before, start = _anchor(session, request.GET.get("before")), _anchor(session, request.GET.get("from"))
    window = window_of(session, before, start)
    context = {
        "session": session,
        "window": window,
        "entries": entries([row for row in window.rows if session.terminal or not is_queued(row)], principal),
    }
    template = "turns/earlier.html" if before else "turns/transcript.html"
    return show(request, principal, template, context)


def window_of(session: Session, before: Message | None, start: Message | None) -> Window:
    """The last rows, those before an anchor, or those from an anchor on unless that has become too long."""
    rows = Message.objects.filter(session=session)
    if start is not None:
        since = list(rows.filter(Q(pk=start.pk) | _after(start)).order_by("created_at", "id")[: LONGEST + 1])
        if len(since) <= LONGEST:
            return Window(since, rows.filter(_before(start)).exists())
    return _last(rows.filter(_before(before)) if before else rows)


def _last(rows: QuerySet[Message]) -> Window:
    found = list(rows.order_by("-created_at", "-id")[: WINDOW + 1])
    return Window(found[:WINDOW][::-1], len(found) > WINDOW)


def _anchor(session: Session, given: str | None) -> Message | None:
    """A row of this session; one that was deleted meanwhile is no anchor."""
    return Message.objects.filter(session=session, pk=access.parse_id(given)).first() if given else None


def _before(row: Message) -> Q:
    return Q(created_at__lt=row.created_at) | Q(created_at=row.created_at, pk__lt=row.pk)


def _after(row: Message) -> Q:
    return Q(created_at__gt=row.created_at) | Q(created_at=row.created_at, pk__gt=row.pk)


def is_queued(row: Message) -> bool:
    """A prompt that waits is shown in the queue, not as sent; in an ended session it is history that never went out."""
    return isinstance(row.metadata, dict) and row.metadata.get("admission") == "queued"
