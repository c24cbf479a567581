"""Nothing is lost between the snapshot and the stream: 300 sockets connect and subscribe, ten at a time, and within
30 ms a question is asked or skipped; each ends with what the database says.

Half of the snapshots are read and then held back for a while, as by a slow server; so an event may be older or newer
than the snapshot that comes after it. The controls take away one rule each and must end with a stale client.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from pytest_django import Settings

from kandev import layerlink
from kandev.publisher import Publisher
from tasks import snapshots, sockets, tokens
from tasks.hub import Key
from tasks.models import Session, TokenKind
from tasks.threads import in_thread
from tests.realtime.conftest import Socket
from tests.support import climbing
from tests.support.climbing import Stage

pytestmark = [pytest.mark.scenario("I2", "R31"), pytest.mark.timeout(400)]

ROUNDS, SOCKETS, SEED = 30, 10, 20
CHANGE_S, HELD_S, BOUND_S = 0.030, 0.025, 2.0
SHORT_S = 0.5
PATIENCE_S = 30  # for what is no promise: that the machine comes round to the reply
LATE_ALLOWED = 3  # of 300, for a machine that has more to do; none may be lost
Known = tuple[int, int, str | None]  # epoch, sequence, pending action
Reading = Callable[..., Awaitable[Any]]
Rule = Callable[[Known, Known], bool]


def newer(said: Known, known: Known) -> bool:
    return said[:2] > known[:2]


def whatever_comes(said: Known, known: Known) -> bool:
    return True


@dataclass
class Room:
    """A task with one session whose turn runs, and who asks and skips in it."""

    stage: Stage
    token: str
    open: list[str] = field(default_factory=list)

    def change(self) -> None:
        """The next change, by the functions that every entry point calls."""
        if self.open:
            assert climbing.Question(self.stage, self.open.pop()).respond(climbing.SKIP).status == 200
        else:
            self.open.append(self.stage.ask().pending_id)

    def truth(self) -> Known:
        row: Any = Session.objects.with_pending().get(pk=self.stage.session.pk)
        return row.revision_epoch, row.revision_sequence, row.pending_kind or None


def furnish() -> Room:
    stage = climbing.by_hand()
    return Room(stage, tokens.mint(TokenKind.PERSONAL, user=stage.person.user))


@pytest_asyncio.fixture
async def room(transactional_db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    """The product's own publisher serves it; there is no other process."""
    settings.KANDEV_RATE_ANSWER = "100000/m"

    async def alone(batch: Any) -> None:
        """No layer takes anything, and none is missed."""

    monkeypatch.setattr(layerlink, "publish", alone)
    publisher = Publisher(asyncio.get_running_loop())
    publisher.start()
    yield await in_thread(furnish)
    await asyncio.to_thread(publisher.stop)


@pytest.fixture
def chance() -> random.Random:
    return random.Random(SEED)


@pytest.fixture(autouse=True)
def reading(chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> Reading:
    """How the sockets read the database: some snapshots come late."""

    async def then_wait(work: Any, *given: Any) -> Any:
        found = await in_thread(work, *given)
        if work is snapshots.of and chance.random() < 0.5:
            await asyncio.sleep(HELD_S)
        return found

    monkeypatch.setattr(sockets, "in_thread", then_wait)
    return then_wait


def said(payload: dict[str, Any]) -> Known | None:
    if "pending_action" not in payload:
        return None
    revision = payload["pending_action_revision"]
    return int(revision["epoch"]), int(revision["sequence"]), payload["pending_action"]


def take(known: Known, frame: dict[str, Any], rule: Rule) -> Known:
    """As a client does with each frame (contract 7): the greater revision stays."""
    payload = frame["payload"]
    rows = payload["sessions"] if frame["type"] == "response" else [payload]
    for row in rows:
        told = said(row)
        if told is not None and rule(told, known):
            known = told
    return known


class Client:
    """Connects and subscribes before a change, and reads on until it knows what the database says."""

    def __init__(self, room: Room, rule: Rule) -> None:
        self.room, self.rule = room, rule
        self.socket = Socket({"authorization": f"Bearer {room.token}"})
        self.known: Known = (-1, -1, None)

    async def subscribe(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        payload = {"task_id": str(self.room.stage.task.pk)}
        await self.socket.wire.send_json_to({"id": 1, "type": "request", "action": "subscribe", "payload": payload})
        while (await self.read())["type"] != "response":
            pass

    async def read(self) -> dict[str, Any]:
        frame = await self.socket.hear(PATIENCE_S)
        self.known = take(self.known, frame, self.rule)
        return frame

    async def comes_to(self, truth: Known, within_s: float) -> float | None:
        """The seconds that it took; None when it is still stale afterwards."""
        start = time.monotonic()
        while self.known != truth:
            left = within_s - (time.monotonic() - start)
            if left <= 0 or await self.socket.wire.receive_nothing(timeout=left, interval=0.002):
                return None
            await self.read()
        return time.monotonic() - start


async def play_round(room: Room, chance: random.Random, rule: Rule, within_s: float) -> list[float | None]:
    clients = [Client(room, rule) for _ in range(SOCKETS)]
    for client in clients:
        assert await client.socket.open()
    subscribing = [asyncio.create_task(client.subscribe(chance.uniform(0, CHANGE_S))) for client in clients]
    await asyncio.sleep(CHANGE_S)
    await in_thread(room.change)
    await asyncio.gather(*subscribing)
    truth = await in_thread(room.truth)
    took = await asyncio.gather(*(client.comes_to(truth, within_s) for client in clients))
    for client in clients:
        await client.socket.wire.disconnect(timeout=PATIENCE_S)
    return took


async def test_every_client_ends_with_what_the_database_says(room: Room, chance: random.Random) -> None:
    took: list[float | None] = []
    for _ in range(ROUNDS):
        took += await play_round(room, chance, newer, PATIENCE_S)
        assert None not in took, "a client lost a change"
    assert len([seconds for seconds in took if seconds and seconds > BOUND_S]) <= LATE_ALLOWED
    assert (await in_thread(room.truth))[1] >= ROUNDS, "the changes were real"


async def one_is_stale(room: Room, chance: random.Random, rule: Rule) -> bool:
    for _ in range(ROUNDS):
        if None in await play_round(room, chance, rule, SHORT_S):
            return True
    return False


async def test_control_a_socket_that_reads_before_it_follows_leaves_clients_stale(
    room: Room, chance: random.Random, reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def too_early(self: sockets.PageSocket, key: Key) -> dict[str, Any]:
        state = await reading(snapshots.of, self.caller.principal, key)
        self.follow(key)
        return dict(state)

    monkeypatch.setattr(sockets.PageSocket, "_subscribe", too_early)
    assert await one_is_stale(room, chance, newer)


async def test_control_a_client_that_believes_whatever_comes_last_ends_stale(room: Room, chance: random.Random) -> None:
    assert await one_is_stale(room, chance, whatever_comes)
