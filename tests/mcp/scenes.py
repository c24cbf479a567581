"""A running session with a runner of the test behind it, and clients of MCP: the SDK's own, and raw HTTP."""

import asyncio
import json
import socket
import struct
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.support.processes import Product, Server
from tests.support.waiting import until
from tests.support.web import LOCAL

ASK, LIST, ANSWER, TASKS = (
    "ask_user_question_kandev",
    "list_pending_questions_kandev",
    "answer_question_kandev",
    "list_tasks_kandev",
)
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class Runner:
    """Takes every dispatch and acknowledges every cancel; `dispatches` gives each frame once."""

    def __init__(self, server: Server, token: str, agent: str) -> None:
        self.dispatches: Queue[dict[str, Any]] = Queue()
        self.newest: dict[str, Any] = {}
        url, headers = server.url.replace("http", "ws") + "/ws/runner/", {"Authorization": f"Bearer {token}"}
        self._open = ExitStack()
        self._socket = self._open.enter_context(connect(url, additional_headers=headers))
        self._send(
            type="hello", runner_id=f"runner-{uuid.uuid4()}", version="1", agents=[agent], max_sessions=99, journal=[]
        )
        assert json.loads(self._socket.recv())["type"] == "welcome"
        threading.Thread(target=self._read, daemon=True).start()

    def close(self) -> None:
        self._open.close()

    def ready(self) -> None:
        """The newest prompt is through."""
        named = ("session_id", "execution_id", "prompt_generation")
        self._send(type="ready", stop_reason="end_turn", **{name: self.newest[name] for name in named})

    def _send(self, **frame: Any) -> None:
        self._socket.send(json.dumps(frame))

    def _read(self) -> None:
        try:
            for text in self._socket:
                self._take(json.loads(text))
        except ConnectionClosed:
            return

    def _take(self, frame: dict[str, Any]) -> None:
        if frame["type"] == "dispatch":
            self._send(type="accepted", dispatch_id=frame["dispatch_id"])
            self.newest = frame
            self.dispatches.put(frame)
        elif frame["type"] == "cancel":
            named = ("session_id", "execution_id", "prompt_generation")
            self._send(type="cancelled", **{name: frame[name] for name in named})
        elif frame["type"] == "ping":
            self._send(type="pong")


def questions(count: int = 1) -> list[dict[str, Any]]:
    """Valid questions without ids; each call asks something else."""
    tag = uuid.uuid4().hex[:6]
    return [
        {
            "title": f"T{number}",
            "prompt": f"Which one, {tag} {number}?",
            "options": [{"label": f"L{pick} {tag}", "description": f"D{pick}"} for pick in (1, 2, 3)],
        }
        for number in range(1, count + 1)
    ]


@dataclass
class Scene:
    """One workspace of `owner`, one task, one session whose turn runs; `token` is its agent's."""

    product: Product
    server: Server
    runner: Runner
    workspace: str
    task: str
    session: str
    token: str
    members: dict[str, str] = field(default_factory=dict)

    def rest(self, name: str = "owner") -> httpx2.Client:
        return self.product.client(name, self.server)

    def url(self, surface: str = "/mcp/session", server: Server | None = None) -> str:
        return (server or self.server).url + surface

    def ask(self, count: int = 1, **body: Any) -> str:
        """Asks over REST; for one hand-over budget somebody counts as waiting."""
        asked = {"session_id": self.session, "questions": questions(count), **body}
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.server.url}/api/v1/clarification/request"
        got = httpx2.post(url, json=asked, headers=headers, timeout=30, **LOCAL)
        assert got.status_code == 201, got.text
        return str(got.json()["pending_id"])

    def pending(self) -> list[dict[str, Any]]:
        got = self.rest().get("/clarifications", params={"workspace_id": self.workspace})
        bundles: list[dict[str, Any]] = got.json()["bundles"]
        return bundles

    def one_pending(self) -> str:
        return str(until(self.pending, what="the question is listed")[0]["pending_id"])

    def bundle(self, pending_id: str) -> dict[str, Any]:
        got: dict[str, Any] = self.rest().get(f"/clarification/{pending_id}").json()
        return got

    def until_state(self, pending_id: str, state: str, within: float = 10) -> None:
        until(lambda: self.bundle(pending_id)["state"] == state, within=within, what=f"{pending_id} becomes {state}")

    def answer(self, pending_id: str, text: str = "", pick: int = 0) -> dict[str, Any]:
        """Every question with one choice; the text goes to the last."""
        rows = self.bundle(pending_id)["questions"]
        entries = [
            {"question_id": row["question_id"], "selected_options": [row["options"][pick]["option_id"]]} for row in rows
        ]
        entries[-1]["custom_text"] = text
        return {"answers": entries}

    def respond(self, pending_id: str, body: dict[str, Any], name: str = "owner") -> httpx2.Response:
        return self.rest(name).post(f"/clarification/{pending_id}/respond", json=body)


@asynccontextmanager
async def client(url: str, token: str | None, mode: str = "auto") -> AsyncIterator[Client]:
    """The SDK's client; `mode` is auto (2026-07-28 here) or legacy (with the handshake)."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(10, read=60), **LOCAL) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as made,
    ):
        yield made


async def call(url: str, token: str, tool: str, mode: str = "auto", **arguments: Any) -> CallToolResult:
    """One tool call on a client of its own."""
    async with client(url, token, mode) as one:
        result = await one.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        return result


def text_of(result: CallToolResult) -> str:
    return "\n".join(getattr(block, "text", "") for block in result.content)


def message(method: str, params: dict[str, Any] | None = None, request_id: Any = 1) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    return body if request_id is None else {**body, "id": request_id}


def tool_call(tool: str, arguments: Any, request_id: Any = 1, **meta: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments} | ({"_meta": meta} if meta else {})
    return message("tools/call", params, request_id)


def post(url: str, token: str | None, body: Any, **headers: str) -> httpx2.Response:
    """One raw POST; a `body` of bytes goes out as it is."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    bearer = {"Authorization": f"Bearer {token}"} if token else {}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(url, content=raw, headers={**HEADERS, **bearer, **named}, timeout=30, **LOCAL)


def result_of(response: httpx2.Response) -> dict[str, Any]:
    """The result in a body, or in the last event of a stream (a call of seconds becomes one)."""
    assert response.status_code == 200, response.text
    if response.headers["content-type"] == "application/json":
        answer = response.json()
    else:
        answer = json.loads(response.text.split("data: ")[-1])
    result: dict[str, Any] = answer["result"]
    return result


class Stream:
    """A raw POST on a socket of its own, held open: what came and when, to be closed or reset at will."""

    def __init__(self, url: str, token: str, body: dict[str, Any], **headers: str) -> None:
        self.host, self.port = httpx2.URL(url).host, httpx2.URL(url).port
        raw = json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        lines = {**HEADERS, "Host": f"{self.host}:{self.port}", "Authorization": f"Bearer {token}", **named}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        path = httpx2.URL(url).path
        self.request = f"POST {path} HTTP/1.1\r\n{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw
        self.received = b""

    async def __aenter__(self) -> "Stream":
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        self.writer.write(self.request)
        await self.writer.drain()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()

    def reset(self) -> None:
        """Cuts the connection with RST instead of FIN."""
        link: socket.socket = self.writer.get_extra_info("socket")
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def until(self, part: bytes, within: float = 10) -> bytes:
        """Reads until `part` has come; what has come up to now is the result."""
        async with asyncio.timeout(within):
            while part not in self.received:
                chunk = await self.reader.read(4096)
                assert chunk, f"the stream ended before {part!r}: {self.received!r}"
                self.received += chunk
        return self.received

    def messages(self) -> list[dict[str, Any]]:
        lines = self.received.replace(b"\r\n", b"\n").split(b"\n")
        return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ") and line.endswith(b"}")]
