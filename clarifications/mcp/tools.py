"""What the tools of both surfaces share: their table, their arguments, their results."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from clarifications.mcp import wire
from clarifications.mcp.exchange import Exchange
from tasks import strictjson
from tasks.errors import Invalid, KandevError, TooMany, translate

logger = logging.getLogger(__name__)

VERSION = "1"
NOT_AN_OBJECT = ""  # the name under which arguments that are no object reach a tool
LATER = CallToolResult(content=[])  # what a tool returns that has set `exchange.later`; never written to anybody

Arguments = dict[str, Any]
Context = ServerRequestContext[Any, Exchange]
Run = Callable[[Exchange, Arguments], Awaitable[CallToolResult]]


@dataclass(frozen=True)
class Entry:
    """A tool as clients see it, and the function behind it. `shape` is what a faulty call is told to send."""

    tool: Tool
    run: Run
    shape: str

    @property
    def names(self) -> list[str]:
        return list(self.tool.input_schema["properties"])


def server(name: str, instructions: str, entries: Iterable[Entry]) -> Server[Any]:
    """An SDK server with these tools. Arguments reach the function unread, so that its own refusal is heard."""
    table = {entry.tool.name: entry for entry in entries}

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[entry.tool for entry in table.values()])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        exchange = context.request
        assert exchange is not None
        if exchange.outcome is not None:
            return exchange.outcome
        entry = table.get(params.name)
        if entry is None:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        return await _called(entry, exchange, params.arguments or {})

    made = Server(name, version=VERSION, instructions=instructions, on_list_tools=list_tools, on_call_tool=call_tool)
    made.middleware.clear()  # the SDK's tracing, which nothing here exports
    return made


async def _called(entry: Entry, exchange: Exchange, arguments: Arguments) -> CallToolResult:
    try:
        check_arguments(entry, arguments)
        return await entry.run(exchange, arguments)
    except Exception as error:  # noqa: BLE001 - whatever it was becomes a result that the model can read
        return refusal(translate(error), entry.shape)


async def outcome(later: Callable[[], Awaitable[CallToolResult]]) -> CallToolResult:
    """What came of a tool that waited."""
    try:
        return await later()
    except Exception as error:  # noqa: BLE001 - as above
        return refusal(translate(error), "the same call again")


def check_arguments(entry: Entry, arguments: Arguments) -> None:
    """Values that can be stored, and no argument but those of the tool: an unknown one would be ignored in silence."""
    if NOT_AN_OBJECT in arguments:
        raise Invalid("the arguments must be an object", fields={"arguments": ["must be an object"]})
    strictjson.check(arguments)
    refuse_unknown(arguments, entry.names, "")


def refuse_unknown(given: Mapping[str, Any], names: Iterable[str], at: str) -> None:
    """Invalid for keys that nobody reads, by name; `at` is where the object stands, with a dot."""
    unknown = {f"{at}{key}": [f"is not known here; known are {', '.join(names)}"] for key in given if key not in names}
    if unknown:
        raise Invalid("unknown arguments: " + ", ".join(unknown), fields=unknown)


def optional(arguments: Arguments, name: str, kind: type, default: Any) -> Any:
    """An argument of a type; null is the same as absent."""
    value = arguments.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Invalid(f"{name} is not valid", fields={name: [f"must be {WORDS[kind]}{_as_text(value)}"]})
    return value


WORDS = {str: "a text", bool: "true or false", int: "a whole number", list: "a list"}


def _as_text(value: object) -> str:
    return ", not a JSON text: send the value itself" if isinstance(value, str) else ""


def structured(value: dict[str, Any]) -> CallToolResult:
    """A result as structured content and the same as JSON text (contract 6)."""
    return CallToolResult(content=[_text(wire.encode(value).decode())], structured_content=value)


def failure(text: str, body: dict[str, Any] | None = None) -> CallToolResult:
    return CallToolResult(content=[_text(text)], structured_content=body, is_error=True)


def refusal(error: KandevError, shape: str) -> CallToolResult:
    """A refusal in words: the sentence, its code, each field; for faulty arguments what to send instead."""
    lines = [f"{error.message} ({error.code})"]
    if isinstance(error, Invalid):
        lines += [f"- {name}: {'; '.join(map(str, said))}" for name, said in error.body()["fields"].items()]
        lines.append(f"Nothing was stored. Expected: {shape}")
    if isinstance(error, TooMany):
        lines.append(f"Try again in {error.retry_after_s} s.")
    return failure("\n".join(lines), _clean(error.body()))


def _text(text: str) -> TextContent:
    return TextContent(text=text.encode("utf-8", "replace").decode())


def _clean(value: Any) -> Any:
    """Field names come from the caller and may hold what no UTF-8 can."""
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
