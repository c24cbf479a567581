"""The shapes of the frames on `/ws/runner/` (docs/runner-protocol.md) as the runner reads and writes them."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Frame = dict[str, Any]
Outcome = Literal["accepted", "completed", "rejected", "revoked"]
Kind = Literal["message", "thinking", "tool", "status"]
Generation = int | str
DEEPEST = 32


class FrameError(ValueError):
    """A frame from the server lacks a field or has one of the wrong type; the message names the field."""


@dataclass(frozen=True)
class PromptKey:
    """Names one prompt of one execution. Each frame about a prompt carries these three, so that late ones are known."""

    session_id: str
    execution_id: str
    prompt_generation: Generation | None

    def frame(self, type_: str, **fields: Any) -> Frame:
        return {"type": type_, **asdict(self), **{name: clean(value) for name, value in fields.items()}}


@dataclass(frozen=True)
class Endpoint:
    """The MCP endpoint of one dispatch. `repr` leaves the token out: it must not reach a log."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"


@dataclass(frozen=True)
class Dispatch:
    dispatch_id: str
    key: PromptKey
    task_id: str
    turn_id: str
    agent: str
    prompt: str
    mcp: Endpoint
    replaces: PromptKey | None = None


def clean(value: Any, depth: int = 0) -> Any:
    """What an agent said, as every reader and database takes it: no NUL, half surrogates, NaN or endless nesting."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, dict | list):
        return value
    if depth >= DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {clean(str(name)): clean(item, depth + 1) for name, item in value.items()}
    return [clean(item, depth + 1) for item in value]


def text(frame: Frame, name: str) -> str:
    """Returns the text field `name`, or raises FrameError."""
    value = frame.get(name)
    if not isinstance(value, str) or not value:
        raise FrameError(f"`{name}` must be a text")
    return value


def generation(frame: Frame) -> Generation | None:
    value = frame.get("prompt_generation")
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise FrameError("`prompt_generation` must be a number, a text or null")
    return value


def prompt_key(frame: Frame) -> PromptKey:
    return PromptKey(text(frame, "session_id"), text(frame, "execution_id"), generation(frame))


def prompt_text(frame: Frame) -> str:
    """The prompt is a text; a list of ACP text blocks is taken as well and joined."""
    prompt = frame.get("prompt")
    if isinstance(prompt, list):
        prompt = "\n\n".join(str(block.get("text", "")) for block in prompt if isinstance(block, dict))
    if not isinstance(prompt, str):
        raise FrameError("`prompt` must be a text")
    return prompt


def dispatch(frame: Frame) -> Dispatch:
    """Reads a `dispatch` frame, or raises FrameError."""
    key, mcp, replaces = prompt_key(frame), frame.get("mcp"), frame.get("replaces")
    if not isinstance(mcp, dict):
        raise FrameError("`mcp` must be an object with `url` and `token`")
    if replaces is not None and not isinstance(replaces, dict):
        raise FrameError("`replaces` must be an object")
    return Dispatch(
        dispatch_id=text(frame, "dispatch_id"),
        key=key,
        task_id=text(frame, "task_id"),
        turn_id=text(frame, "turn_id"),
        agent=text(frame, "agent"),
        prompt=prompt_text(frame),
        mcp=Endpoint(text(mcp, "url"), text(mcp, "token")),
        replaces=prompt_key({**replaces, "session_id": key.session_id}) if replaces else None,
    )
