"""A small, real ACP agent without a model: it asks people questions through Kandev's MCP tool and reports what it got.

Run it with a runner: `python manage.py runner … --agent demo="python -m kandev.demo.agent"`. Meant to be copied.
What a prompt contains decides what happens: "just echo" asks nothing, "ask once" asks one bundle, "ask then wait" keeps
the turn open after it, "ask permission" asks for leave to do a thing; anything else asks two bundles in turn.

Environment: KANDEV_DEMO_DELAY_S seconds between the two bundles (8: time to close the browser); KANDEV_DEMO_LOG a file
that gets one JSON line for every answer received; KANDEV_DEMO_STDIO=1 to take MCP servers by stdio only.
"""

import asyncio
import contextlib
import json
import os
import threading
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import acp
import httpx2
from acp import helpers, schema
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

TOOL = "ask_user_question_kandev"


def option(label: str, description: str, **extra: Any) -> dict[str, Any]:
    return {"label": label, "description": description, **extra}


FIRST: list[dict[str, Any]] = [
    {
        "id": "database",
        "title": "Database",
        "prompt": "Which database should the new service use?",
        "options": [
            option("PostgreSQL", "For several processes and machines.", recommended=True),
            option("SQLite", "One file, one machine, nothing to run."),
        ],
    },
    {
        "id": "checks",
        "title": "Checks",
        "prompt": "Which checks should run before a release?",
        "multi_select": True,
        "options": [
            option("Tests", "The whole suite.", recommended=True),
            option("Types", "The type checker, strict."),
            option("Load", "A short load test."),
        ],
    },
]
SECOND: list[dict[str, Any]] = [
    {
        "id": "when",
        "title": "When",
        "prompt": "When should the release go out?",
        "options": [
            option("Now", "As soon as the checks are green.", recommended=True),
            option("Tomorrow", "After one night on the test machine."),
        ],
    },
]
PROMPTS = tuple(str(question["prompt"]) for question in FIRST + SECOND)


class DemoAgent:
    """Implements what it offers of `acp.Agent`: sessions that can be loaded again, prompts and their cancellation."""

    def __init__(self) -> None:
        self._servers: dict[str, Any] = {}
        self._prompts: dict[str, asyncio.Task[None]] = {}
        self._client: acp.Client

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        http = os.environ.get("KANDEV_DEMO_STDIO") != "1"
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_info=schema.Implementation(name="kandev-demo", title="Demo agent", version="1"),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True, mcp_capabilities=schema.McpCapabilities(http=http)
            ),
        )

    async def new_session(self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any) -> schema.NewSessionResponse:
        session_id = str(uuid.uuid4())
        await self.load_session(cwd, session_id, mcp_servers)
        return schema.NewSessionResponse(session_id=session_id)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> schema.LoadSessionResponse:
        """This agent has no memory to bring back: what it needs to know of earlier turns is in the prompt."""
        self._servers[session_id] = next(iter(mcp_servers or []), None)
        return schema.LoadSessionResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        text = "\n".join(block.text for block in prompt if block.type == "text")
        turn = Turn(self._client, session_id, self._servers.get(session_id))
        self._prompts[session_id] = asyncio.create_task(turn.run(text))
        try:
            await self._prompts[session_id]
        except asyncio.CancelledError:
            return schema.PromptResponse(stop_reason="cancelled")
        return schema.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        if task := self._prompts.get(session_id):
            task.cancel()


class Turn:
    """One prompt, from what was asked to the end of the turn."""

    def __init__(self, client: acp.Client, session_id: str, server: Any) -> None:
        self._client, self._session_id, self._server = client, session_id, server

    async def run(self, text: str) -> None:
        words = text.lower()
        await self._say(f"You asked: {text}")
        if any(prompt in text for prompt in PROMPTS):
            note("prompt", text=text)
            await self._say("That is the answer to my question. I received it as a new prompt and am done.")
        elif "just echo" in words:
            await self._say("Nothing to ask.")
        elif "ask permission" in words:
            await self._ask_permission()
        else:
            await self._ask_people(words)

    async def _ask_people(self, words: str) -> None:
        if not await self._ask(FIRST) or "ask once" in words:
            return
        if "ask then wait" in words:
            await self._say("I keep this turn open until it is cancelled.")
            await asyncio.Event().wait()
        delay = float(os.environ.get("KANDEV_DEMO_DELAY_S", "8"))
        await self._say(f"I have another question in {delay:g} seconds. You may close the browser.")
        await asyncio.sleep(delay)
        if await self._ask(SECOND):
            await self._say("Thank you. I am done.")

    async def _ask(self, questions: list[dict[str, Any]]) -> bool:
        """Asks one bundle and says what came back. False when there is no answer in this turn."""
        call, arguments = f"call-{uuid.uuid4()}", {"questions": questions, "context": "The demo agent plans a release."}
        await self._update(helpers.start_tool_call(call, TOOL, kind="other", status="in_progress", raw_input=arguments))
        try:
            result = await self._call_tool(arguments)
        except asyncio.CancelledError:
            await self._update(helpers.update_tool_call(call, status="failed", raw_output={"error": "cancelled"}))
            raise
        except Exception as error:  # noqa: BLE001 - whatever broke the wait, the turn ends with a word about it
            return await self._no_answer(call, plain(error))
        if result.is_error:
            return await self._no_answer(call, said(result))
        answers = result.structured_content
        note("live", answers=answers)
        await self._update(helpers.update_tool_call(call, status="completed", raw_output=answers))
        await self._say(f"I received: {json.dumps(answers, ensure_ascii=False)}")
        return True

    async def _no_answer(self, call: str, why: str) -> bool:
        await self._update(helpers.update_tool_call(call, status="failed", raw_output={"error": why}))
        await self._say(f"No answer came in this turn ({why}). I stop here; the answer may come as a new prompt.")
        return False

    async def _call_tool(self, arguments: dict[str, Any]) -> CallToolResult:
        """Waits as long as the server does. Its progress notifications keep the connection from looking dead."""

        async def progress(progress: float, total: float | None, message: str | None) -> None: ...

        async with connect(self._server) as client:
            return await client.call_tool(TOOL, arguments, progress_callback=progress)

    async def _ask_permission(self) -> None:
        options = [
            schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
            schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
        ]
        call = schema.ToolCallUpdate(tool_call_id=f"call-{uuid.uuid4()}", title="Delete the old backups", kind="delete")
        got = await self._client.request_permission(session_id=self._session_id, tool_call=call, options=options)
        picked = got.outcome.option_id if isinstance(got.outcome, schema.AllowedOutcome) else "nothing"
        await self._say(f"Permission: {picked}.")

    async def _say(self, text: str) -> None:
        await self._update(helpers.update_agent_message_text(text + "\n\n"))

    async def _update(self, update: Any) -> None:
        await self._client.session_update(session_id=self._session_id, update=update)


@contextlib.asynccontextmanager
async def connect(server: Any) -> AsyncIterator[Client]:
    """An MCP client for the server that the runner named, over HTTP or as a child process."""
    if isinstance(server, schema.HttpMcpServer):
        headers = {header.name: header.value for header in server.headers}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=300)) as http,
            Client(streamable_http_client(server.url, http_client=http)) as client,
        ):
            yield client
    elif isinstance(server, schema.McpServerStdio):
        env = {variable.name: variable.value for variable in server.env}
        async with Client(StdioServerParameters(command=server.command, args=server.args, env=env)) as client:
            yield client
    else:
        raise RuntimeError("no MCP server was given")


def note(how: str, **what: Any) -> None:
    """The agent's own record of what reached it."""
    if path := os.environ.get("KANDEV_DEMO_LOG"):
        with Path(path).open("a") as log:
            log.write(json.dumps({"how": how, **what, "at": time.time()}) + "\n")


def said(result: CallToolResult) -> str:
    return " ".join(block.text for block in result.content if block.type == "text")


def plain(error: BaseException) -> str:
    """The cause inside the exception groups that the MCP client's task groups raise."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def end_with_runner(every_s: float = 1.0) -> None:
    """Without its runner the agent is nobody's, and a prompt that waits for an answer would keep it for ever."""
    runner = os.getppid()
    while os.getppid() == runner:
        time.sleep(every_s)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_runner, daemon=True).start()
    asyncio.run(acp.run_agent(DemoAgent()))  # type: ignore[arg-type]
