"""One product for a module, one scene for a test."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.mcp.scenes import Runner, Scene
from tests.support import services
from tests.support.databases import Template
from tests.support.processes import Product, Server

MakeScene = Callable[..., Scene]


@pytest.fixture(scope="module")
def served(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Two server processes on one database."""
    made = Product(template, tmp_path_factory.mktemp("mcp"), {"REDIS_URL": services.redis_url()})
    try:
        made.start()
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def make_scene() -> Iterator[MakeScene]:
    """`make_scene(product)`: a session whose turn runs; `make_scene(product, viewer="viewer")` with members."""
    runners: list[Runner] = []

    def make(product: Product, **members: str) -> Scene:
        server = product.processes[0]
        assert isinstance(server, Server)
        agent = f"agent-{uuid.uuid4().hex[:8]}"
        runners.append(Runner(server, product.tokens["runner-1"], agent))
        return _scene(product, server, runners[-1], agent, members)

    yield make
    for runner in runners:
        runner.close()


def _scene(product: Product, server: Server, runner: Runner, agent: str, members: dict[str, str]) -> Scene:
    rest = product.client("owner", server)
    people = [{"user": name, "role": role} for name, role in members.items()]
    workspace = rest.post("/workspaces", json={"name": agent, "members": people}).json()["id"]
    body: dict[str, Any] = {"workspace": workspace, "title": agent, "agent": agent, "prompt": f"start {agent}"}
    made = rest.post("/tasks", json=body)
    assert made.status_code == 201, made.text
    started = runner.dispatches.get(timeout=20)
    return Scene(
        product, server, runner, workspace, made.json()["id"], started["session_id"], started["mcp"]["token"], members
    )


@pytest.fixture
def scene(served: Product, make_scene: MakeScene) -> Scene:
    return make_scene(served)
