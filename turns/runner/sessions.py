"""One task session on this runner: its agent process, kept warm between prompts, and the prompt that runs on it now."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from acp.schema import PermissionOption, RequestPermissionResponse, ToolCallUpdate

from turns.runner.agents import Agent, AgentError
from turns.runner.frames import Dispatch, Frame, Kind
from turns.runner.journal import Journal
from turns.runner.outbox import Outbox
from turns.runner.permissions import Ask, Policy, response
from turns.runner.requests import Requests
from turns.runner.transcript import Transcript

log = logging.getLogger("kandev.runner")

CANCEL_GRACE_S = 5.0
Why = Literal["", "cancel", "shutdown"]


@dataclass(frozen=True)
class Setup:
    """What the person who started the runner decided."""

    agents: dict[str, list[str]]
    workdir: Path
    policy: Policy
    max_sessions: int = 8
    cancel_grace_s: float = CANCEL_GRACE_S


@dataclass(eq=False)
class Prompt:
    """One dispatch on its way through the agent. `stop` may be called at any time and more than once."""

    dispatch: Dispatch
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    why: Why = ""
    at_agent: bool = False

    def stop(self, why: Why) -> None:
        self.why = self.why or why
        self.stopping.set()


class TaskSession:
    def __init__(self, session_id: str, setup: Setup, journal: Journal, outbox: Outbox, requests: Requests) -> None:
        self.session_id = session_id
        self.prompt: Prompt | None = None
        self._setup, self._journal, self._outbox, self._requests = setup, journal, outbox, requests
        self._agent: Agent | None = None
        self._agent_name = ""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        return self.prompt is not None and not self.prompt.ended.is_set()

    @property
    def warm(self) -> bool:
        return self._agent is not None

    def start(self, dispatch: Dispatch) -> None:
        """Runs a dispatch that the journal has accepted; a prompt that still runs is stopped first."""
        before, self.prompt = self.prompt, Prompt(dispatch)
        task = asyncio.create_task(self._run(self.prompt, before))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, prompt: Prompt, before: Prompt | None) -> None:
        try:
            if before:
                before.stop("cancel")
                await before.ended.wait()
            transcript = self._transcript(prompt.dispatch)
            ending = await self._outcome(prompt, transcript)
            transcript.flush()
            if self._journal.finish(prompt.dispatch.dispatch_id, ending):
                self._outbox.end(prompt.dispatch.dispatch_id, ending)
        finally:
            self._requests.cancel(prompt.dispatch.key)
            prompt.ended.set()

    def _transcript(self, dispatch: Dispatch) -> Transcript:
        def emit(kind: Kind, content: str, data: dict[str, Any]) -> None:
            self._outbox.put(dispatch.key.frame("frame", kind=kind, content=content, data=data))

        return Transcript(emit, lambda received: self._journal.note_received(dispatch.key, received))

    async def _outcome(self, prompt: Prompt, transcript: Transcript) -> Frame:
        """Returns the frame that ends the prompt: exactly one of `ready`, `failed` and `cancelled`."""
        key = prompt.dispatch.key
        work = asyncio.create_task(self._work(prompt, transcript))
        stopping = asyncio.create_task(prompt.stopping.wait())
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not work.done():
            await self._wind_up(prompt, work)
        if prompt.why == "shutdown":
            return key.frame("failed", error="the runner was stopped", fatal=False)
        if prompt.why == "cancel":
            return key.frame("cancelled")
        if isinstance(error := work.exception(), AgentError):
            return key.frame("failed", error=str(error), fatal=False)
        if error is not None:
            log.error("a prompt failed inside the runner", exc_info=error)
            return key.frame("failed", error="internal error of the runner", fatal=False)
        return key.frame("ready", stop_reason=work.result())

    async def _work(self, prompt: Prompt, transcript: Transcript) -> str:
        dispatch = prompt.dispatch
        agent = await self._warm_agent(dispatch)
        remembered = self._journal.agent_session(self.session_id, dispatch.agent)
        session = await agent.open_session(dispatch.mcp, self._setup.workdir, remembered)
        if session != remembered:
            self._journal.remember_agent_session(self.session_id, dispatch.agent, session)
        prompt.at_agent = True
        return await agent.prompt(dispatch.prompt, transcript.take, self._asker(prompt, transcript))

    def _asker(self, prompt: Prompt, transcript: Transcript) -> Ask | None:
        """Who answers this prompt's permission requests: a person, or None for the policy by itself."""

        async def ask(tool_call: ToolCallUpdate, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
            transcript.flush()  # what the agent said before it asked stands before the request
            if prompt.stopping.is_set():
                return response(None)
            return await self._requests.ask(prompt.dispatch.key, tool_call, options)

        return ask if self._setup.policy.asks else None

    async def _warm_agent(self, dispatch: Dispatch) -> Agent:
        if self._agent and self._agent.alive and self._agent_name == dispatch.agent:
            return self._agent
        await self.close_agent()
        command = self._setup.agents[dispatch.agent]
        self._agent = await Agent.start(command, self._setup.workdir, self._setup.policy)
        self._agent_name = dispatch.agent
        return self._agent

    async def _wind_up(self, prompt: Prompt, work: asyncio.Task[str]) -> None:
        """Lets the agent end its prompt itself, for a while; then its process goes."""
        if self._agent and prompt.at_agent and prompt.why == "cancel":
            await self._agent.cancel()
            self._requests.cancel(prompt.dispatch.key)  # as ACP wants it, so that the agent can end its prompt
            await asyncio.wait({work}, timeout=self._setup.cancel_grace_s)
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
            await self.close_agent()
        with contextlib.suppress(asyncio.CancelledError):
            work.exception()

    async def close_agent(self) -> None:
        agent, self._agent = self._agent, None
        if agent:
            await agent.close()

    async def close(self, why: Why) -> None:
        """Ends the prompt that runs, if there is one, and the agent process."""
        if self.prompt:
            self.prompt.stop(why)
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self.close_agent()
