"""A runner that goes while it is being answered: what its socket holds is given back all the same."""

import asyncio
import json
import logging
import uuid
from typing import Any

import pytest

from tasks import instances, tokens
from tasks.models import TokenKind
from tasks.threads import in_thread
from turns import runners
from turns.runner_socket import RunnerSocket


def frame(**fields: Any) -> dict[str, Any]:
    return {"type": "websocket.receive", "text": json.dumps(fields)}


def mint() -> str:
    instances.register()
    return tokens.mint(TokenKind.RUNNER, name="r")


@pytest.mark.scenario("R2")
@pytest.mark.parametrize("unanswered", ["pong", "welcome", "ping"])
async def test_an_answer_that_nobody_reads_does_not_cost_the_disconnect(
    transactional_db: None, unanswered: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is it an error of the server: runners come and go."""
    monkeypatch.setattr(instances, "_generation", 0)
    token = await in_thread(mint)
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    unread: list[str] = []
    runner_id = f"runner-{uuid.uuid4()}"

    async def send(message: dict[str, Any]) -> None:
        if message.get("text") and json.loads(message["text"])["type"] == unanswered:
            unread.append(unanswered)
            raise ConnectionError("closed")

    hello = frame(type="hello", runner_id=runner_id, version="1", agents=["a"], max_sessions=1, journal=[])
    for message in ({"type": "websocket.connect"}, hello, frame(type="ping")):
        incoming.put_nowait(message)
    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "websocket", "path": "/ws/runner/", "headers": headers, "client": ["127.0.0.1", 1]}
    socket = asyncio.ensure_future(RunnerSocket.as_asgi()(scope, incoming.get, send))
    while not unread or not await in_thread(runners.is_connected, runner_id):
        assert not socket.done()
        await asyncio.sleep(0.02)
    incoming.put_nowait({"type": "websocket.disconnect", "code": 1006})
    await asyncio.wait_for(socket, 10)
    assert not await in_thread(runners.is_connected, runner_id)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
