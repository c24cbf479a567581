"""One ACP agent as a child process: start, open its session, prompt, cancel, end. The official SDK does the talking."""

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import acp
from acp.core import ClientSideConnection
from acp.schema import (
    ClientCapabilities,
    EnvVariable,
    FileSystemCapabilities,
    HttpHeader,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    McpServerStdio,
    RequestPermissionResponse,
)

from turns.runner import VERSION
from turns.runner.frames import Endpoint
from turns.runner.permissions import Ask, Policy

ROOT = Path(__file__).resolve().parent.parent.parent
START_S = 60
LINE_LIMIT = 50 * 1024 * 1024
SECRETS = {
    "KANDEV_RUNNER_TOKEN",
    "KANDEV_USER_PASSWORD",
    "DJANGO_SUPERUSER_PASSWORD",
    "SECRET_KEY",
    "DATABASE_URL",
    "REDIS_URL",
}
McpServer = HttpMcpServer | McpServerStdio


class AgentError(Exception):
    """The agent could not be started, refused a call or died; the message is fit to be shown to people."""


class _Client:
    """What the agent may call, by keyword. Files and terminals are its own business: it runs on this machine."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.on_update: Callable[[Any], None] | None = None
        self.ask: Ask | None = None

    async def session_update(self, update: Any, **_: Any) -> None:
        if self.on_update:
            self.on_update(update)

    async def request_permission(self, tool_call: Any, options: Any, **_: Any) -> RequestPermissionResponse:
        return await (self.ask or self.policy.decide)(tool_call, options)


class Agent:
    """A running agent process. Only one prompt at a time; `close` ends it with all its children."""

    def __init__(self, process: asyncio.subprocess.Process, policy: Policy) -> None:
        if process.stdin is None or process.stdout is None:
            raise AgentError("the agent has no pipes")
        self._process = process
        self._client = _Client(policy)
        client = cast(acp.Client, self._client)
        self._connection: ClientSideConnection = acp.connect_to_agent(client, process.stdin, process.stdout)
        self._said: deque[str] = deque(maxlen=20)
        self._stderr = asyncio.create_task(self._keep_stderr())
        self._hello: InitializeResponse | None = None
        self._session = ""
        self._endpoint: Endpoint | None = None
        self._secrets: set[str] = set()

    @classmethod
    async def start(cls, command: list[str], cwd: Path, policy: Policy) -> "Agent":
        """Raises AgentError when the command cannot be run or does not speak ACP."""
        env = {name: value for name, value in os.environ.items() if name not in SECRETS}
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=-1, stdout=-1, stderr=-1, cwd=cwd, env=env, limit=LINE_LIMIT, start_new_session=True
            )
        except OSError as error:
            raise AgentError(f"the agent's command cannot be run: {error.strerror or error}") from None
        agent = cls(process, policy)
        try:
            await agent._initialize()
        except BaseException:
            await agent.close()
            raise
        return agent

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def _initialize(self) -> None:
        files = FileSystemCapabilities(read_text_file=False, write_text_file=False)
        name, version = VERSION.split("/")
        call = self._connection.initialize(
            protocol_version=acp.PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(fs=files, terminal=False),
            client_info=Implementation(name=name, version=version),
        )
        self._hello = await self._ask("start", call)

    async def _ask(self, what: str, call: Any, limit: float | None = START_S) -> Any:
        try:
            async with asyncio.timeout(limit):
                return await call
        except TimeoutError:
            raise AgentError(f"the agent did not {what} within {START_S} s") from None
        except ConnectionError:
            raise AgentError(await self._last_words()) from None
        except acp.RequestError as error:
            raise AgentError(f"the agent refused to {what}: {error}{self._details(error)}") from None
        except ValueError:
            raise AgentError(f"the agent's answer to {what} does not follow the protocol") from None

    def _details(self, error: acp.RequestError) -> str:
        details = error.data.get("details") if isinstance(error.data, dict) else error.data
        return self._redact(f" ({details})") if isinstance(details, str) and details else ""

    async def _last_words(self) -> str:
        """Says how the process ended, with its last line on stderr."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await self._process.wait()
                await self._stderr
        code = self._process.returncode
        end = "closed its output" if code is None else f"ended with exit code {code}"
        return f"the agent {end}" + (f": {self._said[-1]}" if self._said else "")

    async def open_session(self, endpoint: Endpoint, cwd: Path, remembered: str | None) -> str:
        """Gives the agent this dispatch's MCP endpoint and returns the agent's own session id.

        A token is good for one dispatch (R26) and agents fix their MCP servers when a session is opened, so a new token
        means to resume or load the session again; an agent that can do neither gets a new session. Raises AgentError.
        """
        if self._session and endpoint == self._endpoint:
            return self._session
        self._secrets.add(endpoint.token)
        known = self._session or remembered
        if not (known and await self._reopen(known, endpoint, cwd)):
            call = self._connection.new_session(cwd=str(cwd), mcp_servers=[self._mcp_server(endpoint)])
            self._session = (await self._ask("open a session", call)).session_id
        self._endpoint = endpoint
        return self._session

    async def _reopen(self, session: str, endpoint: Endpoint, cwd: Path) -> bool:
        """False if the agent cannot, or no longer knows the session. What it replays is in the transcript already."""
        capabilities = self._hello.agent_capabilities if self._hello else None
        if capabilities and capabilities.session_capabilities and capabilities.session_capabilities.resume is not None:
            method: Any = self._connection.resume_session
        elif capabilities and capabilities.load_session:
            method = self._connection.load_session
        else:
            return False
        call = method(cwd=str(cwd), session_id=session, mcp_servers=[self._mcp_server(endpoint)])
        try:
            await self._ask("open its session again", call)
        except AgentError:
            if not self.alive:
                raise
            return False
        self._session = session
        return True

    def _mcp_server(self, endpoint: Endpoint) -> McpServer:
        capabilities = self._hello.agent_capabilities if self._hello else None
        if capabilities and capabilities.mcp_capabilities and capabilities.mcp_capabilities.http:
            bearer = HttpHeader(name="Authorization", value=f"Bearer {endpoint.token}")
            return HttpMcpServer(type="http", name="kandev", url=endpoint.url, headers=[bearer])
        env = {"KANDEV_MCP_URL": endpoint.url, "KANDEV_MCP_TOKEN": endpoint.token, "PYTHONPATH": str(ROOT)}
        return McpServerStdio(
            name="kandev",
            command=sys.executable,
            args=["-m", "turns.runner.bridge"],
            env=[EnvVariable(name=name, value=value) for name, value in env.items()],
        )

    async def prompt(self, text: str, on_update: Callable[[Any], None], ask: Ask | None = None) -> str:
        """Runs one prompt to its end and returns the stop reason; `ask` answers its permission requests instead of the
        policy. Raises AgentError.
        """
        self._client.on_update, self._client.ask = on_update, ask
        try:
            call = self._connection.prompt(session_id=self._session, prompt=[acp.text_block(text)])
            return str((await self._ask("run the prompt", call, limit=None)).stop_reason)
        finally:
            self._client.on_update = self._client.ask = None

    async def cancel(self) -> None:
        """Asks the agent to end its prompt; `prompt` then returns on its own."""
        with contextlib.suppress(ConnectionError):
            await self._connection.cancel(session_id=self._session)

    async def close(self, grace_s: float = 2) -> None:
        """Ends the process and its children: end of input, then SIGTERM, then SIGKILL."""
        if self._process.stdin:
            self._process.stdin.close()
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._process.wait()
                    break
            self._signal(sign)
        await self._process.wait()
        self._signal(signal.SIGKILL)
        self._stderr.cancel()
        with contextlib.suppress(ConnectionError):  # of what was still being written when the process went
            await self._connection.close()

    def _signal(self, sign: signal.Signals) -> None:
        # The agent leads its own process group, so this also reaches what it started; the group may be empty by now.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, sign)

    async def _keep_stderr(self) -> None:
        if self._process.stderr is None:
            return
        with contextlib.suppress(ValueError):
            async for line in self._process.stderr:
                if text := line.decode(errors="replace").strip():
                    self._said.append(self._redact(text)[:500])

    def _redact(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return text
