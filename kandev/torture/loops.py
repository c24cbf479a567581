"""Many ask-answer-receive loops while PostgreSQL restarts: what was acknowledged must be exactly what arrived.

Every agent waits over REST and insists, and so does the person who answers: a lost or refused try is repeated as it
was. Each loop has a mark of its own, so every copy of an answer is seen, wherever and however it arrives.
"""

import asyncio
import contextlib
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from kandev.torture.actors import mark
from kandev.torture.cluster import Cluster
from kandev.torture.history import MARK
from kandev.torture.rest import LOST, Client, Told
from kandev.torture.resting import settled
from kandev.torture.runner import Frame, Runner, key_of

Say = Callable[[str], object]
LANES, LOOPS_A_PROMPT, AGAIN_S = 12, 25, 0.15
# As an installation has them, but for what only holds tests up: the rates.
SETTINGS = {f"KANDEV_RATE_{name}": "1000000/m" for name in ("LOGIN", "TOKEN", "ANSWER")} | {"DEBUG": "0"}
AMBIGUOUS = ("dispatch_ambiguous", "dispatch_accepted_unpublished")
UNCLEAR = (LOST, 500, 502, 503)


class Ledger:
    """What the people were told and what the agents got."""

    def __init__(self) -> None:
        self.acknowledged: set[str] = set()
        self.refused: set[str] = set()
        self.ambiguous: set[str] = set()
        self.unsaid: set[str] = set()
        self.arrived: Counter[str] = Counter()
        self.fallbacks: Counter[str] = Counter()

    def got(self, text: str, *, fallback: bool = False) -> None:
        for found in dict.fromkeys(MARK.findall(text)):
            (self.fallbacks if fallback else self.arrived)[found] += 1

    def has(self, made: str) -> bool:
        return bool(self.arrived[made] or self.fallbacks[made])

    def violations(self) -> list[str]:
        """Exact equality, but for the one fallback that a delivery may have (R24), and those that were told to nobody
        to have been taken or not."""
        everything = {*self.arrived, *self.fallbacks}
        lost = [f"{made} was acknowledged and never arrived" for made in sorted(self.acknowledged - everything)]
        twice = [made for made in sorted(everything) if self.arrived[made] > 1 or self.fallbacks[made] > 1]
        unknown = sorted(everything - self.acknowledged - self.unsaid)
        return [
            *lost,
            *(f"{made} arrived {self.arrived[made]} times and {self.fallbacks[made]} as fallback" for made in twice),
            *(f"{made} arrived and was {'refused' if made in self.refused else 'never given'}" for made in unknown),
        ]

    def __str__(self) -> str:
        again = sum(1 for made in self.fallbacks if self.arrived[made])
        return (
            f"{len(self.acknowledged)} acknowledged, {len({*self.arrived, *self.fallbacks})} arrived "
            f"({sum(self.arrived.values())} copies, {again} once more as fallback), {len(self.refused)} refused, "
            f"{len(self.ambiguous)} were ambiguous for a while, {len(self.unsaid)} for good {sorted(self.unsaid)}"
        )


class Lane:
    """One session: its running prompt, and the prompts that a person writes to it whenever it is idle."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.frame: Frame | None = None
        self.left = 0


class Loops:
    """`run` returns what was violated. `pause` bounds the seconds between two restarts of the database."""

    def __init__(self, cluster: Cluster, seed: int, say: Say, pause: tuple[float, float] = (5.0, 40.0)) -> None:
        self._cluster, self._say, self._pause = cluster, say, pause
        self._random = Random(seed)
        self._client = Client([server.url for server in cluster.servers], Random(seed + 1), kept=50)
        self._ledger = Ledger()
        self._over = asyncio.Event()
        self._lanes: dict[str, Lane] = {}
        self._left = self._done = self._restarts = self._unclear = 0
        self._runner = Runner(self._client.urls, cluster.runner_token, self._prompted)

    async def run(self, loops: int, seconds: float | None) -> list[str]:
        """At most so many seconds, then what was done is judged."""
        self._left = loops
        self._runner.start()
        begun = time.monotonic()
        await self._set_stage()
        self._say(f"{len(self._lanes)} agents ask")
        trouble = asyncio.ensure_future(self._restart())
        try:
            if seconds is not None:
                asyncio.get_running_loop().call_later(seconds, self._enough)
            await asyncio.gather(*(self._work(lane) for lane in self._lanes.values()))
            self._over.set()
            await trouble
            took = time.monotonic() - begun
            unsettled = await settled(self._cluster, self._end_prompts)
        finally:
            self._over.set()
            await asyncio.gather(trouble, return_exceptions=True)  # a restart under way is never left alone
            await self._runner.stop()
            await self._client.close()
        self._say(
            f"{self._done} loops in {took:.0f} s, {self._restarts} restarts, {self._unclear} unclear replies: "
            f"{self._ledger}"
        )
        return [*unsettled, *self._ledger.violations()]

    def _enough(self) -> None:
        self._left = -LANES

    async def _set_stage(self) -> None:
        workspace = (await self._surely("POST", "/workspaces", {"name": "loops"}))["id"]
        for _ in range(LANES):
            task = await self._surely("POST", "/tasks", {"workspace": workspace, "title": "t"})
            made = await self._surely("POST", f"/tasks/{task['id']}/task-sessions", {"agent": "demo"})
            self._lanes[made["id"]] = Lane(made["id"])

    async def _restart(self) -> None:
        assert self._cluster.postgres is not None
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), self._random.uniform(*self._pause))
                return
            begun = time.monotonic()
            await asyncio.to_thread(self._cluster.postgres.restart)
            self._restarts += 1
            self._say(f"restart {self._restarts} took {time.monotonic() - begun:.1f} s; {self._done} loops are done")

    # --- one session

    def _prompted(self, frame: Frame) -> None:
        self._ledger.got(frame["prompt"], fallback=bool(frame.get("replaces")))
        lane = self._lanes[str(frame["session_id"])]
        lane.frame, lane.left = frame, LOOPS_A_PROMPT

    async def _work(self, lane: Lane) -> None:
        """Loops until all are taken; a prompt that has done its share ends, and the next message begins another one."""
        while self._left > 0:
            frame = lane.frame
            if frame is None or not self._runner.runs(key_of(frame)):
                await self._prompt(lane)
            elif lane.left <= 0:
                await self._runner.end(key_of(frame))
            else:
                self._left -= 1
                lane.left -= 1
                if await self._loop(frame):
                    self._done += 1
                else:
                    self._left += 1
        if lane.frame is not None:
            await self._runner.end(key_of(lane.frame))

    async def _prompt(self, lane: Lane) -> None:
        """A message to the idle session, sent until it is taken; then its prompt is waited for, as for any other."""
        before = lane.frame
        body = {"content": "go on", "client_message_id": uuid.uuid4().hex}
        for _ in range(200):
            told = await self._person("POST", f"/task-sessions/{lane.session}/messages", body)
            if told.status in (200, 201):
                break
            await self._again()
        for _ in range(200):
            if lane.frame is not before:
                return
            await asyncio.sleep(0.05)

    async def _loop(self, frame: Frame) -> bool:
        """Ask, answer, receive; False when nothing was acknowledged: the turn was over before."""
        made = mark()
        pending_id = await self._ask(frame, made)
        if pending_id is None:
            return False
        await asyncio.gather(self._receive(frame, pending_id, made), self._answer(pending_id, made))
        for _ in range(400):  # what did not arrive in the wait comes as a prompt
            if made not in self._ledger.acknowledged or self._ledger.has(made):
                break
            await asyncio.sleep(0.1)
        return made in self._ledger.acknowledged

    async def _ask(self, frame: Frame, made: str) -> str | None:
        option = {"option_id": "o1", "label": "Yes", "description": "d"}
        questions = [
            {"id": "q1", "prompt": f"And {made[5:]}?", "options": [option, option | {"option_id": "o2", "label": "No"}]}
        ]
        body = {"session_id": frame["session_id"], "questions": questions}
        while self._runner.runs(key_of(frame)):
            told = await self._agent(frame, "POST", "/clarification/request", body)
            if told.status in (200, 201):
                return str(told.body["pending_id"])
            if told.status not in UNCLEAR:
                return None
            await self._again()
        return None

    async def _receive(self, frame: Frame, pending_id: str, made: str) -> None:
        """Waits until the answer is there, or until it can only come as a prompt."""
        while self._runner.runs(key_of(frame)) and not self._ledger.has(made):
            told = await self._agent(frame, "GET", f"/clarification/{pending_id}/wait?timeout_s=60")
            if told.status == 200:
                self._runner.takes_result(key_of(frame))
                self._ledger.got(json.dumps(told.body))
                return
            if told.status not in UNCLEAR and told.body.get("code") != "timeout":
                return
            await self._again()

    async def _answer(self, pending_id: str, made: str) -> None:
        """Gives the same answer until it is clear what became of it; a try that was unclear is what makes it so."""
        entry = {"question_id": "q1", "selected_options": ["o1"], "custom_text": made}
        self._ledger.unsaid.add(made)
        for _ in range(600):
            told = await self._person("POST", f"/clarification/{pending_id}/respond", {"answers": [entry]})
            if told.code in AMBIGUOUS:
                self._ledger.ambiguous.add(made)
            delivery = told.body.get("delivery", "")
            if told.status not in UNCLEAR and delivery in ("", "delivered", "undelivered"):
                mine = delivery == "delivered" and made in json.dumps(told.body)
                (self._ledger.acknowledged if mine else self._ledger.refused).add(made)
                self._ledger.unsaid.discard(made)
                return
            self._unclear += 1
            await self._again()

    # --- rest

    async def _end_prompts(self) -> None:
        for key in list(self._runner.running.values()):
            await self._runner.end(key)

    async def _again(self) -> None:
        await asyncio.sleep(AGAIN_S * self._random.uniform(0.5, 2))

    async def _person(self, method: str, path: str, body: Any = None) -> Told:
        return await self._client.call(method, path, self._cluster.person, body, timeout_s=60)

    async def _agent(self, frame: Frame, method: str, path: str, body: Any = None) -> Told:
        return await self._client.call(method, path, frame["mcp"]["token"], body, timeout_s=90)

    async def _surely(self, method: str, path: str, body: Any) -> dict[str, Any]:
        """For setting the stage."""
        told = await self._person(method, path, body)
        if told.status not in (200, 201):
            raise AssertionError(f"{method} {path} was not taken: {told}")
        return told.body
