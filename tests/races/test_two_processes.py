"""The same through two real server processes, which know of each other only by the database and Redis (G1, C6).

`RACE_ROUNDS=100` races each pair a hundred times on each path.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.mcp.scenes import Scene, post
from tests.races.entries import PAIRS, heard, tool_call
from tests.support.processes import Product, Server
from tests.support.threads import beside
from tests.support.waiting import at_once, until
from tests.support.web import LOCAL, signed_in

ROUNDS = int(os.environ.get("RACE_ROUNDS", "1"))
PERSON = "answerer"
pytestmark = [pytest.mark.timeout(300 if ROUNDS < 50 else 3600), pytest.mark.scenario("G1", "G2", "C6")]
Answer = Callable[[str, dict[str, Any]], dict[str, Any]]


def servers(scene: Scene) -> list[Server]:
    return [process for process in scene.product.processes if isinstance(process, Server)]


@pytest.fixture
def joined(served: Product, make_scene: Callable[..., Scene]) -> Scene:
    return make_scene(served, **{PERSON: PERSON})


@pytest.fixture
def entries(joined: Scene) -> Iterator[dict[str, list[Answer]]]:
    """By name, the entry at the first and at the second process."""
    with ExitStack() as stack:
        token = joined.product.tokens[PERSON]
        made: dict[str, list[Answer]] = {"page": [], "rest": [], "mcp": []}
        for server in servers(joined):
            bearer = httpx2.Client(base_url=server.url, headers=_bearer(token), timeout=60, **LOCAL)
            for name, client in (("page", signed_in(server.url, PERSON)), ("rest", bearer)):
                stack.callback(client.close)
                made[name].append(partial(_sent, client))
            made["mcp"].append(partial(_called, server.url + "/mcp", token))
        yield made


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _sent(client: httpx2.Client, pending_id: str, payload: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = client.post(f"/api/v1/clarification/{pending_id}/respond", json=payload).json()
    return body


def _called(url: str, token: str, pending_id: str, payload: dict[str, Any]) -> dict[str, Any]:
    got = post(url, token, tool_call(pending_id, payload))
    return heard(got.text, got.headers["content-type"])


def race(scene: Scene, pending_id: str, answers: tuple[Answer, Answer]) -> dict[str, Any]:
    """The winner's outcome; the loser was told what the winner said."""
    payloads = [scene.answer(pending_id, f"caller {n}", pick=n) for n in (0, 1)]
    calls = [partial(answer, pending_id, payload) for answer, payload in zip(answers, payloads, strict=True)]
    outcomes = [one for one in at_once(*calls) if isinstance(one, dict)]
    assert sorted(str(one.get("claimed")) for one in outcomes) == ["False", "True"], outcomes
    won, lost = sorted(outcomes, key=lambda one: not one["claimed"])
    assert lost["response"] == won["response"]
    return won


def wait(server: Server, token: str, pending_id: str) -> dict[str, Any]:
    url = f"{server.url}/api/v1/clarification/{pending_id}/wait"
    got = httpx2.get(url, headers=_bearer(token), timeout=60, **LOCAL)
    assert got.status_code == 200, got.text
    body: dict[str, Any] = got.json()
    return body


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_a_waiting_agent_gets_the_one_winner(
    joined: Scene, entries: dict[str, list[Answer]], pair: tuple[str, str]
) -> None:
    for number in range(ROUNDS):
        pending_id = joined.ask()
        waits = beside(wait, servers(joined)[number % 2], joined.token, pending_id)
        won = race(joined, pending_id, (entries[pair[0]][0], entries[pair[1]][1]))
        assert waits.result(60) == won["response"]
    assert joined.runner.dispatches.empty()


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_a_detached_question_becomes_one_prompt(
    joined: Scene, entries: dict[str, list[Answer]], pair: tuple[str, str]
) -> None:
    for number in range(ROUNDS):
        pending_id = joined.ask()
        joined.runner.ready()
        until(lambda: joined.bundle(pending_id)["state"] == "active_detached", what="the turn has ended")  # noqa: B023
        won = race(joined, pending_id, (entries[pair[number % 2]][0], entries[pair[1 - number % 2]][1]))
        frame = joined.runner.dispatches.get(timeout=30)
        assert won["response"]["answers"][-1]["custom_text"] in frame["prompt"]
        joined.token = frame["mcp"]["token"]
        assert joined.runner.dispatches.empty()
