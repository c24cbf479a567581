"""Tool calls in the transcript: every update of a call is a row, and only its first one need carry the title."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.principals import Principal
from turns.models import Message


@dataclass(frozen=True)
class ToolRow:
    title: str
    status: str


def prepare(rows: Sequence[Message], _principal: Principal) -> Mapping[uuid.UUID, ToolRow]:
    """A row without a title has that of an earlier row of its call; as a last resort it says of what kind it is."""
    titles: dict[str, str] = {}
    found = {}
    for row in rows:
        data = _data(row)
        call = _text(data, "tool_call_id")
        title = row.content.strip() or titles.get(call, "")
        if call and title:
            titles[call] = title
        found[row.pk] = ToolRow(title or _text(data, "kind"), _text(data, "status"))
    return found


def _data(row: Message) -> dict[str, Any]:
    """What a runner sends is under `data`; imported rows may hold it at the top."""
    metadata = row.metadata if isinstance(row.metadata, dict) else {}
    data = metadata.get("data", metadata)
    return data if isinstance(data, dict) else {}


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""
