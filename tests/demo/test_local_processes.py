"""`manage.py demo --headless` and `manage.py runall` as people start them, with real servers, runners and agents."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.support.keeper import free_port
from tests.support.services import ROOT
from tests.support.waiting import until
from tests.support.web import LOCAL

pytestmark = pytest.mark.once
# `runall` keeps its secrets beside the project; the tests give it another folder.
IN_FOLDER = (
    "import os, pathlib, sys; from kandev import localkeys; localkeys.VAR = pathlib.Path(os.environ['VAR']);"
    "import manage; manage.main()"
)


def start(arguments: list[str], log: Path, **environment: str) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env={**kept, **environment}, stdout=out, stderr=out
        )


def processes_with(word: str) -> list[str]:
    """The command lines on this machine that contain `word`."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line:
            found.append(line)
    return found


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def test_the_demo_answers_live_and_late_and_leaves_nothing_running(tmp_path: Path) -> None:
    demo = start(["manage.py", "demo", "--headless"], tmp_path / "log", TMPDIR=str(tmp_path))
    assert demo.wait(110) == 0, (tmp_path / "log").read_text()
    lines = (tmp_path / "log").read_text().splitlines()
    words = [line.partition(":")[0] for line in lines]
    assert words == [
        *("server", "task"),
        *("asked", "answered live", "received"),
        *("asked again", "detached", "answered detached", "received"),
        *("idle", "done"),
    ]
    assert processes_with(str(tmp_path)) == []
    assert list(tmp_path.glob("kandev-demo-*")) == []


def test_a_stopped_demo_leaves_nothing_running(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    log = tmp_path / "log"
    started.append(start(["manage.py", "demo", "--headless"], log, TMPDIR=str(tmp_path)))
    until(lambda: "asked:" in log.read_text(), within=60, what="the agent asks")
    assert processes_with(str(tmp_path))
    started[0].terminate()
    assert started[0].wait(60) == 1
    assert processes_with(str(tmp_path)) == []
    assert list(tmp_path.glob("kandev-demo-*")) == []


def test_the_demo_needs_to_be_told_that_it_has_no_browser(tmp_path: Path) -> None:
    assert start(["manage.py", "demo"], tmp_path / "log").wait(60) == 1
    assert "--headless" in (tmp_path / "log").read_text()


def test_runall_serves_a_seeded_workspace_until_ctrl_c_and_comes_back(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    port = free_port()
    environment = {
        "PORT": str(port),
        "VAR": str(tmp_path / "var"),
        "DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}",
    }
    said = []
    for life in range(2):
        log = tmp_path / f"log-{life}"
        started.append(start(["-c", IN_FOLDER, "runall"], log, **environment))
        until(lambda log=log: "Ctrl-C" in log.read_text(), within=60, what="the greeting")  # type: ignore[misc]
        page = httpx2.get(f"http://127.0.0.1:{port}/accounts/login/", **LOCAL)
        assert page.status_code == 200
        started[-1].send_signal(signal.SIGINT)
        assert started[-1].wait(60) == 0
        said.append(log.read_text())
        assert processes_with(str(tmp_path)) == []
        assert processes_with(f"-p {port} kandev.asgi") == []
    password = (tmp_path / "var" / "demo-password").read_text()
    assert f"password: {password}" in said[0]
    assert password not in said[1]
    assert f"http://127.0.0.1:{port}/" in said[1]


def test_runall_says_that_its_port_is_taken(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environment = {"PORT": str(port), "VAR": str(tmp_path / "var"), "DATABASE_URL": f"sqlite:///{tmp_path}/db"}
        started.append(start(["-c", IN_FOLDER, "runall"], tmp_path / "log", **environment))
        assert started[0].wait(90) == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("port", ["0", "x", "70000"])
def test_runall_names_a_port_that_is_none(tmp_path: Path, port: str) -> None:
    assert start(["-c", IN_FOLDER, "runall"], tmp_path / "log", PORT=port, VAR=str(tmp_path)).wait(60) == 1
    assert "PORT must be a number" in (tmp_path / "log").read_text()
