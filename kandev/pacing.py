"""Makes a socket's `send` wait while its client does not read (promise B38 of the fault list).

Daphne hands every frame to Twisted, whose buffer grows without bound, and `send` returns at once, so that no
application can tell a slow client from a quick one. Twisted does say when its buffer is full and when it has drained;
with that, the bounded queue behind `send` is what fills up, and its owner decides.
"""

import asyncio
from typing import Any

from daphne.server import Server
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer


@implementer(IPushProducer)
class Pace:
    """Registered with a transport, which calls it at its high and low water marks and at its end."""

    def __init__(self) -> None:
        self._drained = asyncio.Event()
        self._drained.set()

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's names
        self._drained.clear()

    def resumeProducing(self) -> None:  # noqa: N802
        self._drained.set()

    def stopProducing(self) -> None:  # noqa: N802
        self._drained.set()

    async def keep(self) -> None:
        await self._drained.wait()


def install() -> None:
    """Teaches Daphne's sockets to pace; once a process, before it listens."""
    if getattr(Server, "kandev_paced", False):
        return
    Server.kandev_paced = True
    opened, reply = WebSocketProtocol.onOpen, Server.handle_reply

    def open_paced(self: Any) -> None:
        # The HTTP channel that the socket grew out of is still registered: it would stop the reading of pongs.
        self.transport.unregisterProducer()
        self.pace = Pace()
        self.transport.registerProducer(self.pace, True)
        opened(self)

    async def reply_paced(self: Any, protocol: Any, message: dict[str, Any]) -> None:
        await reply(self, protocol, message)
        if message["type"] == "websocket.send" and hasattr(protocol, "pace"):
            await protocol.pace.keep()

    WebSocketProtocol.onOpen, Server.handle_reply = open_paced, reply_paced
