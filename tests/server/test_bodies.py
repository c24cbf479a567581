"""Bodies without a length, HEAD without a body, one sign-in: through a real server."""

import contextlib
import http.client
import json
from collections.abc import Iterator

import pytest

from tests.support.processes import Product, Server

pytestmark = pytest.mark.once


@pytest.fixture
def wire(product: Product) -> Iterator[http.client.HTTPConnection]:
    """A bare connection to the server, which keeps what it is told about lengths."""
    server = next(process for process in product.processes if isinstance(process, Server))
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as opened:
        yield opened


def head(product: Product) -> dict[str, str]:
    return {"Authorization": f"Bearer {product.tokens['owner']}", "Content-Type": "application/json"}


def chunks(raw: bytes) -> Iterator[bytes]:
    for at in range(0, len(raw), 65536):
        yield raw[at : at + 65536]


def test_a_body_in_chunks_is_read_and_bounded_like_any_other(
    product: Product, wire: http.client.HTTPConnection
) -> None:
    big = json.dumps({"name": "x", "more": "y" * (5 << 18)}).encode()
    for raw, status, said in ((b'{"name": "in chunks"}', 201, "in chunks"), (big, 413, "too_large")):
        wire.request("POST", "/api/v1/workspaces", body=chunks(raw), headers=head(product), encode_chunked=True)
        got = wire.getresponse()
        body = json.loads(got.read())
        assert (got.status, body.get("name") or body["code"]) == (status, said)


def test_a_connection_goes_on_after_a_large_head(product: Product, wire: http.client.HTTPConnection) -> None:
    wire.request("HEAD", "/api/v1/schema", headers=head(product))
    first = wire.getresponse()
    assert (first.status, first.read()) == (200, b"")
    wire.request("GET", "/healthz")
    assert wire.getresponse().status == 200


def test_options_says_nothing(product: Product, wire: http.client.HTTPConnection) -> None:
    for path in ("/api/v1/docs", "/api/v1/schema", "/api/v1/boot"):
        wire.request("OPTIONS", path, headers=head(product))
        got = wire.getresponse()
        assert (got.status, b"method_not_allowed" in got.read()) == (405, True)
