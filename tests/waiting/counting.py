"""What a server process holds open."""

from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.recovery.world import World


def threads(world: World) -> int:
    status = Path(f"/proc/{world.home.pid}/status").read_text(encoding="utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("Threads:")))


def connections(world: World) -> int:
    """Open database connections of the product: backends on PostgreSQL, file handles on SQLite."""
    url = world.product.database_url
    name = urlsplit(url).path.rpartition("/")[2]
    if url.startswith("sqlite"):
        links = (link.resolve().name for link in Path(f"/proc/{world.home.pid}/fd").iterdir() if link.exists())
        return sum(link == name for link in links)
    with psycopg.connect(url) as link:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
        row = link.execute(sql, [name]).fetchone()
    assert row is not None
    return int(row[0])


def handles(world: World) -> int:
    return len(list(Path(f"/proc/{world.home.pid}/fd").iterdir()))
