"""What a browser test plays with: a workspace with one task, a scripted runner, and its agent over REST."""

import json
import threading
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx2
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.support.waiting import until
from tests.support.web import LOCAL

Json = dict[str, Any]
API = "/api/v1"

ONE: list[Json] = [
    {
        "id": "db",
        "title": "Database",
        "prompt": "Which database?",
        "options": [
            {"option_id": "pg", "label": "PostgreSQL", "description": "What we run.", "recommended": True},
            {"option_id": "lite", "label": "SQLite", "description": "One file."},
        ],
    }
]
TWO: list[Json] = [
    *ONE,
    {
        "id": "checks",
        "prompt": "Which checks?",
        "multi_select": True,
        "options": [
            {"option_id": "unit", "label": "Unit tests", "description": "Two minutes."},
            {"option_id": "types", "label": "Type check", "description": "Strict."},
            {"option_id": "load", "label": "Load test", "description": "An hour."},
        ],
    },
]


class Caller:
    """REST with one token."""

    def __init__(self, url: str, token: str) -> None:
        self.http = httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60, **LOCAL)

    def call(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
        answer = self.http.request(method, f"{API}{path}", json=body)
        return answer.status_code, answer.json() if answer.content else {}

    def post(self, path: str, body: Json | None = None) -> Json:
        status, found = self.call("POST", path, body or {})
        assert status in (200, 201), (status, found)
        return found

    def get(self, path: str) -> Json:
        status, found = self.call("GET", path)
        assert status == 200, (status, found)
        return found


class Runner:
    """A runner that accepts every dispatch, unless `refusing`, and does nothing of its own accord."""

    def __init__(self, url: str, token: str) -> None:
        self.dispatches: list[Json] = []
        self.decisions: list[Json] = []
        self.refusing = False
        header = {"Authorization": f"Bearer {token}"}
        self._open = ExitStack()
        link = connect(url.replace("http", "ws", 1) + "/ws/runner/", additional_headers=header)
        self._socket = self._open.enter_context(link)
        self.welcomed = threading.Event()
        self._send(
            type="hello", runner_id=str(uuid.uuid4()), version="test", agents=["demo"], max_sessions=9, journal=[]
        )
        threading.Thread(target=self._read, daemon=True).start()
        assert self.welcomed.wait(10)

    def close(self) -> None:
        self._open.close()

    def finish(self, dispatch: Json, stop_reason: str = "end_turn") -> None:
        self._send(type="ready", stop_reason=stop_reason, **self._whose(dispatch))

    def say(self, dispatch: Json, text: str) -> None:
        self._send(type="frame", kind="message", content=text, data={}, **self._whose(dispatch))

    def ask_permission(self, dispatch: Json, request_id: str, options: list[Json]) -> None:
        said = {"request_id": request_id, "title": "Delete the old backups", "tool": {"kind": "delete"}}
        self._send(type="permission", options=options, **said, **self._whose(dispatch))

    def decided(self, number: int = 1) -> str | None:
        """The option of the `number`-th decision, as soon as it is there."""
        until(lambda: len(self.decisions) >= number, what=f"decision {number}")
        found: str | None = self.decisions[number - 1]["option_id"]
        return found

    def dispatched(self, number: int = 1) -> Json:
        """The `number`-th dispatch, as soon as it is there."""
        until(lambda: len(self.dispatches) >= number, what=f"dispatch {number}")
        return self.dispatches[number - 1]

    def _whose(self, dispatch: Json) -> Json:
        return {key: dispatch[key] for key in ("session_id", "execution_id", "prompt_generation")}

    def _send(self, **frame: Any) -> None:
        self._socket.send(json.dumps(frame))

    def _read(self) -> None:
        try:
            for text in self._socket:
                self._take(json.loads(text))
        except ConnectionClosed:
            return

    def _take(self, frame: Json) -> None:
        match frame["type"]:
            case "welcome":
                self.welcomed.set()
            case "ping":
                self._send(type="pong")
            case "dispatch" if self.refusing:
                self._send(type="rejected", dispatch_id=frame["dispatch_id"], code="busy", reason="no room")
            case "dispatch":
                self._send(type="accepted", dispatch_id=frame["dispatch_id"])
                self.dispatches.append(frame)
            case "permission_answer":
                self.decisions.append(frame)
            case "revoke":
                self._send(type="revoked", dispatch_id=frame["dispatch_id"])
            case "cancel":
                self._send(type="cancelled", **{**self._whose(frame), "reason": frame.get("reason", "")})


class Stage:
    """One task whose session runs: `agent` may ask."""

    def __init__(self, url: str, tokens: dict[str, str]) -> None:
        self.url, self.owner = url, Caller(url, tokens["owner"])
        self.answerer = Caller(url, tokens["answerer"])
        self.runner = Runner(url, tokens["runner-1"])
        members = [{"user": "answerer", "role": "answerer"}, {"user": "viewer", "role": "viewer"}]
        self.workspace = self.owner.post("/workspaces", {"name": "Stage", "owner": "owner", "members": members})["id"]
        self.task = self.new_task("Move the billing")
        self.session = self.owner.post(f"/tasks/{self.task}/task-sessions", {"agent": "demo"})["id"]
        self.prompt(self.session, "Go")
        self.dispatch = self.runner.dispatched()
        self.agent = Caller(url, self.dispatch["mcp"]["token"])
        self._pool = ThreadPoolExecutor(8)

    def close(self) -> None:
        """The session's end lets every waiting agent go."""
        self.owner.call("POST", f"/task-sessions/{self.session}/cancel", {})
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.runner.close()
        for caller in (self.owner, self.answerer, self.agent):
            caller.http.close()

    def new_task(self, title: str) -> str:
        return str(self.owner.post("/tasks", {"workspace": self.workspace, "title": title})["id"])

    def prompt(self, session: str, text: str) -> Json:
        return self.owner.post(
            f"/task-sessions/{session}/messages", {"content": text, "client_message_id": str(uuid.uuid4())}
        )

    def ask(self, questions: list[Json] = ONE, context: str = "") -> str:
        body = {"session_id": self.session, "questions": questions, "context": context}
        return str(self.agent.post("/clarification/request", body)["pending_id"])

    def wait(self, pending_id: str) -> "Future[tuple[int, Json]]":
        """The agent waits, in a thread of its own."""
        return self._pool.submit(self.agent.call, "GET", f"/clarification/{pending_id}/wait?timeout_s=50")

    def bundle(self, pending_id: str) -> Json:
        return self.owner.get(f"/clarification/{pending_id}")

    def user_messages(self) -> list[str]:
        found = self.owner.get(f"/task-sessions/{self.session}/messages")["results"]
        return [row["content"] for row in found if row["author_type"] == "user"]

    def task_url(self, session: str | None = None) -> str:
        return f"{self.url}/tasks/{self.task}?session={session or self.session}"
