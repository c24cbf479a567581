"""One request of a client and what belongs to it while it runs: the SDK's dispatch context for this transport."""

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio
from django.conf import settings
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import CallToolResult, ProgressToken, RequestId

from clarifications.mcp import cancelling, wire
from clarifications.mcp.admitting import Receive
from clarifications.mcp.reply import Reply
from clarifications.signals import Signal
from tasks.principals import Principal

T = TypeVar("T")

TRANSPORT = TransportContext(kind="streamable-http", can_send_request=False)
DISCONNECTED, CANCELLED, UNAUTHORIZED = "disconnected", "cancelled", "unauthorized"


@dataclass(eq=False)
class Exchange:
    """`gone` is set when nobody is there to take the result, `why` says how that came; the first reason stays.

    A tool that waits sets `later` and is done: the SDK's frames and the request's body are not kept for hours.
    `outcome` is what came of it. `written` is called after the result went out to a connected client, with the time
    just before it did; `lost` when there was none.
    """

    principal: Principal
    request_id: RequestId
    progress_token: ProgressToken | None
    reply: Reply
    version: str
    modern: bool
    gone: Signal = field(default_factory=Signal)
    why: str = ""
    later: Callable[[], Awaitable[CallToolResult]] | None = None
    outcome: CallToolResult | None = None
    written: Callable[[dt.datetime], Awaitable[None]] | None = None
    lost: Callable[[], Awaitable[None]] | None = None
    told: int = 0
    _endings: list[Callable[[], object]] = field(default_factory=list)

    # The SDK's side

    @property
    def transport(self) -> TransportContext:
        return TRANSPORT

    @property
    def can_send_request(self) -> bool:
        return False

    @property
    def message_metadata(self) -> ServerMessageMetadata:
        return ServerMessageMetadata(request_context=self, can_send_request=False)

    @property
    def cancel_requested(self) -> anyio.Event:
        """The SDK asks only a dispatcher of its own; here `gone` tells the tool."""
        return anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        await self.reply.event(wire.notification(method, dict(params) if params is not None else None))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self.progress_token is None:
            return
        given = {"progressToken": self.progress_token, "progress": progress, "total": total, "message": message}
        await self.notify("notifications/progress", {name: value for name, value in given.items() if value is not None})

    # The tool's side

    async def keepalive(self, waited_s: float) -> None:
        """Progress that rises, for a client that gave a token (also `0` and ""); mere bytes for any other."""
        self.told += 1
        if self.progress_token is None:
            await self.reply.comment()
        else:
            await self.progress(self.told, message=f"waiting for an answer for {waited_s:.0f} s")

    async def alongside(self, work: Awaitable[T]) -> T:
        """The result of work of seconds, with bytes meanwhile; the work is not stopped by the client's end."""
        task = asyncio.ensure_future(work)
        started = asyncio.get_running_loop().time()
        while True:
            done, _ = await asyncio.wait({task}, timeout=settings.KANDEV_KEEPALIVE_S)
            if done:
                return task.result()
            if not self.gone.is_set():
                await self.keepalive(asyncio.get_running_loop().time() - started)

    # The end

    def begin(self, receive: Receive, cancel_topic: str) -> None:
        """From now on the client's end and its cancellation are noticed, until `close`."""
        disconnect = asyncio.ensure_future(self._await_disconnect(receive))
        self._endings = [disconnect.cancel, cancelling.listen(cancel_topic, partial(self.leave, CANCELLED))]

    def take_principal(self) -> Principal:
        """Who called, for the last time: his token and person are the larger part of what a wait would keep."""
        principal, self.principal = self.principal, Principal()
        return principal

    def close(self) -> None:
        for end in self._endings:
            end()
        self._endings = []

    def leave(self, why: str) -> None:
        if not self.gone.is_set():
            self.why = why
            self.gone.set()

    async def _await_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.leave(DISCONNECTED)

    @property
    def disconnected(self) -> bool:
        return self.why == DISCONNECTED
