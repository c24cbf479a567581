"""Hundreds of waits cost neither threads nor connections, and an answer gets in between them (B6)."""

import asyncio
import time

import httpx2
import pytest

from tests.recovery.world import WAITERS, World, answer
from tests.support.waiting import until
from tests.support.web import LOCAL
from tests.waiting.conftest import MakeWorld
from tests.waiting.counting import connections, threads

MANY, POOL = 300, 8


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
