"""`/ws/runner/`: one runner's socket. Its reader never waits (R2): words about dispatches are handled as they come,
frames of running prompts in order per session, each in a thread. Owed frames are sent at a hint or after the slow
poll."""

import asyncio
import contextlib
import json
import logging
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import OperationalError
from django.utils import timezone

from tasks import hints, instances, strictjson
from tasks.authentication import bearer_of, identify_token
from tasks.errors import KandevError
from tasks.models import Token, TokenKind
from tasks.threads import in_thread
from turns import hello, incoming, outgoing, runners, settling
from turns.models import DispatchState

logger = logging.getLogger(__name__)
PING_S = 5.0
HELLO_S = 20.0
PATIENCE = (0.2, 0.5, 1.0, 2.0, 4.0, *[5.0] * 10)


class LeftError(Exception):
    """The peer cannot be written to: it has just gone, and its disconnect is still to be read."""


class RunnerSocket(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Close codes: 4401 bad token, 4400 bad frame, 4409 replaced by a newer connection, 4408 no hello, 1012 this
    process was declared dead meanwhile: the runner is to connect anew at once.
    """

    token: Token | None = None
    runner_id = ""

    async def connect(self) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self.scope["headers"]}
        address = (self.scope.get("client") or ["", 0])[0]
        try:
            text = bearer_of(headers.get("authorization", "")) or ""
            principal = await in_thread(identify_token, text, address, (TokenKind.RUNNER,))
        except KandevError:
            await self.close(4401)
            return
        self.token = principal.token
        self.connection_id = uuid.uuid4()
        self.lanes: dict[str, asyncio.Queue[dict[str, Any] | None]] = {}
        self.jobs: set[asyncio.Task[None]] = set()
        self.wake = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        await self.accept()
        self.watching = [self._start(self._expect_hello())]

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Work that goes on after the socket's end."""
        self.jobs.add(self._start(work))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self.jobs.add(task)
        task.add_done_callback(self.jobs.discard)
        return task

    async def _expect_hello(self) -> None:
        await asyncio.sleep(HELLO_S)
        if not self.runner_id:
            await self.close(4408)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        try:
            frame = strictjson.parse((text_data or "").encode(errors="replace"), mend=True)
            if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
                raise ValueError
        except (KandevError, ValueError):
            await self.close(4400)
            return
        await self._route(frame)

    async def _route(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "hello":
            await self._hello(frame)
        elif kind == "ping":
            await self._reply({"type": "pong"})
        elif not self.runner_id or kind == "pong":
            return
        elif kind in ("accepted", "rejected", "revoked"):
            self._begin(self._word(frame))
        elif kind in ("frame", "permission", "ready", "failed", "cancelled"):
            self._lane(str(frame.get("session_id"))).put_nowait(frame)

    async def _hello(self, frame: dict[str, Any]) -> None:
        if self.runner_id:
            return
        try:
            said = hello.parse(frame)
        except KandevError as refusal:
            logger.warning("a runner's hello was refused: %s", refusal)
            await self.close(4400)
            return
        if not await in_thread(hello.connect, self.token, said, self.connection_id):
            await self.close(4401)
            return
        self.runner_id = said.runner_id
        hints.listen(f"runner:{said.runner_id}", self._poke)
        await self._reply({"type": "welcome", "instance": str(instances.generation()), "ping_s": PING_S})
        await in_thread(hello.settle, said)
        self.watching.append(self._start(self._serve()))

    def _poke(self) -> None:
        self.loop.call_soon_threadsafe(self.wake.set)

    async def _serve(self) -> None:
        """The writing half of the socket. When it ends the socket goes with it: a runner that is read and never written
        to would look connected and get nothing. It connects anew, and what it is owed is asked for (R13).
        """
        try:
            await self.close(await self._write())
        except LeftError as error:
            logger.info("runner %s has left while it was written to: %s", self.runner_id, error)
            with contextlib.suppress(Exception):  # most servers know it by now
                await self.close(1011)
        except Exception:
            logger.exception("runner %s: its socket is closed, it is to connect again", self.runner_id)
            await self.close(1011)

    async def _write(self) -> int:
        """Sends what is owed and keeps the lease until another connection speaks for this runner, or this process was
        declared dead and goes on as a new generation; the close code.
        """
        pinged, mine = 0.0, instances.generation()
        while mine == instances.generation():
            self.wake.clear()
            for frame in await in_thread(outgoing.take, self.runner_id, self.connection_id, timezone.now()):
                await self._send(frame)
            if self.loop.time() - pinged >= PING_S:
                pinged = self.loop.time()
                if not await in_thread(runners.touch, self.runner_id, self.connection_id):
                    return 4409 if await in_thread(runners.is_connected, self.runner_id) else 1012
                await self._send({"type": "ping"})
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.wake.wait(), hints.POLL_S)
        return 1012

    async def _word(self, frame: dict[str, Any]) -> None:
        """`accepted`, `rejected`, `revoked`: settled whenever read (LATE_FRAMES)."""
        try:
            dispatch_id = uuid.UUID(str(frame.get("dispatch_id")))
        except ValueError:
            return
        kind = frame["type"]
        if kind == "accepted":
            await self._guard(settling.accept, dispatch_id, self.runner_id)
            return
        code, reason = str(frame.get("code") or kind)[:60], str(frame.get("reason") or "")
        state = DispatchState(kind)
        await self._guard(settling.refuse, dispatch_id, self.runner_id, state, code, reason)

    def _lane(self, session_id: str) -> asyncio.Queue[dict[str, Any] | None]:
        """The frames of one session, handled in order; sessions do not wait for each other."""
        if session_id not in self.lanes:
            self.lanes[session_id] = asyncio.Queue()
            self._begin(self._work(self.lanes[session_id]))
        return self.lanes[session_id]

    async def _work(self, lane: asyncio.Queue[dict[str, Any] | None]) -> None:
        while (frame := await lane.get()) is not None:
            await self._guard(incoming.handle, self.runner_id, frame)

    async def _guard(self, work: Callable[..., object], *args: Any) -> None:
        """Handles a frame. A database that is away for a while loses none, least of all a `ready`: it is tried again.
        Any other failure is logged and the socket goes on; what it meant is settled by the sweep.
        """
        for pause in (*PATIENCE, None):
            try:
                await in_thread(work, *args)
            except OperationalError as error:
                if pause is not None:
                    logger.warning("runner %s: a frame waits for the database: %s", self.runner_id, error)
                    await asyncio.sleep(pause)
                    continue
                logger.exception("runner %s: a frame was given up", self.runner_id)
            except Exception:
                logger.exception("runner %s: a frame could not be handled", self.runner_id)
            return

    async def _send(self, frame: dict[str, Any]) -> None:
        try:
            await self.send(text_data=json.dumps(frame, ensure_ascii=False))
        except Exception as error:
            raise LeftError(str(error) or type(error).__name__) from error  # each server has its own

    async def _reply(self, frame: dict[str, Any]) -> None:
        """From the reading half. A peer that has just gone cannot be written to, which is no reason to miss what is
        still to be read: its disconnect above all, which gives back what this socket holds.
        """
        try:
            await self._send(frame)
        except LeftError as error:
            logger.info("runner %s has left before its answer: %s", self.runner_id, error)

    async def disconnect(self, code: int) -> None:
        """What was read before the socket died is still handled; only the watching ends."""
        for job in getattr(self, "watching", ()):
            job.cancel()
        for lane in getattr(self, "lanes", {}).values():
            lane.put_nowait(None)
        if self.runner_id:
            hints.unlisten(f"runner:{self.runner_id}", self._poke)
            await in_thread(runners.disconnect, self.runner_id, self.connection_id)
