"""The load client's sockets answer pings: a server closes those that do not within half a minute."""

import asyncio

import pytest
from websockets.asyncio.server import ServerConnection, serve

from kandev.bench.clientsockets import Sockets

pytestmark = pytest.mark.once


async def test_a_ping_is_answered_between_frames() -> None:
    ponged, armed = asyncio.Event(), asyncio.Event()

    async def talk(link: ServerConnection) -> None:
        assert await link.recv() == "hello"
        await link.send("welcome")
        await (await link.ping(b"are you there"))
        ponged.set()
        await armed.wait()
        await link.send("x" * 70_000)
        await link.wait_closed()

    async with serve(talk, "127.0.0.1", 0, ping_interval=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        sockets = Sockets()
        await sockets.open(port, "/", "", 1, "hello")
        await sockets.expect(1)
        armed.set()
        found = await sockets.arrived(10)
        assert (found["left"], found["broken"], ponged.is_set()) == (0, 0, True)
        await sockets.close()
