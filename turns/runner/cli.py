"""Starting a runner: arguments, and everything put together, for `manage.py runner` and `python -m turns.runner`."""

import argparse
import asyncio
import contextlib
import logging
import os
import shlex
import shutil
import signal
import sqlite3
from pathlib import Path

from turns.runner import VERSION
from turns.runner.connection import Connection, socket_url
from turns.runner.executions import Executions
from turns.runner.frames import Frame
from turns.runner.journal import Journal, JournalInUseError
from turns.runner.outbox import Outbox
from turns.runner.permissions import POLICIES, FixedPolicy
from turns.runner.sessions import Setup

log = logging.getLogger("kandev.runner")

TOKEN_VARIABLE = "KANDEV_RUNNER_TOKEN"  # noqa: S105 - the variable's name
FLUSH_S = 2.0


class UsageError(Exception):
    """An argument cannot be used; the message says which and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", required=True, help="the server, such as http://127.0.0.1:8000")
    parser.add_argument("--token", help=f"the runner token; better given as {TOKEN_VARIABLE}, which `ps` does not show")
    parser.add_argument(
        "--agent", action="append", default=[], metavar="NAME=COMMAND", help="an ACP agent on stdio (may be repeated)"
    )
    parser.add_argument("--max-sessions", type=int, default=8, help="how many sessions may run at once (default 8)")
    parser.add_argument(
        "--permissions", choices=POLICIES, default="allow", help="the answer when agents ask; `ask` passes it on"
    )
    parser.add_argument(
        "--journal", type=Path, default=Path("var/runner.sqlite3"), help="file that keeps the dispatches"
    )
    parser.add_argument("--workdir", type=Path, default=Path(), help="where the agents work (default: here)")


def run(options: argparse.Namespace) -> None:
    """Runs a runner until SIGINT or SIGTERM. Raises UsageError for arguments that cannot work."""
    setup, token = setup_from(options), token_from(options)
    try:
        socket_url(options.url)
        journal = Journal(options.journal)
    except (ValueError, JournalInUseError) as error:
        raise UsageError(str(error)) from None
    except (OSError, sqlite3.Error) as error:
        raise UsageError(f"--journal {options.journal} cannot be used: {error}") from None
    # This library logs the headers, and with them the token, at its debug level.
    logging.getLogger("websockets").setLevel(logging.WARNING)
    try:
        asyncio.run(serve(options.url, token, setup, journal))
    except sqlite3.Error as error:
        # Without its journal a runner cannot keep its promises, so it ends; the next one tells the server the rest.
        raise UsageError(f"--journal {options.journal} cannot be written any more: {error}") from None
    finally:
        journal.close()


def token_from(options: argparse.Namespace) -> str:
    token = str(options.token or os.environ.get(TOKEN_VARIABLE, "")).strip()
    if not token:
        raise UsageError(f"no token: give --token or {TOKEN_VARIABLE} (made by `manage.py token runner --name NAME`)")
    return token


def setup_from(options: argparse.Namespace) -> Setup:
    agents = dict(agent_from(argument) for argument in options.agent)
    if not agents:
        raise UsageError('no agent: give at least one --agent NAME="COMMAND"')
    if len(agents) < len(options.agent):
        raise UsageError("two --agent arguments have the same name")
    if options.max_sessions < 1:
        raise UsageError("--max-sessions must be at least 1")
    workdir = options.workdir.resolve()
    if not workdir.is_dir():
        raise UsageError(f"--workdir {options.workdir} is not a directory")
    return Setup(agents, workdir, FixedPolicy(options.permissions), options.max_sessions)


def agent_from(argument: str) -> tuple[str, list[str]]:
    """Reads NAME=COMMAND. The command is split as a shell would, but no shell runs it."""
    name, equals, command = argument.partition("=")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--agent {name}: {error}") from None
    if not (equals and name.strip() and words):
        raise UsageError(f'--agent {argument!r} is not of the form NAME="COMMAND"')
    program = shutil.which(words[0])
    if not program:
        raise UsageError(f"--agent {name.strip()}: the command {words[0]!r} was not found")
    return name.strip(), [str(Path(program).absolute()), *words[1:]]


async def serve(url: str, token: str, setup: Setup, journal: Journal, stop: asyncio.Event | None = None) -> None:
    """Serves until `stop` is set, or on a signal; then ends the agents and tells the server how their prompts ended."""
    stop = stop or asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError):
            asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    outbox = Outbox(journal)
    executions = Executions(setup, journal, outbox)
    executions.recover()

    def hello() -> Frame:
        journal.prune()
        offer = {"agents": list(setup.agents), "max_sessions": setup.max_sessions, "journal": journal.hello()}
        return {"type": "hello", "runner_id": journal.runner_id, "version": VERSION, **offer}

    connected = asyncio.create_task(Connection(url, token, outbox, hello, executions.handle).run())
    stopped = asyncio.create_task(stop.wait())
    log.info("runner %s offers %s", journal.runner_id, ", ".join(setup.agents))
    try:
        await asyncio.wait({connected, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await executions.close()
        await outbox.flushed(FLUSH_S)
        stopped.cancel()
        connected.cancel()
        failure = (await asyncio.gather(connected, stopped, return_exceptions=True))[0]
    if isinstance(failure, Exception):
        raise failure
