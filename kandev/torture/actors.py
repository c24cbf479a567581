"""Those who use the servers while these fail: agents that ask, people who answer and write, pages that watch."""

import asyncio
import contextlib
import json
import uuid
from random import Random
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from kandev.torture.history import Answer, History, Message
from kandev.torture.rest import LAST_WORDS_S, LOST, Client, Told
from kandev.torture.runner import Frame, Key, Runner, key_of

TRIES = 4


def mark() -> str:
    return f"mark-{uuid.uuid4().hex[:12]}"


class Agents:
    """What runs in the runner's prompts: asks (REST or MCP), waits, hangs up, asks the same again, ends."""

    def __init__(self, client: Client, history: History, random: Random) -> None:
        self._client, self._history, self._random = client, history, random
        self.runner: Runner
        self.asks = True
        self._tasks: set[asyncio.Task[None]] = set()

    def prompted(self, frame: Frame) -> None:
        self._history.prompt(frame)
        task = asyncio.ensure_future(self._run(frame))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def finish(self) -> None:
        """Nobody asks any more: open calls are hung up and their prompts end."""
        self.asks = False
        self._client.hang_up.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2 * LAST_WORDS_S)
        self._client.hang_up.clear()
        await self.stop()
        for key in list(self.runner.running.values()):
            await self.runner.end(key)

    async def _run(self, frame: Frame) -> None:
        key = key_of(frame)
        await asyncio.sleep(self._random.uniform(0, 0.1))
        if self.asks and self._random.random() < 0.85:
            await self._ask(frame, key)
        elif self._random.random() < 0.5:
            await self.runner.message(key, "done")
        await self.runner.end(key)

    async def _ask(self, frame: Frame, key: Key) -> None:
        """Asks until it was answered, told off, or has lost its patience; the same questions join (R19)."""
        number = self._random.randint(1, 3)
        tag = uuid.uuid4().hex[:8]
        questions = [
            {
                "id": f"q{n}",
                "prompt": f"What about {tag} {n}?",
                "options": [{"option_id": f"q{n}o{m}", "label": f"L{m}", "description": "d"} for m in (1, 2)],
            }
            for n in range(1, number + 1)
        ]
        over_mcp = self._random.random() < 0.3
        for _ in range(TRIES):
            if not self.asks or not self.runner.runs(key):
                return
            told = await (self._by_mcp if over_mcp else self._by_rest)(frame, questions)
            if told.status == 200:
                self.runner.takes_result(key)
                self._history.live(json.dumps(told.body), key[0])
                await self.runner.message(key, "understood")
                return
            if told.status not in (LOST, 503) or (told.status == LOST and self._random.random() < 0.5):
                return  # not every agent asks again: the rest is the fallback's
            await asyncio.sleep(self._random.uniform(0.05, 0.4))

    async def _by_mcp(self, frame: Frame, questions: list[dict[str, Any]]) -> Told:
        token, patience = frame["mcp"]["token"], self._random.uniform(0.5, 8)
        told = await self._client.tool(
            "/mcp/session", token, "ask_user_question_kandev", {"questions": questions}, patience
        )
        again = told.status == 400 and "temporarily_unavailable" in str(told.body)
        return Told(503, told.body) if again else told

    async def _by_rest(self, frame: Frame, questions: list[dict[str, Any]]) -> Told:
        token = frame["mcp"]["token"]
        body = {"session_id": frame["session_id"], "questions": questions}
        asked = await self._client.call("POST", "/clarification/request", token, body)
        if asked.status not in (200, 201):
            return asked
        await asyncio.sleep(self._random.choice((0, 0, 0, 0.3, 6)))
        limit = self._random.choice((0.5, 2, 5, 30))
        patience = self._random.choice((0.3, 10, 40, 40))
        return await self._client.wait(asked.body["pending_id"], token, limit, patience)


class People:
    """Answer what is open (twice at once, too), skip, cancel, write messages, end sessions."""

    def __init__(self, client: Client, history: History, random: Random, token: str) -> None:
        self._client, self._history, self._random, self._token = client, history, random, token
        self.sessions: list[str] = []
        self.workspace = ""
        self.rivals: tuple[int, ...] = (1, 1, 2, 3)  # how many answer one request at once
        self.late = 0.3  # how often somebody comes when all is settled

    async def call(self, method: str, path: str, body: Any = None) -> Told:
        return await self._client.call(method, path, self._token, body)

    async def surely(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """For setting the stage: tried until it is done."""
        for _ in range(300):
            told = await self.call(method, path, body)
            if told.status in (200, 201):
                return told.body
            await asyncio.sleep(0.2)
        raise AssertionError(f"{method} {path} was never taken: {told}")

    async def new_session(self) -> str:
        task = await self.surely("POST", "/tasks", {"workspace": self.workspace, "title": "t"})
        made = await self.surely("POST", f"/tasks/{task['id']}/task-sessions", {"agent": "demo", "is_primary": True})
        self.sessions.append(made["id"])
        return str(made["id"])

    async def live(self) -> None:
        """Goes on until it is cancelled."""
        while True:
            await asyncio.sleep(self._random.uniform(0.02, 0.25))
            dice = self._random.random()
            if dice < 0.6:
                await self._answer_something()
            elif dice < 0.985:
                await self.write(self._random.choice(self.sessions))
            else:
                await self._end_one()

    async def _answer_something(self) -> None:
        listed = await self.call("GET", f"/clarifications?workspace_id={self.workspace}")
        found = listed.body.get("bundles", [])
        if listed.status != 200 or not found:
            return
        bundle = self._random.choice(found)
        if self._random.random() < 0.03:
            await self.call("POST", f"/clarification/{bundle['pending_id']}/cancel", {})
            return
        rivals = self._random.choice(self.rivals)
        await asyncio.gather(*(self.answer(bundle) for _ in range(rivals)))
        if self._random.random() < self.late:
            await asyncio.sleep(self._random.uniform(0, 1))
            await self.answer(bundle)

    async def answer(self, bundle: dict[str, Any]) -> Told:
        made, rejects = mark(), self._random.random() < 0.12
        body = {"rejected": True, "reject_reason": made} if rejects else {"answers": _entries(bundle, made)}
        if self._random.random() < 0.25:
            told = await self._answer_by_mcp(bundle["pending_id"], body, made, rejects)
        else:
            told = await self.call("POST", f"/clarification/{bundle['pending_id']}/respond", body)
        self._history.answers.append(Answer(made, bundle["pending_id"], bundle["session_id"], rejects, told))
        return told

    async def _answer_by_mcp(self, pending_id: str, body: dict[str, Any], made: str, rejects: bool) -> Told:
        arguments = {"pending_id": pending_id, **({"rejected": True, "reason": made} if rejects else body)}
        told = await self._client.tool("/mcp", self._token, "answer_question_kandev", arguments)
        # A tool's error says it in words; what it surely means is not judged.
        return told if told.status != 400 else Told(499, told.body)

    async def write(self, session: str, tries: int = 3) -> Message:
        """One message; a lost or refused try is repeated with the same client id."""
        message = Message(mark(), session)
        self._history.messages.append(message)
        body = {"content": f"please {message.mark}", "client_message_id": message.mark}
        for _ in range(tries):
            message.told = await self.call("POST", f"/task-sessions/{session}/messages", body)
            if message.told.status not in (LOST, 503):
                break
            await asyncio.sleep(0.3)
        return message

    async def _end_one(self) -> None:
        """One session ends, another takes its place."""
        if len(self.sessions) < 3:
            return
        session = self.sessions.pop(self._random.randrange(len(self.sessions)))
        self._history.ended.add(session)
        await self.call("POST", f"/task-sessions/{session}/{self._random.choice(('cancel', 'complete'))}", {})
        await self.new_session()


def _entries(bundle: dict[str, Any], made: str) -> list[dict[str, Any]]:
    return [
        {
            "question_id": question["question_id"],
            "selected_options": [question["options"][0]["option_id"]],
            "custom_text": made,
        }
        for question in bundle["questions"]
    ]


class Page:
    """A socket that follows the workspace, connecting anew whenever it is lost."""

    def __init__(self, url: str, token: str, workspace: str, history: History) -> None:
        self._url, self._token, self._workspace, self._history = url, token, workspace, history

    async def watch(self) -> None:
        where = self._url.replace("http", "ws", 1) + "/ws/"
        headers = {"Authorization": f"Bearer {self._token}"}
        while True:
            with contextlib.suppress(OSError, WebSocketException, TimeoutError):
                async with connect(
                    where, additional_headers=headers, open_timeout=5, close_timeout=0.5, proxy=None
                ) as link:
                    ask = {"id": 1, "type": "request", "action": "subscribe"}
                    await link.send(json.dumps(ask | {"payload": {"workspace_id": self._workspace}}))
                    async for text in link:
                        self._read(json.loads(text))
            await asyncio.sleep(0.2)

    def _read(self, envelope: dict[str, Any]) -> None:
        payload = envelope.get("payload") or {}
        for part in (payload, *payload.get("sessions", [])):
            if "pending_action_revision" in part and "pending_action" in part:
                self._history.projection(part["session_id"], part["pending_action_revision"], part["pending_action"])
