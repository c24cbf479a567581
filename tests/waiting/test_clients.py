"""Agents and people whose connections break, and an answer that crosses processes (C5, C6, D11, F1)."""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.recovery.world import WAITERS, World, answer
from tests.recovery.world import told as rest
from tests.support.processes import HOST, Server
from tests.support.waiting import never, until
from tests.waiting.conftest import MakeWorld


@contextmanager
def raw(server: Server, method: str, path: str, token: str, body: Any = None) -> Iterator[socket.socket]:
    """A request on a bare connection, so that a test decides how it ends."""
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} /api/v1{path} HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection((HOST, server.port), 10) as link:
        link.sendall(head.encode() + content)
        yield link


def reset(link: socket.socket) -> None:
    """Closes with a TCP reset, as a process that is killed does."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()


def told(world: World, pending_id: str) -> list[bool]:
    return [row["status"] == "pending" for row in world.bundle(pending_id)["questions"]]


@pytest.mark.scenario("C6", "C1")
def test_an_answer_in_one_process_reaches_the_waiter_in_the_other(make_world: MakeWorld) -> None:
    world = make_world(processes=2)
    for round_ in range(5):
        pending_id = world.ask()
        waited = world.wait(pending_id, world.peer)
        status, body = world.respond(pending_id, answer(f"m{round_}"), world.home)
        assert (status, body["claimed"], body["delivery"]) == (200, True, "delivered")
        assert waited.result(10) == (200, body["response"])
        world.once(f"m{round_}")
    assert len(world.turns()) == 1


@pytest.mark.scenario("C6", "C2")
def test_a_skip_in_one_process_reaches_the_waiter_in_the_other_with_its_reason(make_world: MakeWorld) -> None:
    world = make_world(processes=2)
    pending_id = world.ask()
    waited = world.wait(pending_id, world.peer)
    status, body = world.respond(pending_id, {"rejected": True, "reject_reason": "later"}, world.home)
    assert (status, body["status"]) == (200, "rejected")
    status, said = waited.result(10)
    assert (status, said["rejected"], said["reject_reason"]) == (200, True, "later")


@pytest.mark.scenario("C5", "F1", "K5")
def test_a_client_reset_detaches_and_the_answer_comes_as_one_prompt(make_world: MakeWorld) -> None:
    world = make_world(KANDEV_PAUSE_GRACE_S="60")
    pending_id = world.ask()
    path = f"/clarification/{pending_id}/wait"
    with raw(world.home, "GET", path, world.token) as link:
        until(lambda: world.gauge(WAITERS) == 1, what="the wait is registered")
        reset(link)
    until(lambda: world.state(pending_id) == "active_detached", what="it is detached")
    assert told(world, pending_id) == [True]
    assert world.respond(pending_id, answer("after the reset"))[0] == 200
    world.once("after the reset")
    assert len(world.turns()) == 2
    until(lambda: world.gauge(WAITERS) == 0)


@pytest.mark.scenario("C5", "F1", "K5", "R27", "B3")
def test_a_client_that_asks_again_within_the_grace_is_joined_and_not_cancelled(make_world: MakeWorld) -> None:
    world = make_world(KANDEV_PAUSE_GRACE_S="60")
    pending_id = world.ask(questions=_fixed())
    with raw(world.home, "GET", f"/clarification/{pending_id}/wait", world.token) as link:
        until(lambda: world.gauge(WAITERS) == 1)
        reset(link)
    until(lambda: world.state(pending_id) == "active_detached")
    assert world.ask(questions=_fixed()) == pending_id
    waited = world.wait(pending_id)
    assert world.respond(pending_id, answer("again"))[0] == 200
    assert waited.result(10)[0] == 200
    never(lambda: len(world.turns()) > 1, seconds=0.5, what="no further turn")
    assert world.received("again") == 1


def _fixed() -> list[dict[str, Any]]:
    from tests.recovery.world import questions

    return questions("the same")


@pytest.mark.scenario("D11", "F4")
@pytest.mark.parametrize("detached", [True, False])
def test_a_person_who_hangs_up_has_answered_all_the_same(make_world: MakeWorld, detached: bool) -> None:
    world = make_world()
    pending_id = world.detach() if detached else world.ask()
    waited = None if detached else world.wait(pending_id)
    token = world.product.tokens["owner"]
    with raw(world.home, "POST", f"/clarification/{pending_id}/respond", token, answer("gone")) as link:
        reset(link)
    until(lambda: world.settled(pending_id) in {"terminal", "active_detached", "active_live"})
    if world.state(pending_id) != "terminal":  # the reset came before the request was read
        assert world.respond(pending_id, answer("gone"))[0] == 200
    world.once("gone")
    assert waited is None or waited.result(10)[0] == 200
    assert world.respond(pending_id, answer("else"))[1]["response"]["answers"][0]["custom_text"] == "gone"
    world.tidy()


@pytest.mark.scenario("H6", "H1", "F1")
def test_a_wait_ends_when_the_person_who_waits_loses_the_sight_of_the_task(make_world: MakeWorld) -> None:
    world = make_world(KANDEV_PAUSE_GRACE_S="60")
    pending_id = world.ask()
    shared = f"/workspaces/{world.workspace}"
    assert world.owner("PATCH", shared, {"members": [{"user": "answerer", "role": "admin"}]})[0] == 200
    agents, world.token = world.token, world.product.tokens["answerer"]
    waited = world.wait(pending_id)
    world.token = agents
    agent = world.wait(pending_id)
    assert world.owner("PATCH", shared, {"members": []})[0] == 200
    nobodys = rest("GET", f"{world.peer.url}/api/v1/clarification/unknown", world.product.tokens["answerer"])
    assert waited.result(10) == nobodys
    assert nobodys[0] == 404
    assert world.state(pending_id) == "active_live", "the agent's own wait goes on"
    assert world.respond(pending_id, answer("for the agent"))[0] == 200
    assert agent.result(10)[0] == 200


@pytest.mark.scenario("H6", "F1")
def test_a_wait_ends_with_the_token_that_it_came_with(make_world: MakeWorld) -> None:
    world = make_world(KANDEV_PAUSE_GRACE_S="60")
    pending_id = world.ask()
    waited = world.wait(pending_id)
    world.product.manage("token", "revoke", world.token)
    status, body = waited.result(10)
    assert (status, body["code"]) == (401, "unauthorized")
    assert world.state(pending_id) == "active_detached"
    assert world.respond(pending_id, answer("nobody hears"))[0] == 200
    world.once("nobody hears")
    assert world.live == []
