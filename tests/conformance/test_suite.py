"""What the official MCP conformance suite says of both endpoints.

It applies where it tests a server as it is. The other scenarios call tools, resources and prompts of a test server by
name (`test_simple_text`, `test://…`), or ask for logging, completion, sampling and elicitation, which neither surface
offers: what they ask for is not declared in `initialize`, so no client would. docs/mcp.md lists them.
"""

import subprocess
from collections.abc import Callable

import pytest

from tests.conformance.proxy import Proxy
from tests.mcp.scenes import Scene
from tests.support import conformance
from tests.support.processes import Product

APPLY = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection", "server-sse-multiple-streams")
pytestmark = [pytest.mark.scenario("B1"), pytest.mark.timeout(600), pytest.mark.once]


@pytest.mark.parametrize("surface", ["/mcp", "/mcp/session"])
def test_the_suite_finds_nothing(served: Product, make_scene: Callable[..., Scene], surface: str) -> None:
    program, scene = conformance.find(), make_scene(served)
    assert program
    token = {"/mcp": served.tokens["owner"], "/mcp/session": scene.token}[surface]
    for name in APPLY:
        with Proxy(scene.server.port, token) as url:
            asked = [program, "server", "--url", url + surface, "--scenario", name]
            ran = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=110)
        assert ran.returncode == 0, f"{name}\n{ran.stdout[-3000:]}\n{ran.stderr[-2000:]}"
