"""The answer to one POST: a JSON body, or an event stream from the first moment that something is to be waited for."""

from typing import Any

from clarifications.mcp import wire
from clarifications.mcp.admitting import EVENTS, JSON, RefusedError, Send

STREAM_HEADERS = {"Content-Type": EVENTS, "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
COMMENT = b": waiting\r\n\r\n"


class Reply:
    """Writes to the client; `headers` go with whatever is sent first."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.headers: dict[str, str] = {}
        self.streaming = False

    async def open(self) -> None:
        """Begins the stream. Headers leave the server with the first bytes only, so a comment goes along (B36)."""
        if not self.streaming:
            self.streaming = True
            await self._start(200, STREAM_HEADERS)
            await self._body(COMMENT, more=True)

    async def comment(self) -> None:
        """Bytes that keep the connection alive and mean nothing."""
        await self.open()
        await self._body(COMMENT, more=True)

    async def event(self, message: dict[str, Any]) -> None:
        await self.open()
        await self._body(wire.event(message), more=True)

    async def end(self, message: dict[str, Any], status: int) -> None:
        """The last message: on the stream if there is one, else as the body with `status`."""
        if self.streaming:
            await self._body(wire.event(message), more=False)
        else:
            await self.whole(status, wire.encode(message), {"Content-Type": JSON})

    async def whole(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        await self._start(status, {**(headers or {}), "Content-Length": str(len(body))})
        await self._body(body, more=False)

    async def refuse(self, refusal: RefusedError) -> None:
        await self.whole(refusal.status, wire.encode(refusal.body), {"Content-Type": JSON, **refusal.headers})

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        pairs = [(name.encode("latin1"), value.encode("latin1")) for name, value in {**headers, **self.headers}.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def _body(self, body: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
