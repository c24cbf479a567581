"""The PostgreSQL and Redis of a test run: given by the environment, else embedded and started at first use."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_keepers: list[subprocess.Popen[str]] = []


@cache
def postgres_url() -> str:
    """A server on which databases may be created."""
    return os.environ.get("TEST_DATABASE_URL") or _embedded("postgres")


@cache
def redis_url() -> str:
    return os.environ.get("TEST_REDIS_URL") or _embedded("redis")


def stop_all() -> None:
    """Ends what this run started, and waits for it."""
    while _keepers:
        _keepers.pop().communicate(timeout=30)
    postgres_url.cache_clear()
    redis_url.cache_clear()


def _embedded(kind: str) -> str:
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.support.keeper", kind],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _keepers.append(keeper)
    assert keeper.stdout
    url = keeper.stdout.readline().strip()
    if not url:
        raise RuntimeError(f"The embedded {kind} server did not start; its own message stands above.")
    return url
