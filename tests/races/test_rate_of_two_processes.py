"""Limits hold across processes (B77): two hundred attempts at once through two servers pass the limit by nothing."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.conftest import MakeProduct
from tests.mcp.scenes import Scene
from tests.support.processes import Product, Server
from tests.support.waiting import at_once
from tests.support.web import LOCAL

LIMIT, CALLS = 20, 200
pytestmark = [pytest.mark.scenario("H8", "R38"), pytest.mark.timeout(300)]


@pytest.fixture
def pair(make_product: MakeProduct) -> Product:
    product = make_product(redis=True, KANDEV_RATE_ANSWER=f"{LIMIT}/h", KANDEV_RATE_TOKEN=f"{LIMIT}/h")
    product.start()
    product.start()
    return product


def storm(product: Product, token: str, method: str, path: str, body: Any) -> list[httpx2.Response]:
    """CALLS requests from one starting line, half of them to each process."""
    servers = [process for process in product.processes if isinstance(process, Server)]
    headers = {"Authorization": f"Bearer {token}"}
    limits = httpx2.Limits(max_connections=50)
    clients = [
        httpx2.Client(base_url=f"{server.url}/api/v1", headers=headers, timeout=120, **LOCAL, limits=limits)
        for server in servers
    ]
    try:
        found = at_once(*[partial(clients[n % 2].request, method, path, json=body) for n in range(CALLS)])
    finally:
        for client in clients:
            client.close()
    answers = [one for one in found if isinstance(one, httpx2.Response)]
    assert len(answers) == CALLS, [one for one in found if one not in answers][:3]
    return answers


def test_answers_are_counted_for_a_person_whichever_process_he_asks(
    pair: Product, make_scene: Callable[..., Scene]
) -> None:
    scene = make_scene(pair)
    pending_id = scene.ask()
    scene.runner.ready()
    scene.until_state(pending_id, "active_detached")
    body, path = scene.answer(pending_id), f"/clarification/{pending_id}/respond"
    answers = storm(pair, pair.tokens["owner"], "POST", path, body)
    statuses = Counter(one.status_code for one in answers)
    assert statuses == {200: LIMIT, 429: CALLS - LIMIT}
    assert sum(one.json()["claimed"] for one in answers if one.status_code == 200) == 1
    refused = [one for one in answers if one.status_code == 429]
    assert all(int(one.headers["retry-after"]) > 0 for one in refused)
    assert {one.json()["code"] for one in refused} == {"rate_limited"}


def test_failed_tokens_are_counted_for_an_address_whichever_process_it_asks(pair: Product) -> None:
    statuses = Counter(one.status_code for one in storm(pair, "kdv_pat_guess", "GET", "/boot", None))
    assert statuses[401] <= LIMIT
    assert set(statuses) == {401, 429}
    late = pair.client("owner").get("/boot")
    assert late.status_code == 200, "a good token still works"
