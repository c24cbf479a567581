"""`GET /api/v1/clarification/{pending_id}/wait`, an ASGI application beside Django (contract 3).

Django's own handler would pin a thread for as long as the request is open. Authentication and access are the same
functions.
"""

import asyncio
import json
import re
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, unquote

from django.utils import timezone

from clarifications import bundles, credentials, waiting
from clarifications.signals import Signal
from clarifications.waiting import Waited
from tasks import socketauth
from tasks.errors import KandevError, UnknownHost, invalid, translate
from tasks.socketauth import Caller
from tasks.threads import in_thread

PATH = re.compile(r"^/api/v1/clarification/([^/]+)/wait$")
NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?", re.ASCII)
MAX_TIMEOUT_S = 10_000_000
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

SENTENCES = {
    "timeout": "nobody answered in time; the question stands and its answer may come as a new prompt",
    "detached": "nobody waits for this answer any more; it may come as a new prompt",
    "cancelled": "the request was cancelled",
    "expired": "the session has ended",
    "superseded": "a newer turn has begun; the question is history",
}


def matches(path: str) -> bool:
    return PATH.match(path) is not None


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Holds the request until the bundle's wait ends. HEAD is refused: it would take the answer and drop it."""
    if scope["method"] != "GET":
        body = {"error": f'Method "{scope["method"]}" not allowed.', "code": "method_not_allowed"}
        await _answer(send, 405, body, [(b"allow", b"GET")])
        return
    gone = Signal()
    watch = asyncio.ensure_future(_watch(receive, gone))
    watched = None
    try:
        try:
            pending_id = unquote(_raw_id(scope))
            caller, limit, task_id = await in_thread(_admit, scope, pending_id)
            watched = credentials.Watched(caller, gone.set, task_id)
            credentials.watch.add(watched)
            held = waiting.wait(caller.principal, pending_id, "rest", limit, gone)
            del caller  # it would be kept as long as the wait
            waited = await held
        except Exception as error:  # noqa: BLE001 - translated, and logged there when it is not expected
            await _refuse(send, translate(error))
            return
        if watched.why is not None:
            await waiting.failed(waited)
            await _refuse(send, watched.why)
            return
        await _end(send, waited, gone)
    finally:
        watch.cancel()
        if watched is not None:
            credentials.watch.remove(watched)


async def _watch(receive: Receive, gone: Signal) -> None:
    """Sets `gone` when the client's connection is lost."""
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


def _admit(scope: Scope, pending_id: str) -> tuple[Caller, float | None, uuid.UUID | None]:
    """Who calls, the limit that he gave, and for a person the task that he must go on seeing while he waits."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope.get("headers", ())}
    if "host" in headers and not socketauth.knows_host(headers["host"]):
        raise UnknownHost
    caller = socketauth.identify(headers, str((scope.get("client") or [""])[0]))
    limit = _timeout(scope)
    if caller.principal.is_agent:
        return caller, limit, None
    return caller, limit, bundles.reach(caller.principal, pending_id).session.task_id


def _raw_id(scope: Scope) -> str:
    found = PATH.match(scope["path"])
    return found.group(1) if found else ""


def _timeout(scope: Scope) -> float | None:
    """`?timeout_s=`: a number of seconds above zero; Invalid names it otherwise."""
    given = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True).get("timeout_s")
    if not given:
        return None
    seconds = float(given[-1]) if NUMBER.fullmatch(given[-1]) else 0.0
    if not 0 < seconds < MAX_TIMEOUT_S:
        raise invalid("timeout_s", "must be a number of seconds above zero")
    return seconds


async def _end(send: Send, waited: Waited, gone: Signal) -> None:
    if waited.response is not None:
        if await gone.caught_up():
            await waiting.failed(waited)
            return
        written_at = timezone.now()
        await _answer(send, 200, waited.response)
        await waiting.returned(waited, written_at)
    elif waited.code == "temporarily_unavailable":
        body = {"error": "the server is restarting, wait again", "code": waited.code, "retryable": True}
        await _answer(send, 503, body, [(b"retry-after", b"1")])
    elif waited.code != "gone":
        await _answer(send, 504, {"error": SENTENCES[waited.code], "code": waited.code})


async def _refuse(send: Send, refusal: KandevError) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in refusal.headers().items()]
    await _answer(send, refusal.status, refusal.body(), headers)


async def _answer(
    send: Send, status: int, body: dict[str, Any], headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    start = [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode()), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": raw})
