"""`/healthz` (process up), `/readyz` (database and layer reachable, recovery done) and `/metrics`, beside Django."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.conf import settings
from django.db import connection
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kandev import layerlink, metrics, server
from tasks.threads import in_thread

PATHS = {"/healthz", "/readyz", "/metrics"}


async def application(
    scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Answers the three probes; none of them needs credentials and none tells anything about people."""
    if scope["path"] == "/metrics":
        await in_thread(metrics.collect)
        await _send(send, 200, generate_latest(), CONTENT_TYPE_LATEST)
        return
    problems = await _problems() if scope["path"] == "/readyz" else []
    body = {"status": "ok"} if not problems else {"status": "unavailable", "problems": problems}
    await answer(send, 503 if problems else 200, body)


async def answer(send: Callable[[Any], Awaitable[None]], status: int, body: dict[str, Any]) -> None:
    """A JSON response."""
    await _send(send, status, json.dumps(body).encode(), "application/json")


async def _problems() -> list[str]:
    found = [] if server.is_ready() else ["recovery is not done"]
    if settings.REDIS_URL and not layerlink.connected():
        found.append("the channel layer is not reachable")
    try:
        await asyncio.wait_for(in_thread(_ping), 5)
    except Exception:  # noqa: BLE001 - whatever it was, the database cannot be read
        found.append("the database is not reachable")
    return found


def _ping() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


async def _send(send: Callable[[Any], Awaitable[None]], status: int, body: bytes, kind: str) -> None:
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
