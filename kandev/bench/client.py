"""The load client, a process of its own: raw sockets with keep-alive on one event loop.

It reads one JSON command a line and answers each with one line. Times are the monotonic clock, which all processes of a
machine share.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kandev.bench import clientlayer, clientsockets

CONNECTS_AT_ONCE = 20


async def load(ports: list[int], requests: list[str], connections: int, seconds: float) -> dict[str, Any]:
    """Sends the requests, each once, on `connections` connections spread over the ports, until the time is over."""
    waiting, codes, times = iter(requests), Counter[str](), list[float]()
    started = time.monotonic()
    workers = [
        _worker(ports[number % len(ports)], waiting, started + seconds, codes, times) for number in range(connections)
    ]
    await asyncio.gather(*workers)
    times.sort()
    return {
        "elapsed": time.monotonic() - started,
        "codes": dict(codes),
        "done": len(times),
        "p50": times[len(times) // 2] if times else None,
        "p99": times[len(times) * 99 // 100] if times else None,
    }


async def _worker(port: int, waiting: Iterator[str], until: float, codes: "Counter[str]", times: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in waiting:
        sent = time.monotonic()
        writer.write(request.encode())
        codes[await _answer(reader)] += 1
        times.append(time.monotonic() - sent)
        if time.monotonic() >= until:
            break
    writer.close()


async def _answer(reader: asyncio.StreamReader) -> str:
    """The status of the next answer; its body is read and forgotten."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
    length = next((int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), None)
    if length is None:
        await reader.readuntil(b"\r\n0\r\n\r\n")  # in chunks; short answers come in one
    else:
        await reader.readexactly(length)
    return head[9:12]


class Held:
    """Requests that stay open."""

    def __init__(self) -> None:
        self.writers: list[asyncio.StreamWriter] = []

    async def hold(self, port: int, requests: list[str]) -> dict[str, Any]:
        """Opens one connection a request and sends it; nobody reads the answer."""
        for start in range(0, len(requests), CONNECTS_AT_ONCE):
            await asyncio.gather(*(self._open(port, one) for one in requests[start : start + CONNECTS_AT_ONCE]))
        return {"open": len(self.writers)}

    async def _open(self, port: int, request: str) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request.encode())
        await writer.drain()
        self.writers.append(writer)

    async def release(self) -> dict[str, Any]:
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()
        return {}


async def serve() -> None:
    reader = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    held, sockets, layer = Held(), clientsockets.Sockets(), clientlayer.Listener()
    commands = {
        "load": load,
        "hold": held.hold,
        "release": held.release,
        "open": sockets.open,
        "expect": sockets.expect,
        "arrived": sockets.arrived,
        "close": sockets.close,
        "listen": layer.listen,
        "delays": layer.delays,
    }
    while line := await reader.readline():
        order = json.loads(line)
        result = await commands[order.pop("do")](**order)  # type: ignore[operator]
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve())
