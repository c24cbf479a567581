"""From the outbox to the sockets of this process."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from kandev import layerlink, notifications, publisher
from kandev.layerlink import LinkDownError
from kandev.publisher import Publisher
from tasks import events, hints, instances, prepared, revisions, summaries
from tasks.hub import Notification
from tasks.models import Event, Instance, Session
from tasks.querysets import SessionQuerySet
from tasks.threads import in_thread
from tests.realtime.conftest import Connect, World, make_session

ADDED = "session.message.added"


def write(session: Session, *names: str, action: str = ADDED) -> None:
    with transaction.atomic():
        events.emit(*(events.event(action, session, {"message": {"id": name}}, timezone.now()) for name in names))


def left() -> list[str]:
    return [row.payload["message"]["id"] for row in Event.objects.filter(action=ADDED)]


class Layer:
    """Stands for the other processes: takes what is published, or is down."""

    def __init__(self) -> None:
        self.down = False
        self.took: list[Notification] = []

    async def publish(self, batch: list[Notification]) -> None:
        if self.down:
            raise LinkDownError("down")
        self.took += batch


@pytest.fixture
def layer(monkeypatch: pytest.MonkeyPatch) -> Layer:
    made = Layer()
    monkeypatch.setattr(layerlink, "publish", made.publish)
    return made


@pytest_asyncio.fixture
async def by_hand(world: World, layer: Layer) -> Publisher:
    """A publisher whose rounds the test makes."""
    return Publisher(asyncio.get_running_loop())


@pytest_asyncio.fixture
async def running(world: World, layer: Layer) -> AsyncIterator[Publisher]:
    made = Publisher(asyncio.get_running_loop())
    made.start()
    yield made
    await asyncio.to_thread(made.stop)


@pytest.mark.scenario("R31")
async def test_events_come_in_order_after_the_commit_with_the_projection(
    world: World, connect: Connect, running: Publisher
) -> None:
    socket = await connect("owner")
    await socket.follow(world.task)

    def change() -> None:
        with transaction.atomic():
            revisions.lock_session(world.session.pk)
            revisions.advance(world.session.pk)
            write(world.session, "a", "b")
            write(world.session, "c", action="session.message.updated")

    await in_thread(change)
    heard = [await socket.hear() for _ in range(3)]
    assert [(event["action"], event["payload"]["message"]["id"]) for event in heard] == [
        (ADDED, "a"),
        (ADDED, "b"),
        ("session.message.updated", "c"),
    ]
    for event in heard:
        assert (event["type"], event["payload"]["pending_action"]) == ("notification", None)
        assert event["payload"]["pending_action_revision"] == {"epoch": "0", "sequence": 1}
        assert "id" not in event
        assert event["payload"]["session_id"] == str(world.session.pk)


async def test_what_is_open_or_rolled_back_is_never_told(
    world: World, connect: Connect, running: Publisher, database: str
) -> None:
    socket = await connect("owner")
    await socket.follow(world.task)
    written, go_on = threading.Event(), threading.Event()

    def change_and_fail() -> None:
        with contextlib.suppress(ZeroDivisionError), transaction.atomic():
            write(world.session, "never")
            written.set()
            go_on.wait(10)
            raise ZeroDivisionError

    changing = asyncio.create_task(in_thread(change_and_fail))
    await asyncio.to_thread(written.wait, 10)
    events.poke()
    assert await socket.heard_nothing()
    go_on.set()
    await changing
    await in_thread(write, world.session, "real")
    assert (await socket.hear())["payload"]["message"]["id"] == "real"


async def test_a_projection_that_fails_leaves_both_keys_out(
    world: World, connect: Connect, by_hand: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await connect("owner")
    await socket.follow(world.task)
    await in_thread(write, world.session, "a")

    def fail(self: Any) -> Any:
        raise RuntimeError("the rule cannot be read")

    monkeypatch.setattr(SessionQuerySet, "with_pending", fail)
    prepared.forget()
    await in_thread(by_hand.step)
    payload = (await socket.hear())["payload"]
    assert payload["message"] == {"id": "a"}
    assert {"pending_action", "pending_action_revision"} & payload.keys() == set()


async def test_turn_events_carry_what_their_writer_gave(world: World, connect: Connect, by_hand: Publisher) -> None:
    socket = await connect("owner")
    await socket.follow(world.task)
    await in_thread(write, world.session, "a", action="turn.started")
    await in_thread(by_hand.step)
    assert (await socket.hear())["payload"].keys() == {"session_id", "task_id", "message"}


def test_a_batch_costs_the_same_for_many_sessions(world: World) -> None:
    sessions = [make_session(world.task) for _ in range(20)]
    for session in sessions:
        write(session, "x")
    rows = list(Event.objects.all())
    with CaptureQueriesContext(connection) as queries:
        assert len(notifications.build(rows)) == 20
        notifications.refresh_summaries(rows)
    assert len(queries) == 2


async def test_the_summary_of_a_changed_task_is_refreshed_and_its_failure_stops_nothing(
    world: World, by_hand: Publisher, layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def refresh(task_id: object) -> None:
        asked.append(task_id)
        raise RuntimeError("the summary cannot be stored")

    monkeypatch.setattr(summaries, "is_stale", lambda task: True)
    monkeypatch.setattr(summaries, "refresh", refresh)
    await in_thread(write, world.session, "a", "b")
    await in_thread(by_hand.step)
    assert asked == [world.task.pk]
    assert await in_thread(left) == []


@pytest.mark.scenario("R18")
async def test_with_the_layer_down_our_sockets_hear_at_once_and_the_others_later_in_order(
    world: World, connect: Connect, by_hand: Publisher, layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await connect("owner")
    await socket.follow(world.task)
    layer.down = True
    monkeypatch.setattr(publisher, "MAX_PAUSE_S", 0.0)
    for name in "ab":
        await in_thread(write, world.session, name)
        await in_thread(by_hand.step)
        assert (await socket.hear())["payload"]["message"]["id"] == name
    assert await in_thread(left) == ["a", "b"]
    layer.down = False
    await in_thread(write, world.session, "c")
    await in_thread(by_hand.step)
    assert (await socket.hear())["payload"]["message"]["id"] == "c"
    assert await socket.heard_nothing()
    assert ['"id":"a"' in layer.took[0].text, '"id":"b"' in layer.took[1].text] == [True, True]
    assert len(layer.took) == 3
    assert await in_thread(left) == []


async def test_an_outage_holds_a_bounded_number_of_rows_in_memory(
    world: World, by_hand: Publisher, layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer.down = True
    monkeypatch.setattr(publisher, "MAX_HELD", 2)
    monkeypatch.setattr(publisher, "MAX_PAUSE_S", 0.0)
    monkeypatch.setattr(publisher, "BATCH", 2)
    await in_thread(write, world.session, *"abcdef")
    for _ in range(3):
        await in_thread(by_hand.step)
    assert publisher.state()["held"] == 0
    assert len(by_hand._held) == 1
    layer.down = False
    for _ in range(3):
        await in_thread(by_hand.step)
    assert [any(f'"id":"{name}"' in told.text for told in layer.took) for name in "abcdef"] == [True] * 6


def test_only_what_nobody_alive_owns_is_taken_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "_generation", 0)
    write(world.session, "a command's")
    owners = [instances.register().pk for _ in range(3)]
    dead, peer, me = owners
    for owner, name in ((dead, "a dead process'"), (peer, "a living peer's"), (me, "mine")):
        write(world.session, name)
        Event.objects.filter(payload__message__id=name).update(owner=owner)
    Instance.objects.filter(pk=dead).update(ended_at=timezone.now())
    assert publisher.adopt() == 2
    assert publisher.adopt() == 0
    of = {row.payload["message"]["id"]: row.owner for row in Event.objects.all()}
    assert of == {"a command's": me, "a dead process'": me, "a living peer's": peer, "mine": me}


async def test_rows_that_another_process_took_over_are_not_deleted(
    world: World, by_hand: Publisher, layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen process wakes in the middle of a round: the new owner tells them again, at least once."""
    await in_thread(write, world.session, "a")

    async def taken_over(batch: list[Notification]) -> None:
        await in_thread(Event.objects.update, owner=99)

    monkeypatch.setattr(layerlink, "publish", taken_over)
    await in_thread(by_hand.step)
    assert await in_thread(left) == ["a"]


async def test_a_round_that_fails_is_repeated(
    world: World, connect: Connect, running: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await connect("owner")
    await socket.follow(world.task)
    build, failed = notifications.build, threading.Event()

    def fail_once(rows: Any) -> Any:
        monkeypatch.setattr(notifications, "build", build)
        failed.set()
        raise RuntimeError("once")

    monkeypatch.setattr(notifications, "build", fail_once)
    await in_thread(write, world.session, "a")
    assert (await socket.hear())["payload"]["message"]["id"] == "a"
    assert failed.is_set()


async def test_the_thread_ends_when_it_is_told_to(world: World, layer: Layer) -> None:
    before: Callable[[], int] = lambda: sum(thread.name == "kandev-publisher" for thread in threading.enumerate())  # noqa: E731
    publisher.start(asyncio.get_running_loop())
    assert (before(), publisher.state()["running"]) == (1, True)
    await asyncio.to_thread(publisher.stop)
    assert (before(), publisher.state()["running"]) == (0, False)
    assert not hints._listeners.get(events.OUTBOX)
