"""DATABASE_URL to Django's settings: SQLite (WAL, immediate transactions) or PostgreSQL with psycopg's pool."""

from pathlib import Path
from typing import Any

import environ

SQLITE_PRAGMAS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"


def database_from_url(url: str, base: Path, pool: int, lock_timeout_s: float, idle_s: float) -> dict[str, Any]:
    """Django's DATABASES entry for `url`; a relative SQLite path is relative to `base`.

    `pool` bounds a process' PostgreSQL connections; `lock_timeout_s` bounds every wait for a lock, so that a
    blocked answer becomes a retryable 503 instead of hanging (promise B78 in docs/promises.md). After `idle_s`
    without a statement PostgreSQL ends a transaction: a process that was frozen in the middle of one holds its locks no
    longer than it counts as alive (E10).
    """
    config: dict[str, Any] = environ.Env.db_url_config(url)
    engine = config["ENGINE"]
    if engine == "django.db.backends.sqlite3":
        return _sqlite(config, base, lock_timeout_s)
    if engine == "django.db.backends.postgresql":
        return _postgresql(config, pool, lock_timeout_s, idle_s)
    raise ValueError(f"DATABASE_URL must name SQLite or PostgreSQL, not {engine}")


def _sqlite(config: dict[str, Any], base: Path, lock_timeout_s: float) -> dict[str, Any]:
    path = Path(config["NAME"])
    if str(path) != ":memory:":
        path = path if path.is_absolute() else base / path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # texts and password hashes lie there
        config["NAME"] = str(path)
    config["ENGINE"] = "kandev.sqlite"
    # IMMEDIATE takes the write lock at BEGIN, so a transaction that reads before it writes waits instead of failing.
    config["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": lock_timeout_s, "init_command": SQLITE_PRAGMAS}
    return config


def _postgresql(config: dict[str, Any], pool: int, lock_timeout_s: float, idle_s: float) -> dict[str, Any]:
    # A restart of PostgreSQL leaves the pool full of dead connections: each is looked at before it is given out.
    config["CONN_HEALTH_CHECKS"] = True
    options = config.setdefault("OPTIONS", {})
    options["pool"] = {"min_size": 1, "max_size": pool, "timeout": lock_timeout_s, "max_idle": 60}
    limits = {"lock_timeout": lock_timeout_s, "idle_in_transaction_session_timeout": idle_s}
    options["options"] = " ".join(f"-c {name}={int(seconds * 1000)}" for name, seconds in limits.items())
    return config
