"""`/ws/` for pages and clients (contract 7): an ASGI application, to be mounted there.

One socket costs two tasks on the loop; no thread, no database connection, no subscription of the channel layer. What it
follows is in `tasks.hub`; whether it still may is looked after by `tasks.socketwatch`.

Close codes: 4401 the credential died; 1013 the client read too slowly, or the server could not bring it up to date:
connect again and subscribe, which gives the whole state (promise B38 of the fault list). A handshake without a valid
credential, or from a page of another origin, is refused before it is accepted (HTTP 403) and logged.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tasks import envelopes, hub, snapshots, socketauth
from tasks.errors import KandevError, invalid, translate
from tasks.hub import Key, Notification
from tasks.principals import Principal
from tasks.socketauth import Caller
from tasks.socketwatch import watch
from tasks.threads import in_thread

logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TOO_SLOW = 1013
BROKEN = 1011
MAX_WAITING = 1_000
MAX_WAITING_CHARS = 8 << 20
MAX_FOLLOWED = 500


async def application(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """Admits or refuses the handshake, then serves the socket until either side ends it."""
    await receive()
    caller = await _admit(scope)
    if caller is None:
        await send({"type": "websocket.close", "code": 4403})
        return
    await send({"type": "websocket.accept"})
    socket = PageSocket(caller, send)
    watch.add(socket)
    try:
        code = await socket.serve(receive)
    finally:
        watch.remove(socket)
        for key in list(socket.followed):
            socket.unfollow(key)
    if code is not None:
        await send({"type": "websocket.close", "code": code})


async def _admit(scope: MutableMapping[str, Any]) -> Caller | None:
    headers = {name.decode("latin1").lower(): value.decode("latin1") for name, value in scope.get("headers", ())}
    address = str((scope.get("client") or [""])[0])
    try:
        return await in_thread(socketauth.identify, headers, address)
    except Exception as error:  # noqa: BLE001 - whatever it was, nobody gets in; translate logs what is not expected
        logger.warning("socket refused from %s: %s", address or "a local peer", translate(error).message)
        return None


class PageSocket:
    """One open socket: who it is, what it follows, and the bounded queue of what it is still to be sent."""

    def __init__(self, caller: Caller, send: Send) -> None:
        self.caller = caller
        self.followed: set[Key] = set()
        self._send = send
        self._waiting: deque[str] = deque()
        self._waiting_chars = 0
        self._poked = asyncio.Event()
        self._closing: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def push(self, notification: Notification) -> None:
        """An agent hears of its own session only (promise H5)."""
        own = self.caller.principal.session_id
        if own is None or notification.session_id in (None, own):
            self.push_text(notification.text)

    def push_text(self, text: str) -> None:
        """Queues a frame; a client that lets the queue fill up is closed and starts anew from a snapshot."""
        if self._closing.done():
            return
        if len(self._waiting) >= MAX_WAITING or self._waiting_chars + len(text) > MAX_WAITING_CHARS:
            self.close(TOO_SLOW)
            return
        self._waiting.append(text)
        self._waiting_chars += len(text)
        self._poked.set()

    def close(self, code: int) -> None:
        if not self._closing.done():
            self._closing.set_result(code)

    def follow(self, key: Key) -> None:
        self.followed.add(key)
        hub.follow(key, self)

    def unfollow(self, key: Key) -> None:
        if key in self.followed:
            self.followed.discard(key)
            hub.unfollow(key, self)

    async def serve(self, receive: Receive) -> int | None:
        """Reads and writes until the client leaves (None) or the socket is to be closed (the code)."""
        sides = [asyncio.create_task(self._read(receive)), asyncio.create_task(self._write())]
        try:
            ends: list[asyncio.Future[Any]] = [*sides, self._closing]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for side in sides:
                side.cancel()
            results = await asyncio.gather(*sides, return_exceptions=True)
        for end in results:
            if isinstance(end, Exception):
                logger.error("socket failed", exc_info=end)
                self.close(BROKEN)
        return self._closing.result() if self._closing.done() else None

    async def _write(self) -> None:
        while True:
            await self._poked.wait()
            self._poked.clear()
            while self._waiting:
                text = self._waiting.popleft()
                self._waiting_chars -= len(text)
                await self._send({"type": "websocket.send", "text": text})

    async def _read(self, receive: Receive) -> None:
        while True:
            message = await receive()
            if message["type"] != "websocket.receive":
                return
            text = message.get("text")
            raw = message.get("bytes") or b"" if text is None else text.encode("utf-8", "surrogatepass")
            self.push_text(await self._answer(raw))

    async def _answer(self, raw: bytes) -> str:
        """The reply to one frame; whatever is wrong with it becomes an error reply, never the end of the socket."""
        request = envelopes.Request()
        try:
            request = envelopes.read(raw)
            return envelopes.response(request, await self._act(request))
        except Exception as error:  # noqa: BLE001 - translate logs what is not expected
            return envelopes.error(request, translate(error))

    async def _act(self, request: envelopes.Request) -> dict[str, Any]:
        if request.type != "request":
            raise invalid("type", 'must be "request"')
        match request.action:
            case "ping":
                return {}
            case "subscribe":
                return await self._subscribe(request.key())
            case "unsubscribe":
                self.unfollow(request.key())
                return {}
        raise invalid("action", 'must be "subscribe", "unsubscribe" or "ping"')

    async def _subscribe(self, key: Key) -> dict[str, Any]:
        """Follows first and reads the state afterwards: what commits in between arrives as an event."""
        await in_thread(snapshots.check, self.caller.principal, key)
        new = key not in self.followed
        if new and len(self.followed) >= MAX_FOLLOWED:
            raise KandevError(f"one socket follows at most {MAX_FOLLOWED}", code="too_many_subscriptions")
        self.follow(key)
        try:
            return await in_thread(snapshots.of, self.caller.principal, key)
        except BaseException:
            if new:
                self.unfollow(key)
            raise


async def bring_up_to_date() -> None:
    """Notifications may have been missed: sends everybody the state that a new subscription would get (`snapshot`)."""
    for key in hub.followed():
        texts: dict[object, str] = {}
        for follower in hub.followers(key):
            if isinstance(follower, PageSocket):
                await _send_snapshot(follower, key, texts)


async def _send_snapshot(socket: PageSocket, key: Key, texts: dict[object, str]) -> None:
    """One reading serves all people who follow `key`; an agent, who sees his own session, gets his own."""
    own = socket.caller.principal.session_id
    # That they may see it is what following means, and the watch keeps it so.
    viewer = Principal(unscoped=True) if own is None else socket.caller.principal
    try:
        if own not in texts:
            payload = await in_thread(snapshots.of, viewer, key)
            texts[own] = envelopes.notification("snapshot", {**envelopes.named(key), **payload})
        socket.push_text(texts[own])
    except KandevError:
        socket.close(TOO_SLOW)
