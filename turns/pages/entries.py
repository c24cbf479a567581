"""How a transcript row is shown. A higher layer registers the template of its own message type and what that needs."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.principals import Principal
from turns.models import Message, MessageType
from turns.pages import tools

Prepare = Callable[[Sequence[Message], Principal], Mapping[uuid.UUID, Any]]
PLAIN = "turns/entries/message.html"


def _nothing(_rows: Sequence[Message], _principal: Principal) -> Mapping[uuid.UUID, Any]:
    return {}


@dataclass(frozen=True)
class EntryKind:
    """`prepare` reads what all rows of the type need at once; its result is the template's `extra`."""

    template: str
    prepare: Prepare = _nothing


@dataclass(frozen=True)
class Entry:
    message: Message
    template: str
    extra: Any
    version: str


_kinds: dict[str, EntryKind] = {
    MessageType.TOOL: EntryKind("turns/entries/tool.html", tools.prepare),
    MessageType.THINKING: EntryKind("turns/entries/thinking.html"),
    MessageType.STATUS: EntryKind("turns/entries/status.html"),
}


def register(message_type: str, kind: EntryKind) -> None:
    _kinds[message_type] = kind


def entries(rows: Sequence[Message], principal: Principal) -> list[Entry]:
    """The rows as they are shown. `version` changes when the entry would look different."""
    extras: dict[uuid.UUID, Any] = {}
    for message_type, kind in _kinds.items():
        mine = [row for row in rows if row.type == message_type]
        extras |= kind.prepare(mine, principal) if mine else {}
    return [_entry(row, extras.get(row.pk)) for row in rows]


def _entry(row: Message, extra: Any) -> Entry:
    kind = _kinds.get(row.type)
    version = f"{row.updated_at.timestamp():.6f} {getattr(extra, 'state', '')}"
    return Entry(row, kind.template if kind else PLAIN, extra, version)
