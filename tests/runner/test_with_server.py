"""Runner, agent and server as real processes: one is killed while a question waits, and the answer still arrives."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.processes import Process, Product, Server
from tests.support.waiting import until

pytestmark = pytest.mark.once
Json = dict[str, Any]


class Installation:
    def __init__(self, product: Product, folder: Path) -> None:
        self.product, self.folder = product, folder
        self.server: Server = product.start()
        self.owner: httpx2.Client = product.client("owner")
        self.log = folder / "agent.jsonl"
        self.runner: Process = self._start_runner()

    def _start_runner(self) -> Process:
        agent = f'demo="{sys.executable}" -m kandev.demo.agent'
        arguments = ["--url", self.server.url, "--agent", agent, "--journal", str(self.folder / "journal.sqlite3")]
        environment = {"KANDEV_RUNNER_TOKEN": self.product.tokens["runner-1"], "KANDEV_DEMO_LOG": str(self.log)}
        return self.product.spawn("runner", *arguments, **environment)

    def asked(self) -> tuple[str, str]:
        """A task whose agent waits for an answer; returns its session and the question's id."""
        workspace = self.owner.post("/workspaces", json={"name": "w"}).json()["id"]
        body = {"workspace": workspace, "title": "t", "agent": "demo", "prompt": "ask once"}

        def started() -> Json | None:
            answer = self.owner.post("/tasks", json=body)
            return answer.json() if answer.status_code == 201 else None

        task = until(started, within=30, every=0.3, what="a runner takes the task")
        assert task is not None
        bundle = until(lambda: self.owner.get("/clarifications").json()["bundles"], within=30, what="the question")[0]
        return str(task["primary_session"]), str(bundle["pending_id"])

    def bundle(self, pending_id: str) -> Json:
        return dict(self.owner.get(f"/clarification/{pending_id}").json())

    def turns(self, session: str) -> list[Json]:
        return list(self.owner.get(f"/task-sessions/{session}/turns").json()["results"])

    def answer(self, pending_id: str, text: str) -> Json:
        """Answers all questions; a runner that is on its way back makes it a 503, which is tried again."""
        names = [question["question_id"] for question in self.bundle(pending_id)["questions"]]
        answers = [{"question_id": name, "selected_options": [], "custom_text": text} for name in names]

        def answered() -> Json | None:
            got = self.owner.post(f"/clarification/{pending_id}/respond", json={"answers": answers})
            assert got.status_code in (200, 503), got.text
            return got.json() if got.status_code == 200 else None

        body = until(answered, within=30, every=0.3, what="the answer is taken")
        assert body is not None
        return body

    def received(self, text: str) -> list[str]:
        """How the agent received answers that contain `text`, by its own record."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line)["how"] for line in lines if text in line]


@pytest.fixture
def installation(make_product: Callable[..., Product], tmp_path: Path) -> Installation:
    return Installation(make_product(KANDEV_PAUSE_GRACE_S="1", KANDEV_INSTANCE_LEASE_S="3"), tmp_path)


def test_the_end_of_a_prompt_reaches_a_server_that_was_killed_meanwhile(installation: Installation) -> None:
    session, pending_id = installation.asked()
    installation.server.kill9()
    installation.server.restart()
    until(lambda: installation.turns(session)[0]["completed_at"], within=30, what="the turn ends")
    until(lambda: installation.bundle(pending_id)["state"] == "active_detached", within=30, what="the question stands")
    assert installation.answer(pending_id, "after-the-crash")["delivery"] == "delivered"
    until(lambda: installation.received("after-the-crash"), within=30, what="the agent's receipt")
    until(lambda: all(turn["completed_at"] for turn in installation.turns(session)), within=30, what="all turns end")
    assert installation.received("after-the-crash") == ["prompt"]


@pytest.mark.scenario("R13")
def test_a_killed_runner_ends_its_turn_when_it_is_back_and_takes_the_answer(installation: Installation) -> None:
    session, pending_id = installation.asked()
    installation.runner.kill9()
    installation.runner.relaunch()
    until(lambda: installation.turns(session)[0]["completed_at"], within=20, what="the turn ends before the lease does")
    assert installation.bundle(pending_id)["state"] == "active_detached"
    assert installation.answer(pending_id, "after-the-restart")["delivery"] == "delivered"
    until(lambda: installation.received("after-the-restart"), within=30, what="the agent's receipt")
    until(lambda: all(turn["completed_at"] for turn in installation.turns(session)), within=30, what="all turns end")
    assert installation.received("after-the-restart") == ["prompt"]
