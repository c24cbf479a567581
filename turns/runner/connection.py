"""The runner's end of `/ws/runner/`: connect, say hello, read, write, notice silence, come back."""

import asyncio
import contextlib
import json
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.protocol import State

from turns.runner.frames import Frame
from turns.runner.outbox import Outbox

log = logging.getLogger("kandev.runner")

MAX_FRAME = 16 * 1024 * 1024
OPEN_S = 10.0
PING_S = 15.0
FIRST_DELAY_S, LONGEST_DELAY_S, REFUSED_DELAY_S = 0.25, 15.0, 30.0
REFUSED_CODES = {1008, 4401, 4403}
REPLACED = 4409
SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
PATH = "/ws/runner/"


class RefusedError(Exception):
    """The server does not want this runner now; the message says why."""


def socket_url(url: str) -> str:
    """The address of the runner socket for `--url`, which may name the server (http, https) or the socket itself.

    Raises ValueError for anything else.
    """
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise ValueError(f"{url!r} is not an address like http://127.0.0.1:8000 or wss://kandev.example{PATH}")
    path = parts.path if parts.path.endswith(PATH) else parts.path.rstrip("/") + PATH
    return urlunsplit((SCHEMES[parts.scheme], parts.netloc, path, "", ""))


class Connection:
    """Keeps one connection alive: `hello` makes the first frame of each, `handle` gets the frames about dispatches."""

    def __init__(
        self, url: str, token: str, outbox: Outbox, hello: Callable[[], Frame], handle: Callable[[Frame], None]
    ) -> None:
        self._url = socket_url(url)
        self._token = token
        self._outbox, self._hello, self._handle = outbox, hello, handle
        self._ping_s = PING_S
        self._welcomed = False

    async def run(self) -> None:
        """Connects again and again until it is cancelled. Each new problem is said once, not at every try."""
        delay, said = FIRST_DELAY_S, ""
        while True:
            problem, at_least = await self._attempt()
            if self._welcomed:
                delay, said, self._welcomed = FIRST_DELAY_S, "", False
            if problem != said:
                log.warning("%s; trying again", problem)
                said = problem
            await asyncio.sleep(max(delay, at_least) * random.uniform(0.8, 1.2))
            delay = min(delay * 2, LONGEST_DELAY_S)

    async def _attempt(self) -> tuple[str, float]:
        """One connection. Returns why it ended and how long to stay away at least."""
        try:
            await self._serve()
        except RefusedError as error:
            return str(error), REFUSED_DELAY_S
        except (OSError, WebSocketException, TimeoutError) as error:
            return f"no connection to {self._url}: {self._plain(error)}", 0
        return "the connection was closed", 0

    def _plain(self, error: Exception) -> str:
        return (str(error) or type(error).__name__).replace(self._token, "…")

    async def _serve(self) -> None:
        """One connection from hello to its end. Raises RefusedError, OSError, WebSocketException or TimeoutError."""
        local = urlsplit(self._url).hostname in ("127.0.0.1", "localhost", "::1")
        try:
            async with connect(
                self._url,
                additional_headers={"Authorization": f"Bearer {self._token}"},
                open_timeout=OPEN_S,
                close_timeout=2,
                ping_interval=None,
                max_size=MAX_FRAME,
                proxy=None if local else True,
            ) as socket:
                await self._talk(socket)
        except InvalidStatus as error:
            if error.response.status_code in (401, 403):
                raise RefusedError(
                    f"the server refused this runner's token (HTTP {error.response.status_code})"
                ) from None
            raise
        except ConnectionClosed as error:
            code = error.rcvd.code if error.rcvd else None
            if code in REFUSED_CODES:
                raise RefusedError(f"the server refused this runner's token (close code {code})") from None
            if code == REPLACED:
                raise RefusedError("another connection with this runner's id has replaced this one") from None
            if not self._welcomed:
                raise

    async def _talk(self, socket: ClientConnection) -> None:
        # The loop of the last socket has ended before this one exists, so nothing that it left unread can be acted on
        # after this hello has told the server what the journal holds (contract of `hello`, rulings R13).
        await self._send(socket, self._hello())
        self._outbox.connected()
        tasks: list[asyncio.Task[None]] = []
        try:
            while True:
                frame = await self._receive(socket)
                if frame.get("type") == "welcome" and not tasks:
                    self._welcome(frame)
                    tasks = [self._attach(socket, job) for job in (self._write(socket), self._ping())]
                else:
                    self._read(frame)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    def _attach(socket: ClientConnection, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts a job of this connection; the socket goes with it: a reader without a writer would look alive."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()):
                if not isinstance(error, ConnectionClosed):
                    log.error("writing to the server failed", exc_info=error)
                socket.transport.abort()

        task = asyncio.create_task(job)
        task.add_done_callback(ended)
        return task

    def _welcome(self, frame: Frame) -> None:
        self._welcomed = True
        ping_s = frame.get("ping_s")
        if isinstance(ping_s, int | float) and ping_s > 0:
            self._ping_s = float(ping_s)
        log.info("connected to %s", self._url)

    def _read(self, frame: Frame) -> None:
        if frame.get("type") == "ping":
            self._outbox.reply({"type": "pong"})
        elif frame.get("type") == "pong":
            self._outbox.pong()
        else:
            self._handle(frame)

    async def _receive(self, socket: ClientConnection) -> Frame:
        """The next frame. Silence for three ping intervals means that the server, or the way to it, is gone."""
        while True:
            async with asyncio.timeout(3 * self._ping_s if self._welcomed else OPEN_S):
                data = await socket.recv()
            if socket.state is not State.OPEN:
                # The answer to this frame could not be sent any more: leave it unread, as if it had never arrived.
                continue
            frame = self._parse(data)
            if frame is not None:
                return frame

    @staticmethod
    def _parse(data: str | bytes) -> Frame | None:
        with contextlib.suppress(ValueError, RecursionError):
            frame: Any = json.loads(data)
            if isinstance(frame, dict):
                return frame
        log.warning("a frame that is not a JSON object was ignored")
        return None

    @staticmethod
    async def _send(socket: ClientConnection, frame: Frame) -> None:
        await socket.send(json.dumps(frame))

    async def _write(self, socket: ClientConnection) -> None:
        await self._outbox.drain(lambda frame: self._send(socket, frame))

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(self._ping_s)
            self._outbox.reply({"type": "ping"})
