"""What the runner still has to tell the server, in order, across reconnects."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from turns.runner.frames import Frame
from turns.runner.journal import Journal

log = logging.getLogger("kandev.runner")

SETTLE_S = 60.0
CAPACITY = 10_000


class Outbox:
    """Four kinds of frames, each with its own promise:

    replies (`accepted`, `pong`, …) belong to one connection and go first: the `hello` of the next one says it all anew;
    transcript frames wait for the next connection, and are written once: a copy would be a second message;
    permission requests are written again on every new connection until they are decided: the server stores each once;
    endings (`ready`, `failed`, `cancelled`) are in the journal and are written again on every new connection until the
    server has had them for a minute. A server knows by the generation that it has seen one before.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._replies: deque[Frame] = deque()
        self._queue: deque[tuple[Frame, str | None]] = deque()
        self._written: dict[str, float] = {}
        self._asked: dict[str, Frame] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._lost = 0

    def reply(self, frame: Frame) -> None:
        self._replies.append(frame)
        self._changed()

    def _changed(self) -> None:
        self._idle.clear()
        self._wake.set()

    def put(self, frame: Frame) -> None:
        """Queues a transcript frame. A server that stays away for long costs the oldest ones, never an ending."""
        if len(self._queue) >= CAPACITY:
            self._drop_oldest()
        self._queue.append((frame, None))
        self._changed()

    def end(self, dispatch_id: str, frame: Frame) -> None:
        """Queues an ending that `Journal.finish` has recorded."""
        self._queue.append((frame, dispatch_id))
        self._changed()

    def ask(self, request_id: str, frame: Frame) -> None:
        """Queues a permission request, behind what the agent said before it."""
        self._asked[request_id] = frame
        self._queue.append((frame, None))
        self._changed()

    def decided(self, request_id: str) -> None:
        """The request needs no answer any more; one that was not written yet is not asked at all."""
        asked = self._asked.pop(request_id, None)
        self._queue = deque(entry for entry in self._queue if entry[0] is not asked)

    def _drop_oldest(self) -> None:
        for index, (frame, dispatch_id) in enumerate(self._queue):
            if dispatch_id is None and frame["type"] == "frame":
                del self._queue[index]
                self._lost += 1
                break
        if self._lost == 1:
            log.warning("the server has been away for long: the oldest transcript frames are dropped")

    def connected(self) -> None:
        """A new connection begins: old replies are void, unsettled endings go first, in their order."""
        self._replies.clear()
        self._written.clear()
        self._lost = 0
        queued = [id(frame) for frame, _ in self._queue]
        for frame in reversed(list(self._asked.values())):
            if id(frame) not in queued:
                self._queue.appendleft((frame, None))
        waiting = {dispatch_id for _, dispatch_id in self._queue if dispatch_id}
        for dispatch_id, frame in reversed(self._journal.endings()):
            if dispatch_id not in waiting:
                self._queue.appendleft((frame, dispatch_id))

    async def drain(self, send: Callable[[Frame], Awaitable[None]]) -> None:
        """Writes frames until it is cancelled or `send` raises; what was not written stays queued."""
        while True:
            while self._replies:
                await send(self._replies.popleft())
            if self._queue:
                await self._write(send)
            else:
                self._idle.set()
                self._wake.clear()
                await self._wake.wait()

    async def _write(self, send: Callable[[Frame], Awaitable[None]]) -> None:
        frame, dispatch_id = self._queue.popleft()
        try:
            await send(frame)
        except Exception:
            self._queue.appendleft((frame, dispatch_id))
            raise
        if dispatch_id:
            self._written[dispatch_id] = asyncio.get_running_loop().time()

    def pong(self) -> None:
        """The server answered a ping: what it was sent a minute ago on this connection it has surely dealt with."""
        before = asyncio.get_running_loop().time() - SETTLE_S
        if settled := [dispatch_id for dispatch_id, at in self._written.items() if at <= before]:
            self._journal.settle(settled)
            for dispatch_id in settled:
                del self._written[dispatch_id]

    async def flushed(self, limit_s: float) -> None:
        """Gives the last frames a moment to be written; the journal keeps the endings in any case."""
        if self._replies or self._queue:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await self._idle.wait()
