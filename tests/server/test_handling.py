"""Django's handler as the API runs it: one thread a request, which was there before."""

import threading
from typing import Any

import pytest
from django.core import signals

from kandev.handling import Handler


async def get(handler: Handler, path: str) -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []
    came = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        return next(came)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    head = {"http_version": "1.1", "scheme": "http", "root_path": "", "query_string": b"", "client": ["127.0.0.1", 1]}
    scope = {"type": "http", "method": "GET", "path": path, "headers": [(b"host", b"127.0.0.1")], **head}
    await handler(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture
def threads() -> Any:
    """The threads that requests ended in."""
    found: list[threading.Thread] = []

    def note(**_: Any) -> None:
        found.append(threading.current_thread())

    signals.request_finished.connect(note)
    yield found
    signals.request_finished.disconnect(note)


@pytest.mark.once
async def test_requests_in_turn_share_threads(threads: list[threading.Thread]) -> None:
    handler = Handler()
    for _ in range(8):
        status, body = await get(handler, "/api/v1/nothing")
        assert (status, body[:8]) == (404, b'{"error"')
    assert len(threads) == 8
    assert len(set(threads)) < 4  # one that has just answered may not be idle yet
    assert threads[0].name.startswith("kandev-request")


@pytest.mark.once
async def test_a_client_that_left_before_its_request_was_read_is_dropped() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b"", "root_path": ""}
    await Handler()(scope, receive, send)
    assert sent == []
