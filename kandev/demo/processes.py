"""The processes of a local installation: commands, a server and a runner, ended together whatever happens."""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType

import httpx2

ROOT = Path(__file__).resolve().parent.parent.parent
START_S, STOP_S = 60.0, 15.0
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - what a person may have asked for


class LocalError(Exception):
    """A local process failed or did not come up; the message is fit to be shown."""


class StopRequestedError(Exception):
    """SIGTERM or Ctrl-C."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check_free(host: str, port: int) -> None:
    """Another server on this port would answer in our name. Raises LocalError."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        raise LocalError(f"cannot listen on {host} port {port}: {error.strerror}") from None


def address(host: str, port: int) -> str:
    """Where a server that listens on `host` is found from this machine."""
    literal = f"[{host}]" if ":" in host else host
    return f"http://{EVERYWHERE.get(host, literal)}:{port}"


def stop_on_signals() -> None:
    """From now on SIGINT and SIGTERM raise StopRequestedError in the main thread, so that `with` blocks clean up."""

    def stop(number: int, frame: FrameType | None) -> None:
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, signal.SIG_IGN)
        raise StopRequestedError

    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, stop)


class Local:
    """Starts processes in one environment. Leaving the `with` block ends them, the youngest first."""

    def __init__(self, environment: dict[str, str], logs: Path | None = None) -> None:
        logging.getLogger("httpx2").setLevel(logging.WARNING)  # it tells of every request
        self._environment = {**environment, "PYTHONUNBUFFERED": "1"}
        self._logs = logs
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> "Local":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _, process in reversed(self._running):
            end(process)

    def manage(self, *arguments: str, **environment: str) -> str:
        """Runs a management command and returns what it printed. Raises LocalError with its last words."""
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        env = {**self._environment, **environment}
        done = subprocess.run(  # noqa: S603 - its own command
            command, env=env, cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LocalError(f"`manage.py {arguments[0]}` failed: {last_line(done.stderr)}")
        return done.stdout.strip()

    def start(self, name: str, argv: Iterable[str], **environment: str) -> None:
        """Starts a process in a group of its own: a Ctrl-C in the terminal reaches only us, and we end the rest."""
        log = (self._logs / f"{name}.log").open("ab") if self._logs else None
        env = {**self._environment, **environment}
        process = subprocess.Popen(  # noqa: S603 - its own programs
            [sys.executable, *argv], env=env, cwd=ROOT, stdin=-3, stdout=log, stderr=log, start_new_session=True
        )
        if log:
            log.close()
        self._running.append((name, process))

    def check(self) -> None:
        """Raises LocalError if one of the processes has ended."""
        for name, process in self._running:
            if process.poll() is not None:
                raise LocalError(f"the {name} ended with {process.returncode}{self._last_words(name)}")

    def _last_words(self, name: str) -> str:
        return f": {last_line((self._logs / f'{name}.log').read_text(errors='replace'))}" if self._logs else ""

    def start_server(self, host: str, port: int) -> str:
        """Starts the web server and returns its address once it is ready. Raises LocalError, also for a taken port."""
        check_free(host, port)
        self.start("server", ["-m", "daphne", "-v", "0", "-b", host, "-p", str(port), "kandev.asgi:application"])
        url, deadline = address(host, port), time.monotonic() + START_S
        with httpx2.Client(trust_env=False, timeout=5) as http:
            while not self._ready(http, url):
                self.check()
                if time.monotonic() >= deadline:
                    raise LocalError(f"the server was not ready within {START_S:g} s")
                time.sleep(0.1)
        return url

    @staticmethod
    def _ready(http: httpx2.Client, url: str) -> bool:
        with suppress(httpx2.TransportError):
            return http.get(f"{url}/readyz").status_code == 200
        return False

    def start_runner(self, url: str, token: str, folder: Path, **environment: str) -> None:
        """Starts a runner that offers the demo agent and asks people for permissions. Its token goes by environment,
        where `ps` does not show it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        agent = f'demo="{sys.executable}" -m kandev.demo.agent'
        arguments = [
            "--url",
            url,
            "--agent",
            agent,
            "--journal",
            str(folder / "journal.sqlite3"),
            "--workdir",
            str(folder),
            "--permissions",
            "ask",
        ]
        environment |= {"KANDEV_RUNNER_TOKEN": token, "PYTHONPATH": str(ROOT)}
        self.start("runner", [str(ROOT / "manage.py"), "runner", *arguments], **environment)


def end(process: subprocess.Popen[bytes]) -> None:
    """Asks the process to stop; what is left of its group after a while is killed."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
