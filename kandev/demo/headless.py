"""The main job without a browser: an agent asks, is answered live, asks again, is answered after its wait has ended.

Everything is real: a server process, a runner process, an agent process, one REST client. What counts is the agent's
own record: each answer must have reached it exactly once, the first one live and the second one as a new prompt.
"""

import json
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kandev.demo.processes import Local, LocalError, free_port
from kandev.demo.rest import Json, Person, until

WAIT_S = 10
PATIENCE_S = 60.0
Say = Callable[[str], object]


def run(say: Say, logs: Path | None = None) -> None:
    """Raises LocalError if anything went differently. All processes have ended when this returns or raises."""
    if logs:
        logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kandev-demo-") as name:
        folder = Path(name)
        port = free_port()
        # Nothing that is set for another installation may reach this one.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("KANDEV_")}
        environment = inherited | {
            "DEBUG": "0",
            "ALLOWED_HOSTS": "127.0.0.1",
            "DATABASE_URL": f"sqlite:///{folder / 'kandev.sqlite3'}",
            "REDIS_URL": "",
            "SECRET_KEY": secrets.token_urlsafe(50),
            "KANDEV_AUTH": "required",
            "KANDEV_PUBLIC_URL": f"http://127.0.0.1:{port}",
            "KANDEV_WAIT_TIMEOUT_S": str(WAIT_S),
        }
        with Local(environment, logs=logs or folder) as local:
            Demo(local, folder, say).run(port)


class Demo:
    def __init__(self, local: Local, folder: Path, say: Say) -> None:
        self._local, self._folder, self._say = local, folder, say
        self._log = folder / "agent.jsonl"
        self._person: Person

    def run(self, port: int) -> None:
        self._local.manage("migrate", "--no-input")
        self._local.manage("user", "demo", KANDEV_USER_PASSWORD=secrets.token_urlsafe(20))
        personal = self._local.manage("token", "personal", "--user", "demo")
        runner = self._local.manage("token", "runner", "--name", "demo")
        url = self._local.start_server("127.0.0.1", port)
        self._say(f"server: {url}")
        log = {"KANDEV_DEMO_LOG": str(self._log), "KANDEV_DEMO_DELAY_S": "1"}
        self._local.start_runner(url, runner, self._folder / "runner", **log)
        self._person = Person(url, personal)
        try:
            self._talk()
        finally:
            self._person.close()

    def _talk(self) -> None:
        workspace = self._person.post("/workspaces", {"name": "Demo"})
        task = self._person.start_task(workspace["id"], "Plan a release", "Plan a release")
        self._say(f"task: {task['title']}, its agent is running")
        live = self._asked("asked")
        first = self._answer(live, "live")
        until(
            lambda: self._received("live", first),
            "the agent's receipt of the live answer",
            PATIENCE_S,
            self._local.check,
        )
        self._say("received: the waiting agent has the live answer")
        later = self._asked("asked again")
        self._until_detached(later)
        second = self._answer(later, "detached")
        until(
            lambda: self._received("prompt", second),
            "the agent's receipt of the late answer",
            PATIENCE_S,
            self._local.check,
        )
        self._say("received: the agent has the late answer as a new prompt")
        self._until_idle(task["primary_session"])
        self._judge(first, second)

    def _asked(self, word: str) -> str:
        """Waits for the only open question and returns its pending id."""
        found = until(self._person.questions, "a question", PATIENCE_S, self._local.check)
        prompts = [question["prompt"] for question in found[0]["questions"]]
        self._say(f"{word}: {' '.join(prompts)}")
        return str(found[0]["pending_id"])

    def _answer(self, pending_id: str, how: str) -> str:
        """Picks the first option of every question, with a marker as text, and returns the marker."""
        marker = f"marker-{secrets.token_hex(8)}"
        questions = self._person.bundle(pending_id)["questions"]
        answers = [answer_of(question, marker if index == 0 else "") for index, question in enumerate(questions)]
        body = self._person.post(f"/clarification/{pending_id}/respond", {"answers": answers}, patience_s=30)
        if not (body["claimed"] and body["delivery"] == "delivered"):
            raise LocalError(f"the {how} answer was not delivered: {body}")
        self._say(f"answered {how}: {answers[0]['selected_options'][0]}, delivered")
        return marker

    def _until_detached(self, pending_id: str) -> None:
        def detached() -> bool:
            return bool(self._person.bundle(pending_id)["state"] == "active_detached")

        until(detached, "the end of the agent's wait", PATIENCE_S, self._local.check)
        self._say(f"detached: the agent's wait ended after {WAIT_S} s, the question stands")

    def _until_idle(self, session_id: str) -> None:
        def idle() -> bool:
            turns: list[Json] = self._person.get(f"/task-sessions/{session_id}/turns")["results"]
            return all(turn["completed_at"] for turn in turns)

        until(idle, "the end of the agent's turns", PATIENCE_S, self._local.check)
        self._say("idle: the agent has ended its turns")

    def _records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    def _received(self, how: str, marker: str) -> bool:
        return any(record["how"] == how and marker in json.dumps(record) for record in self._records())

    def _judge(self, first: str, second: str) -> None:
        """Exactly once each, by the agent's own record."""
        got = [(record["how"], json.dumps(record)) for record in self._records()]
        for how, marker in (("live", first), ("prompt", second)):
            ways = [way for way, text in got if marker in text]
            if ways != [how]:
                raise LocalError(
                    f"an answer reached the agent {len(ways)} times ({', '.join(ways)}), not once as {how}"
                )
        if len(got) != 2:
            raise LocalError(f"the agent received {len(got)} answers, not 2")
        self._say("done: both answers reached the agent exactly once")


def answer_of(question: Json, text: str) -> Json:
    options = [question["options"][0]["option_id"]]
    return {"question_id": question["question_id"], "selected_options": options, "custom_text": text}
