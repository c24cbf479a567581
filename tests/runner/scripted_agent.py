"""An ACP agent that does what the prompt names. It can neither load sessions nor talk MCP over HTTP."""

import asyncio
import json
import os
import sys
from typing import Any

import acp
from acp import helpers, schema


class ScriptedAgent:
    def __init__(self) -> None:
        self.client: acp.Client
        self.sessions = 0
        self.servers: Any = None
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        return schema.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> schema.NewSessionResponse:
        self.sessions += 1
        self.servers = mcp_servers
        return schema.NewSessionResponse(session_id=f"scripted-{self.sessions}")

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        self.session_id = session_id
        self.cancelled.clear()
        reason = await getattr(self, f"do_{prompt[0].text.split()[0]}")(prompt[0].text)
        return schema.PromptResponse(stop_reason=reason or "end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def say(self, text: str, message_id: str | None = None) -> None:
        chunk = helpers.update_agent_message_text(text)
        chunk.message_id = message_id
        await self.client.session_update(session_id=self.session_id, update=chunk)

    async def update(self, update: Any) -> None:
        await self.client.session_update(session_id=self.session_id, update=update)

    async def do_chunks(self, text: str) -> None:
        for part in ("one ", "two ", "three"):
            await self.say(part, "m1")
        await self.update(helpers.update_agent_thought_text("hm"))
        await self.update(helpers.start_tool_call("c1", "Read a file", kind="read", raw_input={"path": "\0a"}))
        await self.update(helpers.update_tool_call("c1", status="completed", raw_output={"n": float("inf")}))
        await self.say("four", "m2")
        await self.say("five", "m3")

    async def do_long(self, text: str) -> None:
        await self.say("x" * 40_000)
        await self.update(helpers.start_tool_call("c1", "Read", raw_input={"path": "a"}, raw_output="y" * 2_000_000))

    async def do_quiet(self, text: str) -> None:
        """Says something and then works on in silence, until it is cancelled."""
        await self.say("I think.")
        await self.cancelled.wait()

    async def do_asks(self, text: str) -> str:
        """`asks completed failed …`: question calls that end so, then silence."""
        for number, status in enumerate(text.split()[1:]):
            call = f"ask-{number}"
            await self.update(helpers.start_tool_call(call, "mcp__kandev__ask_user_question_kandev", status="pending"))
            if status in ("completed", "failed"):
                await self.update(helpers.update_tool_call(call, status=status))  # type: ignore[arg-type]
        await self.say("asked")
        await self.cancelled.wait()
        return "cancelled"

    async def do_stubborn(self, text: str) -> None:
        """Never ends by itself, with a child that would outlive it."""
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
        await self.say(f"child {child.pid}")
        await asyncio.Event().wait()

    async def do_crash(self, text: str) -> None:
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)

    async def do_refuse(self, text: str) -> None:
        raise acp.RequestError(-32000, "Authentication required")

    async def do_environment(self, text: str) -> None:
        await self.say(json.dumps({"names": sorted(os.environ), "argv": sys.argv}))

    async def do_session(self, text: str) -> None:
        await self.say(f"{self.session_id} {type(self.servers[0]).__name__} pid {os.getpid()}")

    async def do_permission(self, text: str) -> None:
        kinds = text.split()[1:]
        options = [schema.PermissionOption(option_id=f"o-{kind}", name=kind, kind=kind) for kind in kinds]  # type: ignore[arg-type]
        call = schema.ToolCallUpdate(tool_call_id="c1", title="Delete")
        got = await self.client.request_permission(session_id=self.session_id, tool_call=call, options=options)
        await self.say(json.dumps(got.outcome.model_dump(by_alias=True, exclude_none=True)))

    async def do_permission_then_word(self, text: str) -> None:
        """Waits for its permission, whatever is cancelled meanwhile, and tells the outcome."""
        option = schema.PermissionOption(option_id="o", name="Yes", kind="allow_once")
        call = schema.ToolCallUpdate(tool_call_id="c1", title="Delete")
        got = await self.client.request_permission(session_id=self.session_id, tool_call=call, options=[option])
        await self.say(f"outcome: {got.outcome.outcome}")

    async def do_permission_and_go(self, text: str) -> None:
        """Does not wait for its permission: the prompt ends first."""
        self.asking = asyncio.create_task(self.do_permission_then_word(text))
        await asyncio.sleep(0.3)


if __name__ == "__main__":
    asyncio.run(acp.run_agent(ScriptedAgent()))  # type: ignore[arg-type]
