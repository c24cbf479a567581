"""A client whose end has reached the process unread: what is written then was taken by nobody (R20)."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

from clarifications import signals, waiting
from clarifications.api import wait
from clarifications.mcp import endpoint, wire
from clarifications.mcp.exchange import Exchange
from clarifications.mcp.reply import Reply
from clarifications.waiting import Waited
from tasks.principals import Principal
from tasks.socketauth import Caller

RESPONSE = {"answers": [], "rejected": True}
SCOPE = {"type": "http", "method": "GET", "path": "/api/v1/clarification/p/wait", "headers": [], "query_string": b""}


class Link:
    """A connection as the server sees it. `end` is the client's: it lies at the socket until the loop has read it."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.written: list[MutableMapping[str, Any]] = []

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.written.append(message)

    def end(self) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(self.events.put_nowait, {"type": "http.disconnect"})


Ended = Callable[[Link], Awaitable[None]]


async def rest(link: Link) -> None:
    await wait.application(SCOPE, link.events.get, link.send)


async def mcp(link: Link) -> None:
    exchange = Exchange(Principal(user=None), 1, None, Reply(link.send), "2025-06-18", modern=False)
    exchange.begin(link.events.get, "topic")
    waited = await waiting.wait(exchange.principal, "p", "mcp", None, exchange.gone)
    exchange.written = lambda _: waiting.returned(waited)
    exchange.lost = lambda: waiting.failed(waited)
    await endpoint._finish(exchange, wire.result(1, {}))
    exchange.close()


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each wait was recorded. The waits of this module end at once, with an answer, as the client hangs up."""
    said: list[str] = []

    def record(how: str) -> Callable[..., Awaitable[None]]:
        async def note(*_: object) -> None:
            said.append(how)

        return note

    monkeypatch.setattr(waiting, "returned", record("returned"))
    monkeypatch.setattr(waiting, "failed", record("failed"))
    monkeypatch.setattr(wait, "_admit", lambda *_: (Caller(Principal(user=None)), None, None))
    return said


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Link:
    made = Link()

    async def answered(*_: object) -> Waited:
        made.end()
        return Waited("rejected", RESPONSE, uuid.uuid4())

    monkeypatch.setattr(waiting, "wait", answered)
    return made


@pytest.mark.once
@pytest.mark.scenario("C5", "R20")
@pytest.mark.parametrize("serve", [rest, mcp])
async def test_an_end_that_nobody_has_read_yet_is_seen_before_the_answer_is_written(
    serve: Ended, link: Link, recorded: list[str]
) -> None:
    await serve(link)
    assert (recorded, link.written) == (["failed"], [])


@pytest.mark.once
@pytest.mark.scenario("C5", "R20")
@pytest.mark.parametrize("serve", [rest, mcp])
async def test_without_the_look_it_would_count_as_taken(
    serve: Ended, link: Link, recorded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "PASSES", 0)
    await serve(link)
    assert recorded == ["returned"]


@pytest.mark.once
@pytest.mark.scenario("C1", "R20")
@pytest.mark.parametrize("serve", [rest, mcp])
async def test_a_client_that_is_there_gets_it(serve: Ended, link: Link, recorded: list[str]) -> None:
    link.end = lambda: None  # type: ignore[method-assign]
    await serve(link)
    assert recorded == ["returned"]
    assert any(message.get("body") for message in link.written)
