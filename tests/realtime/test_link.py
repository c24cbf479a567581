"""Two processes' ends of the link: over a layer that can lose everything, and over a Redis that is restarted."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer

from kandev import layerlink
from kandev.layerlink import Layer, Link, LinkDownError
from tasks.hub import Notification
from tests.realtime.redis_server import Redis
from tests.support.waiting import auntil

pytestmark = pytest.mark.once


class Bus:
    """A layer whose deafness is switched: it takes messages and gives them to nobody, or refuses them."""

    def __init__(self) -> None:
        self.channels: dict[str, asyncio.Queue[dict[str, Any]]] = {}
        self.members: set[str] = set()
        self.losing = self.refusing = False

    async def new_channel(self) -> str:
        name = uuid.uuid4().hex
        self.channels[name] = asyncio.Queue()
        return name

    async def group_add(self, group: str, channel: str) -> None:
        self.members.add(channel)

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        if self.refusing:
            raise ConnectionError("refused")
        for member in () if self.losing else self.members:
            self.channels[member].put_nowait(message)

    async def receive(self, channel: str) -> dict[str, Any]:
        return await self.channels[channel].get()

    async def flush(self) -> None:
        """Every end has its own connections in reality; here one bus serves all of them."""


class End:
    """A process' link and what it has given to its process."""

    def __init__(self, layer: Layer) -> None:
        self.told: list[str] = []
        self.woken: list[str] = []
        self.resyncs = 0
        self.link = Link(layer, self._deliver, self.woken.append, self._resync)
        self._task = asyncio.create_task(self.link.run())

    def _deliver(self, batch: list[Notification]) -> None:
        self.told += [notification.text for notification in batch]

    async def _resync(self) -> None:
        self.resyncs += 1

    async def connected(self) -> None:
        await hold(lambda: self.link.connected)

    async def tell(self, *texts: str) -> None:
        await self.link.publish([Notification(text, uuid.uuid4(), uuid.uuid4(), None) for text in texts])

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


async def hold(look: Callable[[], object], within: float = 10) -> None:
    async def seen() -> object:
        return look()

    await auntil(seen, within=within, every=0.01)


MakeEnd = Callable[[Layer], End]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layerlink, "BEAT_S", 0.05)
    monkeypatch.setattr(layerlink, "DEAF_S", 1.0)
    monkeypatch.setattr(layerlink, "SEND_S", 1.0)


@pytest.fixture
async def make_end() -> AsyncIterator[MakeEnd]:
    made: list[End] = []

    def make(layer: Layer) -> End:
        made.append(End(layer))
        return made[-1]

    yield make
    for end in made:
        await end.stop()


@pytest.fixture
def bus() -> Bus:
    return Bus()


async def pair(bus: Bus, make_end: MakeEnd) -> tuple[End, End]:
    one, two = make_end(bus), make_end(bus)
    for end in (one, two):
        await end.connected()
    await hold(lambda: one.link.name in two.link._seen and two.link.name in one.link._seen)
    return one, two


async def test_notifications_and_hints_reach_the_other_process_and_not_their_own(bus: Bus, make_end: MakeEnd) -> None:
    one, two = await pair(bus, make_end)
    await one.tell("a", "b")
    one.link.hint("bundle:x")
    await asyncio.to_thread(one.link.hint, "bundle:y")
    await hold(lambda: two.told == ["a", "b"] and sorted(two.woken) == ["bundle:x", "bundle:y"])
    assert (one.told, one.woken) == ([], [])


@pytest.mark.scenario("R18")
async def test_what_the_layer_lost_is_sent_again_once_and_in_order(bus: Bus, make_end: MakeEnd) -> None:
    one, two = await pair(bus, make_end)
    third = make_end(bus)
    await third.connected()
    bus.losing = True
    await one.tell("a")
    await one.tell("b")
    bus.losing = False
    await one.tell("c")
    await hold(lambda: two.told[-1:] == ["c"] and third.told[-1:] == ["c"])
    assert two.told == ["a", "b", "c"]
    assert third.told.count("c") == 1


async def test_the_heartbeat_betrays_a_lost_last_message(bus: Bus, make_end: MakeEnd) -> None:
    one, two = await pair(bus, make_end)
    bus.losing = True
    await one.tell("a")
    bus.losing = False
    await hold(lambda: two.told == ["a"])


async def test_what_is_kept_no_longer_becomes_a_snapshot_for_every_socket(
    bus: Bus, make_end: MakeEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layerlink, "KEPT", 1)
    one, two = await pair(bus, make_end)
    before = two.resyncs
    bus.losing = True
    for text in "abc":
        await one.tell(text)
    bus.losing = False
    await hold(lambda: two.resyncs == before + 1)
    await one.tell("d")
    await hold(lambda: two.told == ["d"])


async def test_a_refused_message_is_repeated_under_its_number(bus: Bus, make_end: MakeEnd) -> None:
    one, two = await pair(bus, make_end)
    bus.refusing = True
    with pytest.raises(LinkDownError):
        await one.tell("a")
    one.link.hint("lost")
    bus.refusing = False
    await one.tell("a")
    await one.tell("b")
    await hold(lambda: two.told == ["a", "b"])


async def test_a_message_that_arrived_although_its_sending_failed_is_heard_once(bus: Bus, make_end: MakeEnd) -> None:
    one, two = await pair(bus, make_end)
    send = bus.group_send

    async def send_and_fail(group: str, message: dict[str, Any]) -> None:
        await send(group, message)
        if "events" in message:
            raise ConnectionError("the acknowledgement was lost")

    bus.group_send = send_and_fail  # type: ignore[method-assign]
    with pytest.raises(LinkDownError):
        await one.tell("a")
    bus.group_send = send  # type: ignore[method-assign]
    await one.tell("a")
    await one.tell("b")
    await hold(lambda: two.told[-1:] == ["b"])
    assert two.told == ["a", "b"]


async def test_a_silent_layer_counts_as_down_until_it_is_subscribed_again(bus: Bus, make_end: MakeEnd) -> None:
    one, _ = await pair(bus, make_end)
    before = one.resyncs
    bus.members.clear()
    await hold(lambda: not one.link.connected)
    await hold(lambda: one.link.connected)
    assert one.resyncs == before + 1


class Stuck(Bus):
    """What a lost connection makes of the real layer: the first flush waits for a task that swallowed its cancel, and
    keeps the lock that every sender needs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()
        self.flushes = 0

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        async with self.lock:
            await super().group_send(group, message)

    async def flush(self) -> None:
        async with self.lock:
            self.flushes += 1
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()


async def test_a_layer_that_does_not_come_back_from_its_flush_is_given_up(make_end: MakeEnd) -> None:
    bus = Stuck()
    one, _ = await pair(bus, make_end)
    bus.members.clear()
    await hold(lambda: bus.flushes > 0)
    await hold(lambda: one.link.connected)
    await _tell_until_taken(one, "after")


async def test_the_link_ends_although_the_layer_swallows_the_cancel(make_end: MakeEnd) -> None:
    bus = Stuck()
    one, _ = await pair(bus, make_end)
    bus.members.clear()
    await hold(bus.lock.locked)
    async with asyncio.timeout(5):
        await one.stop()


@pytest.mark.scenario("R18")
async def test_a_redis_that_is_stopped_and_started_loses_nothing(redis: Redis, make_end: MakeEnd) -> None:
    """The link starts before Redis does, and outlives its end."""
    one, two = (make_end(RedisPubSubChannelLayer(hosts=[redis.url])) for _ in range(2))
    with pytest.raises(LinkDownError):
        await one.tell("too early")
    redis.start()
    await one.connected()
    await two.connected()
    await hold(lambda: one.link.name in two.link._seen)
    await one.tell("before")
    await hold(lambda: two.told == ["before"])
    redis.stop()
    one.link.hint("lost")
    with pytest.raises(LinkDownError):
        await one.tell("after")
    await hold(lambda: not one.link.connected)
    resyncs = two.resyncs
    redis.start()
    await _tell_until_taken(one, "after")
    await hold(lambda: two.told == ["before", "after"], within=20)
    await hold(lambda: two.resyncs > resyncs)
    one.link.hint("bundle:x")
    await hold(lambda: "bundle:x" in two.woken)


async def _tell_until_taken(end: End, text: str) -> None:
    """As the publisher does."""

    async def taken() -> bool:
        with suppress(LinkDownError):
            await end.tell(text)
            return True
        return False

    await auntil(taken, within=20, every=0.1)
