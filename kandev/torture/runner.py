"""A runner that keeps to the protocol and does nothing else: it takes prompts, journals them, and says what its owner
tells it to say. It outlives every server: it connects to whichever one of them listens.
"""

import asyncio
import contextlib
import json
import logging
import random
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

logger = logging.getLogger(__name__)
Frame = dict[str, Any]
Key = tuple[str, str, int]
RETRY_S = 0.15
IDS = ("session_id", "execution_id", "prompt_generation")


def key_of(frame: Frame) -> Key:
    return str(frame["session_id"]), str(frame["execution_id"]), int(frame["prompt_generation"])


class Runner:
    """`prompts` holds every prompt that was taken, once each. `replies` False: it hears everything and says nothing of
    dispatches; `refuses` rejects them; `deaf` stays away.
    """

    def __init__(
        self, urls: Sequence[str], token: str, on_prompt: Callable[[Frame], object], agent: str = "demo"
    ) -> None:
        self.urls, self.token, self.agent = list(urls), token, agent
        self.runner_id = f"torture-{uuid.uuid4()}"
        self.on_prompt = on_prompt
        self.prompts: list[Frame] = []
        self.seen: list[Frame] = []
        self.journal: dict[str, str] = {}
        self.running: dict[str, Key] = {}
        self.endings: dict[str, Frame] = {}
        self.took: set[tuple[str, int]] = set()
        self.replies, self.refuses, self.deaf, self.cancels = True, "", False, True
        self.slowness: Callable[[], float] = lambda: 0.0
        self._late: set[asyncio.Task[None]] = set()
        self.connections = 0
        self._socket: ClientConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._random = random.Random(self.runner_id)

    # --- connection

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._forever())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def connected(self) -> bool:
        return self._socket is not None

    async def drop(self) -> None:
        """The connection dies without a goodbye."""
        if self._socket is not None:
            self._socket.transport.abort()

    async def _forever(self) -> None:
        while True:
            urls = self._random.sample(self.urls, len(self.urls))
            for url in () if self.deaf else urls:
                with contextlib.suppress(OSError, WebSocketException, TimeoutError):
                    await self._serve(url)
            await asyncio.sleep(RETRY_S)

    async def _serve(self, url: str) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        where = url.replace("http", "ws", 1) + "/ws/runner/"
        async with connect(
            where, additional_headers=headers, open_timeout=5, close_timeout=0.5, ping_interval=None, proxy=None
        ) as socket:
            await socket.send(json.dumps(self._hello()))
            try:
                await self._read(socket)
            finally:
                self._socket = None

    def _hello(self) -> Frame:
        entries = [{"dispatch_id": pk, "outcome": outcome} for pk, outcome in self.journal.items()]
        return {
            "type": "hello",
            "runner_id": self.runner_id,
            "version": "torture",
            "agents": [self.agent],
            "max_sessions": 1000,
            "journal": entries,
        }

    async def _read(self, socket: ClientConnection) -> None:
        while True:
            async with asyncio.timeout(15):
                frame = json.loads(await socket.recv())
            if frame["type"] == "welcome":
                self._socket = socket
                self.connections += 1
                for ending in list(self.endings.values()):
                    await self.say(ending)
            else:
                await self._handle(frame)

    async def say(self, frame: Frame) -> bool:
        """Sends a frame if there is a connection; False when it was lost."""
        if self._socket is None:
            return False
        try:
            await self._socket.send(json.dumps(frame))
        except WebSocketException:
            return False
        return True

    # --- what the server says

    async def _handle(self, frame: Frame) -> None:
        if frame["type"] == "ping":
            await self.say({"type": "pong"})
            return
        if frame["type"] == "pong":
            return
        self.seen.append(frame)
        if frame["type"] == "dispatch":
            await self._dispatch(frame)
        elif frame["type"] == "revoke":
            await self._revoke(frame["dispatch_id"])
        elif frame["type"] == "cancel" and self.cancels:
            await self.end(key_of(frame), "cancelled")

    async def _dispatch(self, frame: Frame) -> None:
        pk = frame["dispatch_id"]
        if not self.replies:
            return
        if pk in self.journal:
            await self._word(pk)
            return
        code = self._refusal(frame)
        self.journal[pk] = "rejected" if code else "accepted"
        if code:
            await self.say({"type": "rejected", "dispatch_id": pk, "code": code, "reason": code})
            return
        self.running[frame["session_id"]] = key_of(frame)
        self.endings.pop(frame["session_id"], None)
        self.prompts.append(frame)
        late = asyncio.ensure_future(self._begin(frame, self.slowness()))
        self._late.add(late)
        late.add_done_callback(self._late.discard)

    async def _begin(self, frame: Frame, slowness: float) -> None:
        """Written down it is; the word and the agent may take their time."""
        if slowness:
            await asyncio.sleep(slowness)
        await self._word(frame["dispatch_id"])
        self.on_prompt(frame)

    def _refusal(self, frame: Frame) -> str:
        replaced = frame.get("replaces")
        if replaced and (replaced["execution_id"], replaced["prompt_generation"]) in self.took:
            return "already_received"
        return self.refuses

    async def _revoke(self, pk: str) -> None:
        self.journal.setdefault(pk, "revoked")
        if self.replies:
            await self._word(pk)

    async def _word(self, pk: str) -> None:
        await self.say({"type": self.journal[pk], "dispatch_id": pk})

    # --- what the agent does

    def runs(self, key: Key) -> bool:
        return self.running.get(key[0]) == key

    def takes_result(self, key: Key) -> None:
        """The prompt has taken its tool's result: a fallback for it is rejected from now on (R24)."""
        self.took.add((key[1], key[2]))

    async def message(self, key: Key, content: str) -> bool:
        named = dict(zip(IDS, key, strict=True))
        return await self.say({"type": "frame", **named, "kind": "message", "content": content, "data": {}})

    async def end(self, key: Key, kind: str = "ready", **more: Any) -> None:
        """Ends the prompt; said again on every new connection until the session's next prompt, as runners do."""
        if not self.runs(key):
            return
        del self.running[key[0]]
        frame = {"type": kind, **dict(zip(IDS, key, strict=True)), **({"stop_reason": "end_turn"} | more)}
        self.endings[key[0]] = frame
        await self.say(frame)
