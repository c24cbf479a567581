"""One run: a stage is set, trouble is made for a while in rounds, then everything is mended and must come to rest."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from random import Random

from kandev.torture.actors import Agents, Page, People
from kandev.torture.cluster import Cluster, Server
from kandev.torture.history import History
from kandev.torture.rest import Client
from kandev.torture.resting import settled
from kandev.torture.runner import Runner
from tasks import failpoints

Say = Callable[[str], object]
SESSIONS, PERSONS, ROUND_S, STOP_S = 5, 4, 12.0, 12.0
POINTS = tuple(name for name in failpoints.NAMES if not name.startswith("recovery."))

# Where a process must die for the damage to show, when a guard was taken away.
AIMS = {
    "proof_before_undo": "dispatch.after_attempt",
    "watchdog": "live.after_confirm",
    "claim_recovery": "respond.after_claim",
}


class Drill:
    """`run` returns what was violated; an empty list is a clean run. A second winner ends the trouble at once."""

    def __init__(self, cluster: Cluster, seed: int, say: Say, broken: str = "") -> None:
        self._cluster, self._say = cluster, say
        self._points = (AIMS[broken],) if broken in AIMS else POINTS
        self._slow = 0.8 if broken == "proof_before_undo" else 0.1
        self._random = Random(seed)
        self._history = History()
        self._client = Client([], Random(seed + 1))
        self._agents = Agents(self._client, self._history, Random(seed + 2))
        self._people = People(self._client, self._history, Random(seed + 3), "")
        if broken == "one_winner":
            self._people.rivals, self._people.late = (2, 3), 1.0
        self._runner: Runner
        self._unstopped: list[str] = []

    async def run(self, rounds: int, seconds: float | None) -> list[str]:
        await self._set_stage()
        until = time.monotonic() + (seconds if seconds is not None else rounds * ROUND_S)
        crowd = [asyncio.ensure_future(self._people.live()) for _ in range(PERSONS)]
        pages = [asyncio.ensure_future(self._page(server).watch()) for server in self._cluster.servers]
        try:
            while time.monotonic() < until and not self._history.winners():
                await self._trouble()
            violated = await self._come_to_rest(crowd)
        finally:
            for task in (*crowd, *pages):
                task.cancel()
            await asyncio.gather(*crowd, *pages, return_exceptions=True)
            await self._agents.stop()
            await self._runner.stop()
            await self._client.close()
        return violated

    async def _set_stage(self) -> None:
        urls = [server.url for server in self._cluster.servers]
        self._client.urls = urls
        self._people._token = self._cluster.person  # noqa: SLF001 - known only now
        self._runner = self._agents.runner = Runner(urls, self._cluster.runner_token, self._agents.prompted)
        self._runner.slowness = self._slowness
        self._runner.start()
        self._people.workspace = (await self._people.surely("POST", "/workspaces", {"name": "torture"}))["id"]
        for _ in range(SESSIONS):
            await self._people.write(await self._people.new_session())

    def _slowness(self) -> float:
        """Most words come at once; some nearly too late, or too late."""
        return self._random.uniform(0.5, 5.0) if self._random.random() < self._slow else 0.0

    def _page(self, server: Server) -> Page:
        return Page(server.url, self._cluster.person, self._people.workspace, self._history)

    # --- trouble

    async def _trouble(self) -> None:
        server = self._random.choice(self._cluster.servers)
        kinds: list[tuple[str, Callable[[Server], object]]] = [
            ("kill", self._kill),
            ("failpoint", self._failpoint),
            ("failpoint", self._failpoint),
            ("freeze", self._freeze),
            ("stop", self._stop),
            ("runner", self._drop_runner),
        ]
        kinds += [("redis", self._cut_redis)] if self._cluster.redis else []
        kinds += [("postgres", self._restart_postgres)] if self._cluster.postgres else []
        name, make = self._random.choice(kinds)
        self._say(f"trouble: {name} of {server.port}")
        made = make(server)
        assert asyncio.iscoroutine(made)
        await made
        await asyncio.sleep(self._random.uniform(0.5, 4.0))

    async def _kill(self, server: Server) -> None:
        await server.kill()
        await asyncio.sleep(self._random.uniform(0, 2))
        server.start()
        await server.ready()

    async def _failpoint(self, server: Server) -> None:
        """The server lives until it passes a point; if it never does, it goes on."""
        await server.kill()
        point = f"{self._random.choice(self._points)}:{self._random.randint(1, 3)}"
        server.start(point)
        with contextlib.suppress(TimeoutError):
            await server.ended(self._random.uniform(6, 9))
        await server.kill()
        server.start()
        await server.ready()

    async def _freeze(self, server: Server) -> None:
        server.signal(signal.SIGSTOP)
        await asyncio.sleep(self._random.choice((0.5, 2.0, 6.0)))
        server.signal(signal.SIGCONT)

    async def _stop(self, server: Server) -> None:
        server.signal(signal.SIGTERM)
        try:
            await server.ended(STOP_S)
        except TimeoutError:
            self._unstopped.append(f"server {server.port} had not ended {STOP_S:g} s after SIGTERM")
            server.signal(signal.SIGABRT)  # its log shows what its threads were doing
            await server.ended()
        server.start()
        await server.ready()

    async def _drop_runner(self, server: Server) -> None:
        await self._runner.drop()

    async def _cut_redis(self, server: Server) -> None:
        assert self._cluster.redis is not None
        self._cluster.redis.stop()
        await asyncio.sleep(self._random.uniform(0.2, 3))
        self._cluster.redis.start()

    async def _restart_postgres(self, server: Server) -> None:
        assert self._cluster.postgres is not None
        await asyncio.to_thread(self._cluster.postgres.restart)

    # --- rest

    async def _come_to_rest(self, crowd: list["asyncio.Task[None]"]) -> list[str]:
        await self._cluster.all_up()
        for task in crowd:
            task.cancel()
        for outcome in await asyncio.gather(*crowd, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        await self._agents.finish()
        self._say("rest: everything runs, nobody asks any more")
        unsettled = await settled(self._cluster)
        stuck = [] if unsettled else await self._serves()
        stale = [] if unsettled or stuck else [*await self._agree(), *await self._standing()]
        self._say(
            f"history: {len(self._history.answers)} answers, {len(self._history.messages)} messages, "
            f"{len(self._history.receipts)} receipts"
        )
        return [*self._unstopped, *unsettled, *stuck, *stale, *self._history.violations()]

    async def _serves(self) -> list[str]:
        """Every session takes a message and its agent gets it."""
        sent = await asyncio.gather(*(self._people.write(session, 20) for session in self._people.sessions))
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not all(self._history.count(m.mark)[0] for m in sent):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        return [f"session {m.session} is stuck: {m.told}" for m in sent if not self._history.count(m.mark)[0]]

    async def _agree(self) -> list[str]:
        """Pages that stayed open show what REST says."""
        wrong: list[str] = []
        for _ in range(40):
            wrong = []
            for session in self._people.sessions:
                told = await self._people.surely("GET", f"/task-sessions/{session}")
                stale = self._history.stale(session, told["pending_action_revision"], told["pending_action"])
                wrong += [stale] if stale else []
            if not wrong:
                break
            await asyncio.sleep(0.25)
        return wrong

    async def _standing(self) -> list[str]:
        """What stands as answered was received, whoever gave it and whatever they were told."""
        bundles = {a.pending_id for a in self._history.answers if a.session not in self._history.ended}
        wrong: list[str] = []
        for pending_id in sorted(bundles):
            told = await self._people.call("GET", f"/clarification/{pending_id}")
            lost = self._history.unreceived(pending_id, told.body if told.status == 200 else {})
            # A claim that was beaten by a newer turn stands, and says of itself that it never arrived (R7).
            if lost and (await self._people.answer(told.body)).body.get("delivery") != "undelivered":
                wrong += lost
        return wrong
