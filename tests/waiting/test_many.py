"""Hundreds of waits cost neither threads nor connections, and an answer gets in between them (B6)."""

import asyncio
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from tests.recovery.world import WAITERS, World, answer
from tests.support.waiting import until
from tests.support.web import LOCAL
from tests.waiting.conftest import MakeWorld

MANY, POOL = 300, 8


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


async def wait_all(world: World, pending_id: str) -> list[int]:
    limits = httpx2.Limits(max_connections=None)
    headers = {"Authorization": f"Bearer {world.token}"}
    async with httpx2.AsyncClient(headers=headers, limits=limits, timeout=90, **LOCAL) as client:
        url = f"{world.home.url}/api/v1/clarification/{pending_id}/wait?timeout_s=60"
        got = await asyncio.gather(*[client.get(url) for _ in range(MANY)])
        return [response.status_code for response in got]


@pytest.mark.scenario("B6", "B5")
@pytest.mark.timeout(180)
def test_300_waits_hold_neither_a_thread_nor_a_connection_each(make_world: MakeWorld) -> None:
    world = make_world(KANDEV_DB_POOL=str(POOL), KANDEV_DELIVERY_TIMEOUT_S="30")
    pending_id = world.ask()
    before = threads(world)
    waiting = asyncio.run_coroutine_threadsafe(wait_all(world, pending_id), world.loop.loop)
    until(lambda: world.gauge(WAITERS) == MANY, within=60, what=f"{MANY} waits are registered")
    assert threads(world) - before < 40
    assert connections(world) <= 2 * POOL + 8
    began = time.monotonic()
    status, body = world.respond(pending_id, answer("now"))
    assert (status, body["delivery"]) == (200, "delivered")
    assert time.monotonic() - began < 10
    assert waiting.result(60) == [200] * MANY
    until(lambda: world.gauge(WAITERS) == 0, within=20, what="no wait is left")
