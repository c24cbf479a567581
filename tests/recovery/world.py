"""A session on real server processes, seen from outside: a runner, an agent, a person, and what they were told."""

import asyncio
import threading
import uuid
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2
import psycopg

from kandev.torture.runner import Frame, Runner, key_of
from tests.support.processes import Product, Server
from tests.support.threads import beside
from tests.support.waiting import until
from tests.support.web import LOCAL

T = TypeVar("T")
DEAD = (0, {"code": "connection_lost"})
GAUGES = ("kandev_outbox_events", "kandev_open_claims", "kandev_unsettled_dispatches", "kandev_open_watchdogs")
WAITERS = "kandev_waiters"
OPEN_TRANSACTIONS = """SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'"""
Told = tuple[int, dict[str, Any]]


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T], within: float = 30) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(within)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


def told(method: str, url: str, token: str, body: Any = None, timeout: float = 40) -> Told:
    """Status and body; DEAD when the connection was lost."""
    try:
        got = httpx2.request(
            method, url, json=body, headers={"Authorization": f"Bearer {token}"}, timeout=timeout, **LOCAL
        )
    except httpx2.TransportError:
        return DEAD
    return got.status_code, (got.json() if got.content else {})


def metrics(server: Server) -> dict[str, float]:
    """Every sample of `/metrics` by its name with labels; nothing of a server that is dead."""
    try:
        text = httpx2.get(f"{server.url}/metrics", timeout=10, **LOCAL).text
    except httpx2.TransportError:
        return {}
    read = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in read}


def questions(text: str = "") -> list[dict[str, Any]]:
    options = [{"option_id": f"o{n}", "label": f"Option {n}", "description": "one"} for n in (1, 2)]
    return [{"id": "q1", "prompt": f"Which one? {text or uuid.uuid4().hex[:8]}", "options": options}]


def answer(marker: str) -> dict[str, Any]:
    return {"answers": [{"question_id": "q1", "selected_options": ["o1"], "custom_text": marker}]}


@dataclass
class World:
    """`home` is the server that fails, `peer` the one that lives (the same when there is one process)."""

    product: Product
    home: Server
    peer: Server
    loop: Loop
    runner: Runner
    workspace: str = ""
    task: str = ""
    session: str = ""
    token: str = ""
    live: list[str] = field(default_factory=list)

    # --- setting the stage

    def begin(self) -> "World":
        """A session whose first turn runs."""
        self.workspace = self.owner("POST", "/workspaces", {"name": "w"})[1]["id"]
        made = self.owner("POST", "/tasks", {"workspace": self.workspace, "title": "t"})
        self.task = made[1]["id"]
        made = self.owner("POST", f"/tasks/{self.task}/task-sessions", {"agent": "demo", "is_primary": True})
        self.session = made[1]["id"]
        until(lambda: self.runner.connected, what="the runner is connected")
        status, body = self.say("first")
        assert status == 201, body
        return self

    def ask(self, server: Server | None = None, **body: Any) -> str:
        """The running agent asks; the pending id."""
        self.token = self.runner.prompts[-1]["mcp"]["token"]
        asked = {"session_id": self.session, "questions": questions(), **body}
        status, made = self.agent("POST", "/clarification/request", asked, server)
        assert status in (200, 201), made
        return str(made["pending_id"])

    def wait(self, pending_id: str, server: Server | None = None, timeout_s: float = 60) -> "Future[Told]":
        """The agent waits; what it is handed stands in `live`."""
        path = f"/clarification/{pending_id}/wait?timeout_s={timeout_s}"
        server = server or self.peer
        before = self.gauge(WAITERS, server)
        future = beside(self._waited, path, server)
        # The question alone counts as live for a moment: only the process itself says that it holds the wait.
        until(lambda: future.done() or self.gauge(WAITERS, server) > before, what="the wait is registered")
        return future

    def _waited(self, path: str, server: Server) -> Told:
        status, body = told("GET", f"{server.url}/api/v1{path}", self.token, timeout=90)
        if status == 200:
            self.live += [entry["custom_text"] for entry in body["answers"]]
        return status, body

    def detach(self) -> str:
        """A question whose turn has ended."""
        pending_id = self.ask()
        self.ready()
        until(lambda: self.state(pending_id) == "active_detached", what="the question is detached")
        return pending_id

    def freeze(self, server: Server) -> None:
        """Freezes a process outside of a write: one that holds a lock would stop whoever needs it."""
        other = self.home if server is self.peer else self.peer

        def frozen() -> bool:
            server.freeze()
            if self.owner("POST", "/workspaces", {"name": "can write"}, other)[0] == 201 and self._nothing_held():
                return True
            server.thaw()
            return False

        until(frozen, within=30, what="the process is frozen outside of a write")

    def _nothing_held(self) -> bool:
        """Whether no transaction of PostgreSQL stays open; those of processes that run pass."""
        if not self.product.database_url.startswith("postgres"):
            return True
        left: set[int] = set()
        with psycopg.connect(self.product.database_url, autocommit=True) as link:
            for number in range(20):
                open_now = {pid for (pid,) in link.execute(OPEN_TRANSACTIONS)}
                left = open_now if number == 0 else left & open_now
                if not left:
                    return True
                link.execute("SELECT pg_sleep(0.05)")
        return False

    # --- what people and agents do

    def owner(self, method: str, path: str, body: Any = None, server: Server | None = None) -> Told:
        return told(method, f"{(server or self.peer).url}/api/v1{path}", self.product.tokens["owner"], body)

    def agent(self, method: str, path: str, body: Any = None, server: Server | None = None) -> Told:
        return told(method, f"{(server or self.peer).url}/api/v1{path}", self.token, body)

    def respond(self, pending_id: str, body: Any, server: Server | None = None) -> Told:
        return self.owner("POST", f"/clarification/{pending_id}/respond", body, server or self.home)

    def say(self, text: str, key: str = "", server: Server | None = None) -> Told:
        body = {"content": text, "client_message_id": key or str(uuid.uuid4())}
        return self.owner("POST", f"/task-sessions/{self.session}/messages", body, server)

    def ready(self) -> None:
        """Every running prompt of the session ends normally."""
        key = self.runner.running.get(self.session)
        if key is not None:
            self.loop.call(self.runner.end(key))

    def message(self, text: str = "working") -> None:
        key = self.runner.running[self.session]
        self.loop.call(self.runner.message(key, text))

    # --- what can be seen

    def bundle(self, pending_id: str) -> dict[str, Any]:
        status, body = self.owner("GET", f"/clarification/{pending_id}")
        return body if status == 200 else {"state": f"{status}"}

    def state(self, pending_id: str) -> str:
        return str(self.bundle(pending_id)["state"])

    def settled(self, pending_id: str, within: float = 20) -> str:
        """The bundle's state once no hand-over is under way."""

        def resolved() -> str:
            state = self.state(pending_id)
            return "" if state in ("delivery_claimed", "0") else state

        return until(resolved, within=within, what="the claim is resolved")

    def turns(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.owner("GET", f"/task-sessions/{self.session}/turns")[1].get("results", [])
        return found

    def prompted(self, text: str) -> list[Frame]:
        return [frame for frame in list(self.runner.prompts) if text in frame["prompt"]]

    def received(self, marker: str) -> int:
        """How often the agent got this text, live or as a prompt."""
        return self.live.count(marker) + len(self.prompted(marker))

    def once(self, marker: str, within: float = 20) -> None:
        until(lambda: self.received(marker) == 1, within=within, what=f"{marker} was received once")

    # --- the promise of every row of group E

    def serves(self) -> None:
        """The session is not stuck: an ordinary message is taken once it is idle."""
        text = f"after-{uuid.uuid4().hex[:8]}"

        def sent() -> bool:
            self.ready()
            return self.say(text)[0] == 201

        until(sent, within=20, what="an ordinary message is taken")
        self.served(text)

    def served(self, text: str) -> None:
        """The prompt is given to the agent once; whatever runs before it ends."""

        def once() -> bool:
            self.ready()
            return len(self.prompted(text)) == 1

        until(once, within=20, what=f"the prompt {text} is served once")

    def tidy(self) -> None:
        """Nothing is left unsettled: no claim, dispatch or watchdog is open, every event is published."""

        def clean() -> bool:
            self.ready()
            return not any(self.unsettled().values())

        until(clean, within=30, every=0.2, what=f"everything is settled: {self.unsettled()}")

    def unsettled(self) -> dict[str, float]:
        """What is open, by the server's own metrics."""
        return {name: value for name, value in metrics(self.peer).items() if name.partition("{")[0] in GAUGES}

    def gauge(self, name: str, server: Server | None = None) -> float:
        """One gauge of a server; 0 when that one is dead."""
        return metrics(server or self.peer).get(name, 0)


def key(frame: Frame) -> tuple[str, str, int]:
    return key_of(frame)
