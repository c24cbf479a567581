"""Requests on `/ws/` and their answers."""

import json
import uuid
from typing import Any

import pytest
from pytest_django import Settings

from tasks import envelopes, hub, snapshots
from tasks.hub import Notification
from tasks.models import Session, Task, Workspace
from tasks.querysets import SessionQuerySet
from tasks.threads import in_thread
from tests.realtime.conftest import Connect, World, make_session


def told(world: World, what: str, session: Session | None = None) -> Notification:
    text = envelopes.notification(what, {})
    return Notification(text, world.task.pk, world.workspace.pk, session.pk if session else None)


async def test_subscribing_answers_with_the_state_of_the_task(world: World, connect: Connect) -> None:
    socket = await connect("viewer")
    reply = await socket.ask("subscribe", task_id=str(world.task.pk))
    assert (reply["id"], reply["type"], reply["action"]) == (7, "response", "subscribe")
    assert reply["timestamp"].endswith("Z")
    assert reply["payload"]["sessions"] == [
        {
            "session_id": str(world.session.pk),
            "task_id": str(world.task.pk),
            "state": "created",
            "pending_action": None,
            "pending_action_revision": {"epoch": "0", "sequence": 0},
        }
    ]
    assert [task["task_id"] for task in reply["payload"]["tasks"]] == [str(world.task.pk)]
    assert reply["payload"]["tasks"][0]["summary"]["pending_action"] is None


@pytest.mark.scenario("I3")
async def test_a_stale_summary_is_mended_in_what_a_subscription_tells(world: World, connect: Connect) -> None:
    stale = {"pending_action": "clarification"}
    await in_thread(Task.objects.filter(pk=world.task.pk).update, summary=stale, summary_revision=7)
    reply = await (await connect("viewer")).ask("subscribe", task_id=str(world.task.pk))
    summary = reply["payload"]["tasks"][0]["summary"]
    assert (summary["pending_action"], summary["revision"]) == (None, 8)


async def test_a_workspace_subscription_covers_its_tasks_and_tells_each_event_once(
    world: World, connect: Connect
) -> None:
    socket = await connect("owner")
    reply = await socket.ask("subscribe", workspace_id=str(world.workspace.pk))
    assert {task["task_id"] for task in reply["payload"]["tasks"]} == {str(world.task.pk), str(world.other.pk)}
    await socket.follow(world.task)
    hub.deliver([told(world, "one")])
    assert (await socket.hear())["action"] == "one"
    assert await socket.heard_nothing()


async def test_what_commits_between_subscription_and_snapshot_is_heard(
    world: World, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await connect("owner")
    read = snapshots.of

    def and_meanwhile(*arguments: Any) -> dict[str, Any]:
        assert hub.followed(), "the snapshot was read before the subscription held"
        return read(*arguments)

    monkeypatch.setattr(snapshots, "of", and_meanwhile)
    await socket.follow(world.task)


async def test_after_unsubscribing_nothing_is_heard(world: World, connect: Connect) -> None:
    socket = await connect("owner")
    await socket.follow(world.task)
    assert (await socket.ask("unsubscribe", task_id=str(world.task.pk)))["type"] == "response"
    hub.deliver([told(world, "one")])
    assert await socket.heard_nothing()


@pytest.mark.scenario("H6")
@pytest.mark.parametrize("who", ["stranger", "agent"])
async def test_a_foreign_task_or_workspace_is_refused_like_an_unknown_one(
    world: World, connect: Connect, who: str
) -> None:
    socket = await connect(who)
    foreign = [{"task_id": str(world.other.pk)}, {"workspace_id": str(world.workspace.pk)}]
    for names in foreign:
        replies = [
            await socket.ask("subscribe", **{key: value}) for key in names for value in (names[key], uuid.uuid4().hex)
        ]
        for reply in replies:
            del reply["timestamp"]
        assert replies[0] == replies[1]
        assert (replies[0]["type"], replies[0]["payload"]["code"]) == ("error", "not_found")


async def test_an_agent_hears_of_its_own_session_only(world: World, connect: Connect) -> None:
    sibling = await in_thread(make_session, world.task)
    socket = await connect("agent")
    state = await socket.follow(world.task)
    assert [session["session_id"] for session in state["sessions"]] == [str(world.session.pk)]
    hub.deliver([told(world, "not yours", sibling), told(world, "yours", world.session), told(world, "the task")])
    assert [(await socket.hear())["action"] for _ in range(2)] == ["yours", "the task"]


async def test_without_authentication_everybody_may_subscribe(
    world: World, connect: Connect, settings: Settings
) -> None:
    settings.KANDEV_AUTH = "off"
    socket = await connect()
    await socket.follow(world.task)
    await in_thread(Workspace.objects.filter(pk=world.workspace.pk).update, owner=None)
    await socket.ask("subscribe", workspace_id=str(world.workspace.pk))


@pytest.mark.scenario("I6", "R31")
async def test_a_projection_that_fails_is_an_error_and_no_subscription(
    world: World, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any) -> Any:
        raise RuntimeError("the rule cannot be read")

    socket = await connect("owner")
    monkeypatch.setattr(SessionQuerySet, "with_pending", fail)
    reply = await socket.ask("subscribe", task_id=str(world.task.pk))
    assert (reply["type"], reply["payload"]["code"]) == ("error", "projection_failed")
    assert hub.followed() == []


FRAMES = {
    "no JSON": "{",
    "no object": "[]",
    "NaN": '{"type": "request", "action": "ping", "payload": {"a": NaN}}',
    "deep": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "huge": json.dumps({"type": "request", "action": "ping", "payload": "x" * 70_000}),
    "a NUL": '{"type": "request", "action": "a\\u0000b"}',
    "a surrogate": '{"type": "request", "action": "\\ud800"}',
    "an object as id": '{"id": {}, "type": "request", "action": "ping"}',
    "another type": '{"type": "response", "action": "ping"}',
    "an action that nobody knows": '{"type": "request", "action": "shout"}',
    "an action that is a list": '{"type": "request", "action": []}',
    "no payload": '{"type": "request", "action": "subscribe"}',
    "a payload of a wrong type": '{"type": "request", "action": "subscribe", "payload": [1]}',
    "both ids": '{"type": "request", "action": "subscribe", "payload": {"task_id": "a", "workspace_id": "b"}}',
    "a number as id of a task": '{"type": "request", "action": "subscribe", "payload": {"task_id": 5}}',
    "an id that is none": '{"type": "request", "action": "subscribe", "payload": {"task_id": "zz"}}',
    "a list as id of a task": '{"type": "request", "action": "unsubscribe", "payload": {"task_id": ["x"]}}',
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
async def test_a_frame_that_is_no_request_gets_an_error_and_the_socket_goes_on(connect: Connect, frame: str) -> None:
    socket = await connect("owner")
    await socket.say(frame)
    reply = await socket.hear()
    assert reply["type"] == "error"
    assert reply["payload"]["code"] in ("invalid", "too_large")
    assert (await socket.ask("ping"))["type"] == "response"


async def test_a_binary_frame_is_read_as_text(connect: Connect) -> None:
    socket = await connect("owner")
    await socket.wire.send_to(bytes_data=b'{"id": "x", "type": "request", "action": "ping"}')
    assert (await socket.hear())["id"] == "x"
    await socket.wire.send_to(bytes_data=b"\xff\xfe")
    assert (await socket.hear())["type"] == "error"
