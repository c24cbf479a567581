"""The way between server processes: one group of the channel layer, one subscription a process (promises B7, B37, B80).

Hints go fire and forget, many in one message; the receivers' slow polls make a lost one harmless. Notifications carry
their sender's number. A heartbeat tells everybody the last number, so a process that missed some notices it, asks, and
gets them again; what the sender no longer has becomes a snapshot for every socket. What comes back from this process
itself is only the proof that the layer works.

Without REDIS_URL there is one process and no link: all functions are there and do nothing.
"""

import asyncio
import contextlib
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Protocol

from channels.layers import InMemoryChannelLayer, get_channel_layer

from tasks import hints, hub, sockets
from tasks.hub import Notification

logger = logging.getLogger(__name__)

GROUP = "kandev"
BEAT_S = 1.0
DEAF_S = 5.0
SEND_S = 3.0
KEPT = 2_000
MAX_TOPICS = 10_000


class LinkDownError(Exception):
    """The layer took nothing, or nobody knows; the same message may be sent again under the same number."""


class Layer(Protocol):
    async def new_channel(self) -> str: ...
    async def group_add(self, group: str, channel: str) -> None: ...
    async def group_send(self, group: str, message: dict[str, Any]) -> None: ...
    async def receive(self, channel: str) -> dict[str, Any]: ...
    async def flush(self) -> None: ...


class Link:
    """One process' end. Everything but `hint` runs on the event loop."""

    def __init__(
        self,
        layer: Layer,
        deliver: Callable[[list[Notification]], None] = hub.deliver,
        wake: Callable[[str], None] = hints.wake,
        resync: Callable[[], Awaitable[None]] = sockets.bring_up_to_date,
    ) -> None:
        self.name = uuid.uuid4().hex
        self._layer, self._deliver, self._wake, self._resync = layer, deliver, wake, resync
        self._sent = 0
        self._kept: deque[tuple[int, list[list[str]]]] = deque()
        self._seen: dict[str, int] = {}
        self._asked: dict[str, float] = {}
        self._heard_at: float | None = None
        self._topics: set[str] = set()
        self._topics_lock = threading.Lock()
        self._poked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._background: set[asyncio.Future[Any]] = set()

    @property
    def connected(self) -> bool:
        """Whether this process heard itself through the layer a moment ago."""
        return self._heard_at is not None and time.monotonic() - self._heard_at < DEAF_S

    async def run(self) -> None:
        """Listens, beats and transmits hints until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            group.create_task(self._beat())
            group.create_task(self._transmit())

    # Sending

    def hint(self, topic: str) -> None:
        """From any thread; never blocks and never raises. More topics than the layer takes are dropped."""
        with self._topics_lock:
            idle = not self._topics
            if len(self._topics) < MAX_TOPICS:
                self._topics.add(topic)
        if idle:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._poked.set)

    async def publish(self, notifications: list[Notification]) -> None:
        """Sends to the other processes; LinkDownError leaves the number unused, so that a repeat is recognised."""
        packed = [notification.pack() for notification in notifications]
        await self._send({"seq": self._sent + 1, "events": packed})
        self._sent += 1
        self._kept.append((self._sent, packed))
        while sum(len(events) for _, events in self._kept) > KEPT and len(self._kept) > 1:
            self._kept.popleft()

    async def _send(self, body: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(SEND_S):
                await self._layer.group_send(GROUP, {"type": "kandev.link", "from": self.name, **body})
        except Exception as error:
            raise LinkDownError(str(error) or type(error).__name__) from error

    async def _transmit(self) -> None:
        while True:
            await self._poked.wait()
            self._poked.clear()
            with self._topics_lock:
                topics, self._topics = self._topics, set()
            with contextlib.suppress(LinkDownError):
                await self._send({"topics": sorted(topics)})

    async def _beat(self) -> None:
        while True:
            with contextlib.suppress(LinkDownError):
                await self._send({"seq": self._sent})
            await asyncio.sleep(BEAT_S)

    # Receiving

    async def _listen(self) -> None:
        """Subscribes, and again after the layer failed or fell silent; the beats make silence tell.

        Every call into the layer is bounded: a layer that lost its connection in the middle of a call may never come
        back from it, and would hold its lock against every sender meanwhile. It may swallow a cancel as well, so the
        cancel of this task is looked up, not only caught.
        """
        pause, me = BEAT_S / 4, asyncio.current_task()
        while me is None or not me.cancelling():
            try:
                async with asyncio.timeout(SEND_S):
                    channel = await self._layer.new_channel()
                    await self._layer.group_add(GROUP, channel)
                while True:
                    async with asyncio.timeout(DEAF_S):
                        message = await self._layer.receive(channel)
                    self._take(message)
                    pause = BEAT_S / 4
            except Exception as error:  # noqa: BLE001 - whatever the layer raises, the answer is to subscribe again
                logger.warning("channel layer lost (%s), subscribing again", str(error) or type(error).__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 2 * BEAT_S)
            with contextlib.suppress(Exception):
                async with asyncio.timeout(SEND_S):
                    await self._layer.flush()

    def _take(self, message: dict[str, Any]) -> None:
        sender = str(message.get("from", ""))
        if sender == self.name:
            self._hear_myself()
        elif "topics" in message:
            for topic in message["topics"]:
                self._wake(topic)
        elif message.get("want") == self.name:
            self._spawn(self._repeat(int(message["after"])))
        elif "seq" in message:
            self._take_numbered(sender, int(message["seq"]), message)

    def _hear_myself(self) -> None:
        """After an interruption a dead peer cannot repeat what it sent meanwhile, so the sockets get the state."""
        was_up = self.connected
        self._heard_at = time.monotonic()
        if not was_up:
            self._spawn(self._resync())

    def _take_numbered(self, sender: str, number: int, message: dict[str, Any]) -> None:
        last = self._seen.get(sender)
        if "events" in message and (last is None or number == last + 1):
            self._seen[sender] = number
            self._deliver([Notification.unpack(packed) for packed in message["events"]])
        elif last is None or message.get("lost"):
            if last is None or number > last:
                self._seen[sender] = number
            if message.get("lost"):
                self._spawn(self._resync())
        elif number > last:
            self._ask(sender, last)

    def _ask(self, sender: str, last: int) -> None:
        """Once a moment; the next heartbeat asks again if it was in vain."""
        now = time.monotonic()
        if now - self._asked.get(sender, -BEAT_S) >= BEAT_S / 2:
            self._asked[sender] = now
            self._spawn(self._try({"want": sender, "after": last}))

    async def _repeat(self, after: int) -> None:
        """Sends again what followed `after`; who has it already ignores it by its number."""
        kept = [(number, packed) for number, packed in self._kept if number > after]
        if not kept or kept[0][0] != after + 1:
            await self._try({"seq": self._sent, "lost": True})
            return
        for number, packed in kept:
            await self._try({"seq": number, "events": packed})

    async def _try(self, body: dict[str, Any]) -> None:
        with contextlib.suppress(LinkDownError):
            await self._send(body)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class _Process:
    """The link of this process, if it has one."""

    link: Link | None = None
    running: Future[None] | None = None


def start(loop: asyncio.AbstractEventLoop) -> None:
    """Connects this process on its server's loop; from any thread. Before the first socket is served."""
    layer = get_channel_layer()
    if isinstance(layer, InMemoryChannelLayer) or layer is None:
        return
    _Process.running = asyncio.run_coroutine_threadsafe(_run(layer), loop)


async def _run(layer: Layer) -> None:
    _Process.link = link = Link(layer)
    hints.set_transmitter(link.hint)
    try:
        await link.run()
    finally:
        hints.set_transmitter(None)
        _Process.link = None


def stop() -> None:
    """Cancels the link; from any thread."""
    if _Process.running is not None:
        _Process.running.cancel()


def connected() -> bool:
    """Whether the layer carries messages (`/readyz`); true when this process needs none."""
    return _Process.running is None or (_Process.link is not None and _Process.link.connected)


async def publish(notifications: list[Notification]) -> None:
    """Sends to the other processes; LinkDownError when the layer is down."""
    if _Process.running is None:
        return
    if _Process.link is None:
        raise LinkDownError("not started")
    await _Process.link.publish(notifications)
