"""Databases for real processes: one migrated template a run, cloned in milliseconds for every product."""

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from tests.support import services
from tests.support.waiting import until

QUICK = {
    "KANDEV_CLAIM_TIMEOUT_S": "5",
    "KANDEV_DELIVERY_TIMEOUT_S": "5",
    "KANDEV_WATCHDOG_S": "60",
    "KANDEV_WAIT_TIMEOUT_S": "120",
    "KANDEV_KEEPALIVE_S": "1",
    "KANDEV_INSTANCE_LEASE_S": "3",
    "KANDEV_PAUSE_GRACE_S": "1",
    "KANDEV_RATE_LOGIN": "100000/m",
    "KANDEV_RATE_TOKEN": "100000/m",
    "KANDEV_RATE_ANSWER": "100000/m",
}
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


def product_environment(database_url: str, **extra: str) -> dict[str, str]:
    """What a process under test sees: nothing of the developer's shell, budgets short enough for a test."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    fixed = {"DATABASE_URL": database_url, "SECRET_KEY": "for-tests-only-" + "k" * 40, "DEBUG": "1"}
    return {**inherited, **QUICK, **fixed, "PYTHONUNBUFFERED": "1", **extra}


def run_python(
    *argv: str, environment: Mapping[str, str], check: bool = True, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """`python ARGV` at the top of the repository; a failure shows what the command wrote."""
    command = [sys.executable, *argv]
    done = subprocess.run(
        command,
        cwd=services.ROOT,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(f"{' '.join(argv)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


@dataclass
class Template:
    """A migrated database with the people of the tests in it (`seed.py`); `clone` gives a copy of its own."""

    kind: str
    folder: Path
    name: str = field(default_factory=lambda: f"kandev_template_{uuid.uuid4().hex[:8]}")
    tokens: dict[str, str] = field(default_factory=dict)

    def build(self) -> None:
        """Separate from the constructor, so that a failing migration still gets its clean-up."""
        if self.kind == "postgres":
            _execute("CREATE DATABASE {}", self.name)
        done = run_python("-m", "tests.support.seed", environment=product_environment(self.url(self.name)))
        self.tokens = json.loads(done.stdout.splitlines()[-1])

    def clone(self) -> str:
        """The URL of a new copy."""
        name = f"kandev_{uuid.uuid4().hex[:12]}"
        if self.kind == "sqlite":
            shutil.copy(self._file(self.name), self._file(name))
        else:
            until(lambda: self._copied(name), what=f"PostgreSQL copies {self.name}")
        return self.url(name)

    def drop(self, url: str) -> None:
        name = Path(urlsplit(url).path).name
        if self.kind == "postgres":
            _execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
            return
        for file in self.folder.glob(f"{name}*"):
            file.unlink()

    def url(self, name: str) -> str:
        if self.kind == "sqlite":
            return f"sqlite:///{self._file(name)}"
        return urlunsplit(urlsplit(services.postgres_url())._replace(path=f"/{name}"))

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.sqlite3"

    def _copied(self, name: str) -> bool:
        """False while a connection of a process that just ended still lingers in the template."""
        try:
            _execute("CREATE DATABASE {} TEMPLATE {}", name, self.name)
        except psycopg.errors.ObjectInUse:
            return False
        return True


def _execute(statement: str, *names: str) -> None:
    with psycopg.connect(services.postgres_url(), autocommit=True) as link:
        link.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
