"""What a runner meets, scripted: the server's end of `/ws/runner/` and the MCP endpoint of a dispatch."""

import asyncio
import contextlib
import http
import itertools
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from starlette.types import ASGIApp, Receive, Scope, Send
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from turns.runner import cli
from turns.runner.frames import Frame
from turns.runner.journal import Journal
from turns.runner.permissions import FixedPolicy
from turns.runner.sessions import Setup

TOKEN = "kdv_run_test"
DEMO = [sys.executable, "-m", "kandev.demo.agent"]
SCRIPTED = [sys.executable, "-m", "tests.runner.scripted_agent"]
ROOT = Path(__file__).resolve().parent.parent.parent
WAIT_S = 20


class FakeServer:
    """Takes any number of connections, one after the other. `expect` waits for frames, each of which it gives once."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.tokens: list[str | None] = []
        self.refuse: http.HTTPStatus | None = None
        self.welcome = True
        self._changed = asyncio.Condition()
        self.connection: ServerConnection | None = None
        self._numbers = itertools.count(1)
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator["FakeServer"]:
        async with serve(self._serve, "127.0.0.1", 0, process_request=self._check, ping_interval=None) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            self.url = f"http://127.0.0.1:{port}"
            yield self

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        self.tokens.append(request.headers.get("Authorization"))
        return connection.respond(self.refuse, "no\n") if self.refuse else None

    async def _serve(self, connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for text in connection:
                frame = json.loads(text)
                if frame["type"] == "hello":
                    self.connection = connection
                    if self.welcome:
                        await self.send("welcome", instance="test", ping_s=20)
                async with self._changed:
                    self.frames.append(frame)
                    self._changed.notify_all()

    async def expect(self, type_: str, where: Callable[[Frame], bool] = lambda frame: True, **fields: Any) -> Frame:
        """The first frame of this type with these fields that no earlier call has taken."""

        def find() -> Frame | None:
            for frame in self.frames:
                if frame["type"] == type_ and fields.items() <= frame.items() and where(frame):
                    return frame
            return None

        try:
            async with asyncio.timeout(WAIT_S), self._changed:
                await self._changed.wait_for(lambda: find() is not None)
        except TimeoutError:
            raise AssertionError(f"no {type_} with {fields} came; there are {self.frames}") from None
        frame = find()
        assert frame is not None
        self.frames.remove(frame)
        return frame

    async def message(self, part: str) -> Frame:
        return await self.expect("frame", lambda frame: part in frame["content"], kind="message")

    async def send(self, type_: str, **fields: Any) -> None:
        assert self.connection is not None
        await self.connection.send(json.dumps({"type": type_, **fields}))

    async def drop(self) -> None:
        """The connection dies without a goodbye."""
        assert self.connection is not None
        self.connection.transport.abort()
        await self.connection.wait_closed()

    def dispatch_frame(self, prompt: str, session: str = "s1", **over: Any) -> Frame:
        number = next(self._numbers)
        ids = {"dispatch_id": f"d{number}", "task_id": "t1", "session_id": session, "turn_id": f"turn{number}"}
        execution = {"execution_id": f"x-{session}", "prompt_generation": number, "agent": "demo", "prompt": prompt}
        mcp = {"url": "http://127.0.0.1:9/mcp/session", "token": f"kdv_ses_{number}"}
        return {"type": "dispatch", **ids, **execution, "mcp": mcp, **over}

    async def dispatch(self, prompt: str, session: str = "s1", **over: Any) -> Frame:
        frame = self.dispatch_frame(prompt, session, **over)
        await self.again(frame)
        return frame

    async def again(self, frame: Frame) -> None:
        assert self.connection is not None
        await self.connection.send(json.dumps(frame))

    async def ping(self) -> None:
        """Back when the runner has handled everything that was sent before."""
        await self.send("ping")
        await self.expect("pong")


def ids(frame: Frame) -> Frame:
    return {name: frame[name] for name in ("session_id", "execution_id", "prompt_generation")}


class FakeMcp:
    """An MCP endpoint with the question tool. Each call waits until the test answers it."""

    def __init__(self) -> None:
        self.calls: asyncio.Queue[Call] = asyncio.Queue()
        self.tokens: list[str] = []
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator["FakeMcp"]:
        server = Server("scripted", on_list_tools=self._list, on_call_tool=self._call)
        app = self._noting_tokens(server.streamable_http_app(stateless_http=True))
        config = uvicorn.Config(app, "127.0.0.1", 0, log_level="error", lifespan="on", timeout_graceful_shutdown=1)
        running = uvicorn.Server(config)
        listening = socket.create_server(("127.0.0.1", 0))
        task = asyncio.create_task(running._serve([listening]))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        try:
            yield self
        finally:
            running.should_exit = True
            await task

    def _noting_tokens(self, app: ASGIApp) -> ASGIApp:
        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            headers = dict(scope.get("headers") or [])
            if header := headers.get(b"authorization"):
                self.tokens.append(header.decode())
            await app(scope, receive, send)

        return noting

    async def _list(self, ctx: ServerRequestContext, params: Any) -> types.ListToolsResult:
        tool = types.Tool(name="ask_user_question_kandev", description="asks", input_schema={"type": "object"})
        return types.ListToolsResult(tools=[tool])

    async def _call(self, ctx: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        call = Call(ctx, params.arguments or {})
        await self.calls.put(call)
        try:
            return await call.result
        except asyncio.CancelledError:
            call.cancelled.set()
            raise

    async def next(self) -> "Call":
        async with asyncio.timeout(WAIT_S):
            return await self.calls.get()


class Call:
    def __init__(self, ctx: ServerRequestContext, arguments: dict[str, Any]) -> None:
        self.ctx, self.arguments = ctx, arguments
        self.cancelled = asyncio.Event()
        self.result: asyncio.Future[types.CallToolResult] = asyncio.get_running_loop().create_future()

    def answer(self, data: dict[str, Any]) -> None:
        text = types.TextContent(type="text", text=json.dumps(data))
        self.result.set_result(types.CallToolResult(content=[text], structured_content=data))

    def fail(self, why: str) -> None:
        text = types.TextContent(type="text", text=why)
        self.result.set_result(types.CallToolResult(content=[text], is_error=True))


@asynccontextmanager
async def runner(server: FakeServer, folder: Path, policy: str = "allow", **setup: Any) -> AsyncIterator[Journal]:
    """A runner in this process, with real agent processes; its journal is the one in `folder`."""
    setup.setdefault("agents", {"demo": DEMO, "scripted": SCRIPTED})
    journal, stop = Journal(folder / "journal.sqlite3"), asyncio.Event()
    made = Setup(workdir=ROOT, policy=FixedPolicy(policy), **setup)
    task = asyncio.create_task(cli.serve(server.url, TOKEN, made, journal, stop))
    try:
        yield journal
    finally:
        stop.set()
        await task
        journal.close()
