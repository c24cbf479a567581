"""What agents ask leave for: open requests as forms, and all of them as entries of the transcript."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from tasks import access
from tasks.pages.base import PageRequest, may, page, show
from tasks.principals import Need, Principal
from turns.models import PERMISSION, Message
from turns.pages.entries import EntryKind, register
from turns.querysets import MessageQuerySet

LIMIT = 100


@dataclass(frozen=True)
class Option:
    id: str
    name: str
    kind: str

    @property
    def allows(self) -> bool:
        return self.kind.startswith("allow")


@dataclass(frozen=True)
class Permission:
    """`state` is open, answered, cancelled, or superseded for an imported row that nobody ended."""

    message: Message
    title: str
    tool: dict[str, Any]
    options: list[Option]
    chosen: Option | None
    state: str


@page
def pending(request: PageRequest, principal: Principal, session_id: str) -> HttpResponse:
    """The open requests of a session, oldest first."""
    session = access.session(principal, session_id)
    context = {
        "permissions": opened(Message.objects.filter(session=session)),
        "may_answer": may(access.session, principal, session.pk, Need.ANSWER),
        "inbox": False,
    }
    return show(request, principal, "turns/permissions.html", context)


def opened(rows: MessageQuerySet) -> list[Permission]:
    """The open requests among `rows`, the longest blocked first.

    Sorted here: for an order SQLite would walk the whole transcript instead of the few open rows.
    """
    active = rows.active(PERMISSION).select_related("session__task").order_by()
    oldest = sorted(active, key=lambda row: (row.created_at, row.pk))[:LIMIT]
    return [_permission(row, "open") for row in oldest]


def prepare(rows: Sequence[Message], _principal: Principal) -> Mapping[uuid.UUID, Permission]:
    """For the transcript."""
    active = set(
        Message.objects.filter(pk__in=[row.pk for row in rows]).active(PERMISSION).values_list("pk", flat=True)
    )
    ended = ("answered", "cancelled")
    states = {row.pk: row.status if row.status in ended else "superseded" for row in rows}
    return {row.pk: _permission(row, "open" if row.pk in active else states[row.pk]) for row in rows}


def _permission(row: Message, state: str) -> Permission:
    """Of a row that may have been imported, so that anything in it may be missing."""
    metadata = row.metadata if isinstance(row.metadata, dict) else {}
    offered = metadata.get("options")
    options = [_option(one) for one in offered if isinstance(one, dict)] if isinstance(offered, list) else []
    tool = metadata.get("tool")
    chosen = next((one for one in options if one.id == metadata.get("option_id")), None)
    return Permission(row, row.content, tool if isinstance(tool, dict) else {}, options, chosen, state)


def _option(offered: dict[str, Any]) -> Option:
    return Option(*(str(offered.get(key) or "") for key in ("option_id", "name", "kind")))


def connect() -> None:
    register(PERMISSION, EntryKind("turns/entries/permission.html", prepare))
