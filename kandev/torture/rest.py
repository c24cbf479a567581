"""What a client hears: a status and a body, or that the connection was lost."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import urlsplit

import httpx2

LOST = 0
LAST_WORDS_S = 20.0
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Told:
    """`status` LOST: nobody knows what became of the request."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))


class Client:
    """Requests to whichever of the servers the dice choose. `kept` connections stay open, where servers do."""

    def __init__(self, urls: Sequence[str], random: Random, kept: int = 0) -> None:
        self.urls, self._random = list(urls), random
        limits = httpx2.Limits(max_connections=200, max_keepalive_connections=kept)
        self.hang_up = asyncio.Event()
        self._http = httpx2.AsyncClient(timeout=30, trust_env=False, limits=limits)

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, method: str, path: str, token: str, body: Any = None, timeout_s: float = 30) -> Told:
        url = f"{self._random.choice(self.urls)}/api/v1{path}"
        headers = {"Authorization": f"Bearer {token}"}
        try:
            got = await self._http.request(method, url, json=body, headers=headers, timeout=timeout_s)
            return Told(got.status_code, got.json() if got.content else {})
        except (httpx2.TransportError, ValueError):
            return Told(LOST, {})

    async def held(self, method: str, path: str, token: str, body: Any, patience_s: float) -> tuple[int, str]:
        """Status and text of a call that may be held open; LOST when patience or connection ends first.

        Who loses patience, or is told to `hang_up`, does so one way only and reads to the end: what a server wrote to
        a client that was still there has arrived. A client that closes both ways may throw away an answer that lies
        unread on its own machine, and then no server could be blamed.
        """
        where = urlsplit(self._random.choice(self.urls))
        raw = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {token}\r\n"
            f"Accept: {MCP_HEADERS['Accept']}\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n"
            "Connection: close\r\n\r\n"
        )
        try:
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
        except OSError:
            return LOST, ""
        got = bytearray()
        try:
            writer.write(head.encode() + raw)
            read = asyncio.ensure_future(_read_on(reader, got))
            impatient = asyncio.ensure_future(self.hang_up.wait())
            await asyncio.wait({read, impatient}, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
            impatient.cancel()
            if not read.done():
                writer.write_eof()
            await asyncio.wait_for(read, LAST_WORDS_S)
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()
        return _parted(bytes(got))

    async def wait(self, pending_id: str, token: str, limit_s: float, patience_s: float) -> Told:
        """An agent's wait over REST."""
        path = f"/api/v1/clarification/{pending_id}/wait?timeout_s={limit_s}"
        status, text = await self.held("GET", path, token, None, patience_s)
        try:
            return Told(status, json.loads(text))
        except ValueError:
            return Told(LOST, {})

    async def tool(self, path: str, token: str, name: str, arguments: dict[str, Any], timeout_s: float = 30) -> Told:
        """A tool call over MCP: 200 with its structured content, 400 with its error, or LOST."""
        params = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = _result((await self.held("POST", path, token, body, timeout_s))[1])
        if result is None:
            return Told(LOST, {})
        if result.get("isError"):
            return Told(400, {"error": "".join(part.get("text", "") for part in result.get("content", []))})
        return Told(200, dict(result.get("structuredContent") or {}))


async def _read_on(reader: asyncio.StreamReader, got: bytearray) -> None:
    """Until the server closes; what came is kept also when this is cancelled or the connection breaks."""
    while chunk := await reader.read(65536):
        got += chunk


def _parted(raw: bytes) -> tuple[int, str]:
    """Status and body of a raw answer; LOST when it is not whole. Chunks are left as they are: an event is one."""
    head, found, body = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    length = [line for line in lines if line.lower().startswith("content-length:")]
    if not found or (length and len(body) < int(length[0].partition(":")[2])):
        return LOST, ""
    return int(lines[0].split(" ")[1]), body.decode(errors="replace")


def _result(text: str) -> dict[str, Any] | None:
    """The result in a JSON or an event-stream body; None when the stream ended without one."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("data: ", "{"))]
    for line in reversed(lines):
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and isinstance(message.get("result"), dict):
            return dict(message["result"])
    return None
