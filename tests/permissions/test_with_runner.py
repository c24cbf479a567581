"""Server, runner with `--permissions ask` and the real demo agent as processes: what a person picks reaches it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.processes import Process, Product, Server
from tests.support.waiting import until

Json = dict[str, Any]


class Installation:
    """A server, a runner, and a task whose agent waits for leave."""

    def __init__(self, product: Product, folder: Path) -> None:
        self.server: Server = product.start()
        self.owner: httpx2.Client = product.client("owner")
        agent = f'demo="{sys.executable}" -m kandev.demo.agent'
        arguments = ["--url", self.server.url, "--agent", agent, "--journal", str(folder / "journal.sqlite3")]
        token = product.tokens["runner-1"]
        self.runner: Process = product.spawn("runner", *arguments, "--permissions", "ask", KANDEV_RUNNER_TOKEN=token)
        workspace = self.owner.post("/workspaces", json={"name": "w"}).json()["id"]
        body = {"workspace": workspace, "title": "t", "agent": "demo", "prompt": "ask permission"}
        self.session = str(self.owner.post("/tasks", json=body).json()["primary_session"])

    def messages(self, kind: str) -> list[Json]:
        rows = self.owner.get(f"/task-sessions/{self.session}/messages").json()["results"]
        return [row for row in rows if row["type"] == kind]

    def request(self) -> Json:
        found: list[Json] = until(lambda: self.messages("permission_request"), within=60, what="the request")
        return found[0]

    def pending_action(self) -> str | None:
        found: str | None = self.owner.get(f"/task-sessions/{self.session}").json()["pending_action"]
        return found

    def answer(self, option_id: str) -> httpx2.Response:
        return self.owner.post(f"/permissions/{self.request()['id']}/answer", json={"option_id": option_id})

    def heard(self) -> str:
        """What the agent says that it was told."""

        def said() -> str:
            words = [row["content"].strip() for row in self.messages("message") if "Permission: " in row["content"]]
            return words[0] if words else ""

        return str(until(said, within=60, what="the agent's word"))


@pytest.fixture
def installation(make_product: Callable[..., Product], tmp_path: Path) -> Installation:
    return Installation(make_product(KANDEV_INSTANCE_LEASE_S="3"), tmp_path)


@pytest.mark.scenario("I1", "M1")
def test_the_picked_option_reaches_the_agent_and_the_turn_goes_on(installation: Installation) -> None:
    request = installation.request()
    assert request["metadata"]["title"] == "Delete the old backups"
    assert installation.pending_action() == "permission"
    assert installation.answer("no").json() == {"success": True, "claimed": True, "option_id": "no"}
    assert installation.heard() == "Permission: no."
    assert installation.pending_action() is None
    assert installation.answer("yes").json() == {"success": True, "claimed": False, "option_id": "no"}


def test_a_request_outlives_the_server_and_is_stored_once(installation: Installation) -> None:
    request = installation.request()
    installation.server.kill9()
    installation.server.restart()
    assert installation.answer("yes").status_code == 200
    assert installation.heard() == "Permission: yes."
    assert [row["id"] for row in installation.messages("permission_request")] == [request["id"]]


@pytest.mark.scenario("F3")
def test_the_end_of_the_session_ends_the_request(installation: Installation) -> None:
    installation.request()
    assert installation.owner.post(f"/task-sessions/{installation.session}/cancel").status_code == 200
    assert installation.pending_action() is None
    late = installation.answer("yes")
    assert (late.status_code, late.json()["code"]) == (409, "not_active")
