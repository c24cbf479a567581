"""Turns one prompt's `session/update` stream into frames, in order, with the chunks of a message joined."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    CurrentModeUpdate,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)

from turns.runner.frames import Kind

ASK_TOOL = "ask_user_question_kandev"
QUIET_S = 0.2
LONGEST = 16_000
LONGEST_DATA = 100_000
TOOL_FIELDS = {"tool_call_id", "title", "kind", "status", "content", "locations", "raw_input", "raw_output"}

Emit = Callable[[Kind, str, dict[str, Any]], None]


class Asks:
    """Watches the calls of the question tool: has the prompt taken the result of its last one (R24)?

    Received means: no call is open and the one that ended last completed. A call that failed took nothing.
    """

    def __init__(self, note: Callable[[bool], None]) -> None:
        self._note = note
        self._open: set[str] = set()
        self._known: set[str] = set()

    def watch(self, update: ToolCallStart | ToolCallProgress) -> None:
        call = update.tool_call_id
        if call not in self._known:
            if not is_ask(update):
                return
            self._known.add(call)
            self._open.add(call)
            self._note(False)
        if update.status in ("completed", "failed") and call in self._open:
            self._open.discard(call)
            self._note(update.status == "completed" and not self._open)


def is_ask(update: ToolCallStart | ToolCallProgress) -> bool:
    """Agents name MCP tools in their own ways (`mcp__kandev__…`, `kandev_…`, `… (kandev MCP Server)`): in the title,
    in `_meta`, or as a name beside the arguments. The arguments are not looked at: a question may contain the name.
    """
    raw = update.raw_input if isinstance(update.raw_input, dict) else {}
    names = [raw[key] for key in ("tool", "tool_name", "toolName", "name") if isinstance(raw.get(key), str)]
    return any(ASK_TOOL in place for place in (update.title or "", str(update.field_meta or ""), *names))


class Transcript:
    """Feeds `emit`. A message goes out at the next other update, at `flush`, or after a fifth of a second of quiet."""

    def __init__(self, emit: Emit, note_received: Callable[[bool], None], quiet_s: float = QUIET_S) -> None:
        self._emit = emit
        self._asks = Asks(note_received)
        self._quiet_s = quiet_s
        self._kind: Kind = "message"
        self._message_id: str | None = None
        self._parts: list[str] = []
        self._length = 0
        self._timer: asyncio.TimerHandle | None = None

    def take(self, update: Any) -> None:
        """Handles one update. It never awaits, so updates cannot overtake each other."""
        if isinstance(update, AgentMessageChunk | AgentThoughtChunk):
            self._chunk("thinking" if isinstance(update, AgentThoughtChunk) else "message", update)
            return
        self.flush()
        if isinstance(update, ToolCallStart | ToolCallProgress):
            self._asks.watch(update)
            self._emit("tool", update.title or "", tool_data(update))
        elif isinstance(update, AgentPlanUpdate):
            entries = [entry.model_dump(mode="json", exclude_none=True) for entry in update.entries]
            self._emit("status", "\n".join(f"- {entry.content}" for entry in update.entries), {"plan": entries})
        elif isinstance(update, CurrentModeUpdate):
            self._emit("status", f"mode: {update.current_mode_id}", {"mode": update.current_mode_id})

    def _chunk(self, kind: Kind, update: AgentMessageChunk | AgentThoughtChunk) -> None:
        if kind != self._kind or (update.message_id and self._message_id and update.message_id != self._message_id):
            self.flush()
        self._kind, self._message_id = kind, update.message_id or self._message_id
        text = block_text(update.content)
        self._parts.append(text)
        self._length += len(text)
        if self._length >= LONGEST:
            self.flush()
            return
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._quiet_s, self.flush)

    def flush(self) -> None:
        """Sends the message collected so far, if there is one."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        text, self._parts, self._length, self._message_id = "".join(self._parts), [], 0, None
        if text.strip():
            for start in range(0, len(text), LONGEST):
                self._emit(self._kind, text[start : start + LONGEST], {})


def block_text(block: Any) -> str:
    """The text of a content block; what is not text is named, so that a reader sees that something was there."""
    if block.type == "text":
        return str(block.text)
    return f"[{block.type}]"


def tool_data(update: ToolCallStart | ToolCallProgress | ToolCallUpdate) -> dict[str, Any]:
    """What is shown of a tool call. A field that is too long for a transcript is left out and says so."""
    data = update.model_dump(mode="json", include=TOOL_FIELDS, exclude_none=True)
    return {name: short(value) for name, value in data.items()}


def short(value: Any) -> Any:
    size = len(json.dumps(value))
    return value if size <= LONGEST_DATA else f"(left out: {size:,} characters)"
