"""The processes of a run: servers, the bare pieces and clients, all ended with it."""

import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2

from kandev.bench.services import wait_for_port
from kandev.demo.processes import ROOT, LocalError, free_port, last_line

START_S = 60.0


@dataclass
class Server:
    """A Daphne process."""

    port: int
    process: subprocess.Popen[bytes]

    def ready(self) -> "Server":
        """Waits for `/readyz`. LocalError when that takes too long or the process has ended."""
        deadline = time.monotonic() + START_S
        with httpx2.Client(trust_env=False, timeout=5) as http:
            while time.monotonic() < deadline and self.process.poll() is None:
                with suppress(httpx2.TransportError):
                    if http.get(f"http://127.0.0.1:{self.port}/readyz").status_code == 200:
                        return self
                time.sleep(0.1)
        raise LocalError("a server of the benchmark did not become ready")

    def memory_kib(self) -> int:
        return _status(self.process.pid, "VmRSS")

    def threads(self) -> int:
        return _status(self.process.pid, "Threads")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def _status(pid: int, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1])


class Client:
    """A load client process: `client("load", ports=…)` sends the command and returns its answer."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def __call__(self, command: str, **arguments: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": command, **arguments}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise LocalError(f"the load client ended during `{command}`")
        return dict(json.loads(line))


class Stage:
    """Starts what the rows need. Leaving the `with` block ends it all, the youngest first."""

    def __init__(self, redis_url: str) -> None:
        logging.getLogger("httpx2").setLevel(logging.WARNING)  # it tells of every request
        self.redis_url = redis_url
        self._folder = tempfile.TemporaryDirectory(prefix="kandev-bench-")
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Stage":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._running):
            process.kill()  # nothing of theirs is to be kept
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if error is not None:
            self._show_last_words()
        self._folder.cleanup()

    def server(self, redis: bool = False) -> Server:
        """A server of the product, not yet ready."""
        port = free_port()
        public = {"KANDEV_PUBLIC_URL": f"http://127.0.0.1:{port}", "REDIS_URL": self.redis_url if redis else ""}
        return Server(port, self._daphne(port, "kandev.asgi:application", public))

    def bare(self) -> Server:
        """The bare pieces (`kandev.bench.bare`), listening."""
        port = free_port()
        process = self._daphne(port, "kandev.bench.bare:application", {"REDIS_URL": self.redis_url})
        wait_for_port(port, process)
        return Server(port, process)

    def client(self) -> Client:
        pipe = subprocess.PIPE
        return Client(self._start("client", ["-m", "kandev.bench.client"], {}, stdin=pipe, stdout=pipe))

    def _daphne(self, port: int, application: str, extra: dict[str, str]) -> "subprocess.Popen[bytes]":
        argv = ["-m", "daphne", "-v", "0", "-b", "127.0.0.1", "-p", str(port), application]
        return self._start(f"server-{port}", argv, extra)

    def _start(self, name: str, argv: list[str], extra: dict[str, str], **pipes: Any) -> "subprocess.Popen[bytes]":
        with (Path(self._folder.name) / f"{name}.log").open("ab") as log:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log, **pipes}
            process = subprocess.Popen(  # noqa: S603 - its own programs
                [sys.executable, *argv],
                cwd=ROOT,
                env={**os.environ, **extra},
                stderr=log,
                start_new_session=True,
                **pipes,
            )
        self._running.append(process)
        return process

    def _show_last_words(self) -> None:
        for log in sorted(Path(self._folder.name).glob("*.log")):
            if text := log.read_text(errors="replace").strip():
                sys.stderr.write(f"{log.stem}: {last_line(text)}\n")
