"""The runner's socket: refused tokens, silence, lost connections, and the program as people start it."""

import asyncio
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.runner.doubles import ROOT, SCRIPTED, TOKEN, FakeServer, ids, runner
from tests.support.waiting import until
from turns.runner import connection
from turns.runner.connection import socket_url
from turns.runner.journal import Journal
from turns.runner.outbox import Outbox

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://127.0.0.1:8000", "ws://127.0.0.1:8000/ws/runner/"),
        ("https://kandev.example/", "wss://kandev.example/ws/runner/"),
        ("https://example.org/kandev", "wss://example.org/kandev/ws/runner/"),
        ("ws://127.0.0.1:8000/ws/runner/", "ws://127.0.0.1:8000/ws/runner/"),
    ],
)
def test_the_url_may_name_the_server_or_its_socket(given: str, used: str) -> None:
    assert socket_url(given) == used


@pytest.mark.parametrize("given", ["", "127.0.0.1:8000", "ftp://example.org", "http://"])
def test_other_urls_are_refused(given: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        socket_url(given)


@pytest.mark.parametrize("status", [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN])
async def test_a_refused_token_is_said_in_one_line_and_tried_again(
    tmp_path: Path, status: HTTPStatus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "REFUSED_DELAY_S", 0.02)
    async with FakeServer().open() as server:
        server.refuse = status
        async with runner(server, tmp_path) as _:
            await asyncio.to_thread(until, lambda: len(server.tokens) >= 3)
            server.refuse = None
            await server.expect("hello")
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert lines == [f"the server refused this runner's token (HTTP {status.value}); trying again"]
    assert TOKEN not in caplog.text


async def test_a_server_that_goes_silent_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "OPEN_S", 0.1)
    async with FakeServer().open() as server:
        server.welcome = False
        async with runner(server, tmp_path) as _:
            await server.expect("hello")
            server.welcome = True
            await server.expect("hello")


async def test_pings_are_answered_and_sent(tmp_path: Path) -> None:
    async with FakeServer().open() as server:
        server.welcome = False
        async with runner(server, tmp_path) as _:
            await server.expect("hello")
            await server.send("welcome", instance="test", ping_s=0.05)
            await server.expect("ping")
            await server.send("ping")
            await server.expect("pong")


@pytest.mark.scenario("R13")
async def test_what_an_older_socket_left_unread_is_not_acted_on(tmp_path: Path) -> None:
    """A dispatch and the end of the socket arrive together: taken, it is in the next `hello`; left, it never runs."""
    async with FakeServer().open() as server, runner(server, tmp_path) as journal:
        await server.expect("hello")
        sent = await server.dispatch("just echo")
        assert server.connection is not None
        await server.connection.close()
        hello = await server.expect("hello")
        if not hello["journal"]:
            await server.ping()
            assert journal.hello() == []
        else:
            await server.expect("ready", where=lambda frame: ids(frame) == ids(sent))


async def test_an_ending_is_settled_once_the_server_has_had_it_for_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turns.runner.outbox.SETTLE_S", 0.0)
    async with FakeServer().open() as server, runner(server, tmp_path) as journal:
        await server.expect("hello")
        await server.dispatch("just echo")
        await server.expect("ready")
        assert len(journal.endings()) == 1
        await server.send("pong")
        await server.ping()
        assert journal.endings() == []


async def test_a_long_absence_costs_the_oldest_frames_but_no_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turns.runner.outbox.CAPACITY", 3)
    journal = Journal(tmp_path / "journal.sqlite3")
    outbox = Outbox(journal)
    outbox.end("d1", {"type": "ready"})
    for number in range(5):
        outbox.put({"type": "frame", "content": number})
    written: list[object] = []

    async def send(frame: dict[str, object]) -> None:
        written.append(frame.get("content", frame["type"]))

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await outbox.drain(send)
    assert written == ["ready", 3, 4]
    journal.close()


def program(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "turns.runner", *arguments]
    env = {name: value for name, value in os.environ.items() if name != "KANDEV_RUNNER_TOKEN"} | environment
    return subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--agent", "a=cat"], "no token"),
        (["--token", "t"], "no agent"),
        (["--token", "t", "--agent", "cat"], "not of the form"),
        (["--token", "t", "--agent", "a=no-such-program"], "'no-such-program' was not found"),
        (["--token", "t", "--agent", "a='cat"], "No closing quotation"),
        (["--token", "t", "--agent", "a=cat", "--agent", "a=cat"], "the same name"),
        (["--token", "t", "--agent", "a=cat", "--max-sessions", "0"], "--max-sessions"),
        (["--token", "t", "--agent", "a=cat", "--workdir", "/nonexistent"], "--workdir"),
        (["--token", "t", "--agent", "a=cat", "--journal", "/dev/null/j"], "--journal"),
        (["--token", "t", "--agent", "a=cat", "--permissions", "maybe"], "--permissions"),
    ],
)
def test_bad_arguments_are_named(arguments: list[str], problem: str, tmp_path: Path) -> None:
    journal = [] if "--journal" in arguments else ["--journal", str(tmp_path / "j")]
    ended = program("--url", "http://127.0.0.1:9", *journal, *arguments)
    _, errors = ended.communicate(timeout=20)
    assert ended.returncode == 2
    assert problem in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
async def test_the_program_ends_its_agents_on_a_signal(sign: signal.Signals, tmp_path: Path) -> None:
    async with FakeServer().open() as server:
        agent = f"scripted={' '.join(SCRIPTED)}"
        journal = str(tmp_path / "journal.sqlite3")
        started = program("--url", server.url, "--agent", agent, "--journal", journal, KANDEV_RUNNER_TOKEN=TOKEN)
        await server.expect("hello")
        await server.dispatch("session", agent="scripted")
        pid = int((await server.message("pid"))["content"].split()[-1])
        await server.expect("ready")
        started.send_signal(sign)
        _, errors = await asyncio.to_thread(started.communicate, timeout=20)
        assert started.returncode == 0, errors
        assert TOKEN not in errors
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.scenario("R13")
async def test_a_killed_runner_comes_back_with_its_journal(tmp_path: Path) -> None:
    async with FakeServer().open() as server:
        arguments = ["--url", server.url, "--agent", f"scripted={' '.join(SCRIPTED)}"]
        arguments += ["--journal", str(tmp_path / "journal.sqlite3")]
        first = program(*arguments, KANDEV_RUNNER_TOKEN=TOKEN)
        hello = await server.expect("hello")
        sent = await server.dispatch("quiet", agent="scripted")
        await server.message("I think.")
        first.kill()
        await asyncio.to_thread(first.communicate, timeout=20)
        second = program(*arguments, KANDEV_RUNNER_TOKEN=TOKEN)
        again = await server.expect("hello", runner_id=hello["runner_id"])
        assert again["journal"] == [{"dispatch_id": sent["dispatch_id"], "outcome": "completed"}]
        assert ids(await server.expect("failed")) == ids(sent)
        await server.again(sent)
        await server.expect("accepted")
        second.terminate()
        await asyncio.to_thread(second.communicate, timeout=20)
        assert "I think" not in json.dumps(server.frames)


async def test_a_runner_whose_journal_fails_takes_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bool:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Journal, "accept", full)

    async def take_a_dispatch(server: FakeServer) -> None:
        async with runner(server, tmp_path) as _:
            await server.expect("hello")
            await server.dispatch("just echo")
            assert server.connection is not None
            await server.connection.wait_closed()

    async with FakeServer().open() as server:
        with pytest.raises(sqlite3.OperationalError, match="full"):
            await take_a_dispatch(server)
        assert server.frames == []
