"""JSON-RPC bodies. They are read leniently, so that the tool can name the field that is wrong (B31, B32, B73)."""

import json
import re
from typing import Any

from mcp_types import ErrorData, RequestId

from tasks import strictjson
from tasks.errors import Invalid

DEPTH_KEPT = strictjson.MAX_DEPTH + 16
MAX_DIGITS = 40
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def decode(raw: bytes) -> Any:
    """The value in `raw`; ValueError when it is no JSON or names a key twice.

    NaN, huge integers, NUL and lone surrogates pass, and nesting beyond any use is cut off below a depth that
    `strictjson.check` still refuses: a tool then refuses them by the name of the argument.
    """
    text = raw.decode("utf-8")
    try:
        return json.loads(text, parse_int=_int, object_pairs_hook=_once_each)
    except RecursionError:
        return json.loads(_shallow(text), parse_int=_int, object_pairs_hook=_once_each)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    try:
        return strictjson.once_each(pairs)
    except Invalid as error:
        raise ValueError(error.message) from None


def _int(digits: str) -> int:
    """Python refuses to read thousands of digits; forty are as much beyond 64 bits."""
    return int(digits[:MAX_DIGITS])


def _shallow(text: str) -> str:
    """The text without what is nested deeper than DEPTH_KEPT; brackets inside strings do not count."""
    kept: list[str] = []
    depth = begun = 0
    for found in TOKEN.finditer(text):
        step = {"[": 1, "{": 1, "]": -1, "}": -1}.get(found.group(), 0)
        depth += step
        if step == 1 and depth == DEPTH_KEPT + 1:
            kept.append(text[begun : found.start()] + "0")
        elif step == -1 and depth == DEPTH_KEPT:
            begun = found.end()
    return "".join(kept) + (text[begun:] if depth <= DEPTH_KEPT else "")


def encode(message: dict[str, Any]) -> bytes:
    """ASCII on one line: no lone surrogate can break it, and no line break can end an event."""
    return json.dumps(message, separators=(",", ":")).encode()


def result(request_id: RequestId, value: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def error(request_id: RequestId | None, data: ErrorData) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": data.model_dump(mode="json", by_alias=True, exclude_none=True)}


def notification(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method} | ({"params": params} if params is not None else {})


def event(message: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"event: message\r\ndata: " + encode(message) + b"\r\n\r\n"
