"""A client that does not read costs a bounded amount of memory and nobody else anything."""

import asyncio
from typing import Any

import pytest

from tasks import envelopes, hub, sockets
from tasks.hub import Key, Notification
from tasks.models import Session
from tasks.querysets import SessionQuerySet
from tasks.socketauth import Caller
from tasks.threads import in_thread
from tests.realtime.conftest import Connect, Socket, World


def told(world: World, text: str = "") -> Notification:
    return Notification(envelopes.notification("news", {"text": text}), world.task.pk, world.workspace.pk)


Stuck = dict[str, asyncio.Event]


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Stuck:
    """By user name: while the event is clear, sends to that one hang, as they do when a transport is full."""
    stuck: Stuck = {}
    plain = sockets.PageSocket.__init__

    def with_hanging_send(self: Any, caller: Caller, send: Any) -> None:
        async def hanging(message: Any) -> None:
            await send(message)
            if caller.principal.user is not None and caller.principal.user.username in stuck:
                await stuck[caller.principal.user.username].wait()

        plain(self, caller, hanging)

    monkeypatch.setattr(sockets.PageSocket, "__init__", with_hanging_send)
    return stuck


@pytest.mark.parametrize(("text", "limit"), [("", "MAX_WAITING"), ("x" * 1000, "MAX_WAITING_CHARS")])
async def test_a_full_queue_closes_the_socket_so_that_the_client_starts_anew(
    world: World, connect: Connect, stuck: Stuck, monkeypatch: pytest.MonkeyPatch, text: str, limit: str
) -> None:
    monkeypatch.setattr(sockets, limit, 50 if limit == "MAX_WAITING" else 50_000)
    slow, quick = await connect("owner"), await connect("viewer")
    for socket in (slow, quick):
        await socket.follow(world.task)
    stuck["owner"] = asyncio.Event()
    for _ in range(60):
        hub.deliver([told(world, text)])
        assert (await quick.hear())["action"] == "news"
    outputs = [await slow.wire.receive_output(5) for _ in range(2)]
    assert [output["type"] for output in outputs] == ["websocket.send", "websocket.close"]
    assert outputs[1]["code"] == sockets.TOO_SLOW
    assert len(hub.followers(Key("task", world.task.pk))) == 1
    del stuck["owner"]
    again = await connect("owner")
    assert (await again.follow(world.task))["sessions"]


async def test_many_notifications_in_one_go_all_arrive(world: World, connect: Connect) -> None:
    socket = await connect("owner")
    await socket.follow(world.task)
    for number in range(500):
        hub.deliver([told(world, str(number))])
    assert [(await socket.hear())["payload"]["text"] for _ in range(500)] == [str(number) for number in range(500)]


async def test_bringing_up_to_date_gives_everybody_what_he_may_see(world: World, connect: Connect) -> None:
    person, agent = await connect("viewer"), await connect("agent")
    for socket in (person, agent):
        await socket.follow(world.task)
    hidden = await in_thread(_second_session, world)
    await sockets.bring_up_to_date()
    states = [await socket.hear() for socket in (person, agent)]
    for state in states:
        assert (state["type"], state["action"]) == ("notification", "snapshot")
        assert state["payload"]["task_id"] == str(world.task.pk)
        assert state["payload"]["tasks"][0]["task_id"] == str(world.task.pk)
    seen = [{session["session_id"] for session in state["payload"]["sessions"]} for state in states]
    assert seen == [{str(world.session.pk), str(hidden.pk)}, {str(world.session.pk)}]


async def test_who_cannot_be_brought_up_to_date_is_closed(
    world: World, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await connect("viewer")
    await socket.follow(world.task)

    def fail(self: Any) -> Any:
        raise RuntimeError("the rule cannot be read")

    monkeypatch.setattr(SessionQuerySet, "with_pending", fail)
    await sockets.bring_up_to_date()
    assert await socket.close_code() == sockets.TOO_SLOW


def _second_session(world: World) -> Session:
    from tests.realtime.conftest import make_session

    return make_session(world.task)


async def test_one_socket_follows_a_bounded_number(
    world: World, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "MAX_FOLLOWED", 1)
    socket: Socket = await connect("owner")
    await socket.follow(world.task)
    await socket.follow(world.task)
    reply = await socket.ask("subscribe", task_id=str(world.other.pk))
    assert (reply["type"], reply["payload"]["code"]) == ("error", "too_many_subscriptions")
