"""Requests of every kind leave no connection, no file handle and no thread behind (B12)."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.recovery.world import World, told
from tests.support.waiting import at_once, until
from tests.support.web import LOCAL, signed_in
from tests.waiting.conftest import MakeWorld
from tests.waiting.counting import connections, handles, threads

WAVES, WAVE = 50, 20
HANDSHAKE = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_pending_questions_kandev"}}


def kinds(world: World, pending_id: str) -> list[Callable[[], Any]]:
    """One of each kind: reads, refusals, a write, a page, a wait that ends, and a tool."""
    url, owner = world.home.url, world.product.tokens["owner"]
    api = f"{url}/api/v1"
    with closing(signed_in(world.home.url, "owner")) as browser:
        page = partial(httpx2.get, cookies=dict(browser.cookies), timeout=40, follow_redirects=False, **LOCAL)
    mcp = {"Authorization": f"Bearer {owner}", "Accept": "application/json, text/event-stream"}
    return [
        partial(told, "GET", f"{api}/boot", owner),
        partial(told, "GET", f"{api}/clarifications", owner),
        partial(told, "GET", f"{api}/clarification/{pending_id}", "kdv_pat_nobody"),
        partial(told, "POST", f"{api}/clarification/{pending_id}/respond", owner, {"answers": []}),
        partial(told, "PATCH", f"{api}/tasks/{world.task}", owner, {"title": "again"}),
        partial(told, "GET", f"{api}/clarification/{pending_id}/wait?timeout_s=0.05", world.token),
        *[partial(page, f"{url}{path}") for path in ("/", "/questions", f"/tasks/{world.task}", "/accounts/login/")],
        partial(httpx2.post, f"{url}/mcp", json=HANDSHAKE, headers=mcp, timeout=40, **LOCAL),
    ]


@pytest.mark.scenario("B6")
@pytest.mark.timeout(300)
def test_a_thousand_requests_leave_nothing_open(make_world: MakeWorld) -> None:
    world = make_world()
    pending_id = world.ask()
    calls = kinds(world, pending_id)

    def wave(number: int, width: int = WAVE) -> None:
        found = at_once(*[calls[(number + n) % len(calls)] for n in range(width)])
        assert not [one for one in found if isinstance(one, Exception)]

    for number in range(5):  # threads and connections that are kept for the next request, as many as there may be
        wave(number, 4 * WAVE)
    before = connections(world), handles(world), threads(world)
    for number in range(WAVES):
        wave(number)

    def returned() -> bool:
        now = connections(world), handles(world), threads(world)
        return all(after <= start for after, start in zip(now, before, strict=True))

    until(returned, within=20, every=0.5, what=f"connections, handles and threads are back at {before}")
