"""Web sockets of the load client: they only count frames, so that a thousand of them cost one process little."""

import asyncio
import base64
import os
import struct
import time
from typing import Any

CONNECTS_AT_ONCE = 20
TEXT, PING, PONG = 1, 9, 10


class Counting(asyncio.Protocol):
    """One socket. `frames` counts text frames since `armed`; `owner` hears when it has its number."""

    def __init__(self, owner: "Sockets", head: bytes) -> None:
        self._owner, self._head = owner, head
        self._buffer = bytearray()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard = asyncio.Event()
        self.frames = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._head)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self.opened.done():
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            if not self._buffer.startswith(b"HTTP/1.1 101"):
                self.opened.set_exception(ConnectionError(bytes(self._buffer[:end]).decode("latin1")))
                return
            del self._buffer[: end + 4]
            self.opened.set_result(None)
        self._count()

    def _count(self) -> None:
        at = 0
        while (size := _size(self._buffer, at)) is not None:
            if self._buffer[at] & 15 == TEXT:
                self.frames += 1
                self.heard.set()
                self._owner.count(self)
            elif self._buffer[at] & 15 == PING:  # a server closes whoever leaves it unanswered for half a minute
                self._frame(PONG, bytes(self._buffer[at + 2 : at + size]))
            at += size
        del self._buffer[:at]

    def say(self, text: str) -> None:
        self._frame(TEXT, text.encode())

    def _frame(self, kind: int, raw: bytes) -> None:
        """One masked frame of less than 64 KiB; the mask is zero, so the payload stays as it is."""
        size = bytes([0x80 | len(raw)]) if len(raw) < 126 else b"\xfe" + struct.pack(">H", len(raw))
        self.transport.write(bytes([0x80 | kind]) + size + b"\0\0\0\0" + raw)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(error or ConnectionError("closed"))
        self._owner.lost(self)


def _size(buffer: bytearray, at: int) -> int | None:
    """The size of the whole frame at `at`; None while it is not all there."""
    if len(buffer) < at + 2:
        return None
    length, head = buffer[at + 1] & 127, 2
    if length >= 126:
        head = 4 if length == 126 else 10
        if len(buffer) < at + head:
            return None
        length = int.from_bytes(buffer[at + 2 : at + head], "big")
    return head + length if len(buffer) >= at + head + length else None


class Sockets:
    """A set of sockets; `expect` arms the count, `arrived` waits until every one has heard so many."""

    def __init__(self) -> None:
        self._open: list[Counting] = []
        self._expected = 0
        self._left = 0
        self._complete = asyncio.Event()
        self._at = 0.0
        self._broken = 0

    async def open(self, port: int, path: str, header: str, count: int, say: str) -> dict[str, Any]:
        """Opens `count` sockets; each says `say`, if it is not empty, and waits for the reply."""
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n{header}\r\n"
        )
        for start in range(0, count, CONNECTS_AT_ONCE):
            some = min(CONNECTS_AT_ONCE, count - start)
            await asyncio.gather(*(self._one(port, head.encode(), say) for _ in range(some)))
        return {"open": len(self._open)}

    async def _one(self, port: int, head: bytes, say: str) -> None:
        _, made = await asyncio.get_running_loop().create_connection(lambda: Counting(self, head), "127.0.0.1", port)
        await made.opened
        if say:
            made.say(say)
            await made.heard.wait()
        self._open.append(made)

    async def expect(self, frames: int) -> dict[str, Any]:
        for one in self._open:
            one.frames = 0
        self._expected, self._left = frames, len(self._open)
        self._complete.clear()
        return {}

    def count(self, one: Counting) -> None:
        if self._expected and one.frames == self._expected:
            self._left -= 1
            if not self._left:
                self._at = time.monotonic()
                self._complete.set()

    def lost(self, one: Counting) -> None:
        self._broken += one in self._open

    async def arrived(self, within: float) -> dict[str, Any]:
        """When the last socket heard its last frame; None when that did not happen in time."""
        try:
            await asyncio.wait_for(self._complete.wait(), within)
        except TimeoutError:
            return {"at": None, "left": self._left, "broken": self._broken}
        return {"at": self._at, "left": 0, "broken": self._broken}

    async def close(self) -> dict[str, Any]:
        opened, self._open = self._open, []
        for one in opened:
            one.transport.abort()
        self._expected = 0
        return {}
