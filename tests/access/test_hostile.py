"""A newcomer who means no good, at a real server: every address, with what no client should send.

Whatever it is, the answer is no 500 and no page, an error is the error of contract 3, and the server goes on.
"""

import contextlib
import http.client
import json
import re
import socket
import uuid
from collections.abc import Iterator

import pytest

from tests.access import routes
from tests.support.processes import HOST, Product, Server

pytestmark = [pytest.mark.once, pytest.mark.timeout(240)]

CHANGED = ("/api/v1/workspaces/{}", "/api/v1/tasks/{}")
METHODS = ("HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "FOO", "get", "CONNECT")
QUERIES = (
    "limit=0&limit=-1&timeout_s=nan&format=html",
    "limit=1e9&a=%FF&%00",
    "limit=1000000000&cursor=" + "x" * 3000,
    "cursor=%00&created_since=0000-00-00T00:00:00Z",
    "state=%00&workspace=1&workspace_id=" + "1" * 400,
    "created_since=9999-12-31T23:59:59-23:59&timeout_s=",
)
SUFFIXES = ("/", "%2F", "%00", ";x")
BODIES = (
    b"",
    b"null",
    b"{}",
    b'{"a":NaN}',
    b'{"a":1,"a":2}',
    b"[" * 30_000,
    b"\xff\xfe",
    b'{"title":"\\ud800","content":"\\u0000"}',
    b'{"a":"' + b"x" * (1 << 20) + b'"}',
)
KINDS = ("text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "\xff")
HEADS = (
    {"Accept": "text/html"},
    {
        "If-None-Match": "*",
        "If-Match": '"x"',
        "If-Modified-Since": "Wed, 21 Oct 2035 07:28:00 GMT",
        "Range": "bytes=0-1",
    },
    {"Cookie": "sessionid=\xff" + "a" * 2000, "X-HTTP-Method-Override": "DELETE", "HX-Request": "true"},
    {"Host": "evil.example"},
    {"Authorization": "Bearer kdv_pat_\xff"},
    {"Authorization": "Basic eDp5", "Content-Encoding": "gzip"},
)
RAW = (
    b"GET /api/v1/boot?x=\xff HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /api/v1/tasks/\xff HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /api/v1/boot HTTP/1.1\r\nHost: {host}\r\nX-A: a\x01b\r\n\r\n",
    b"GET /mcp?\xff HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /api/v1/boot HTTP/1.0\r\n\r\n",
)


class Caller:
    """One connection of the owner of one workspace; `unknown` stands for every id."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.server = next(process for process in product.processes if isinstance(process, Server))
        self.link = http.client.HTTPConnection(HOST, self.server.port, timeout=30)
        self.unknown = str(uuid.uuid4())

    def call(self, method: str, path: str, body: bytes | None = None, **head: str) -> tuple[int, dict[str, str], bytes]:
        given = {"Authorization": f"Bearer {self.product.tokens['owner']}", "Content-Type": "application/json", **head}
        self.link.putrequest(method, path, skip_host="Host" in given, skip_accept_encoding=True)
        length = {"Content-Length": str(len(body or b""))} if body is not None or method not in ("GET", "HEAD") else {}
        for name, value in {**given, **length}.items():
            self.link.putheader(name, value)
        self.link.endheaders(body)
        got = self.link.getresponse()
        raw = got.read()
        return got.status, {name.lower(): value for name, value in got.getheaders()}, raw

    def is_well(self, method: str, path: str, body: bytes | None = None, **head: str) -> None:
        status, headers, raw = self.call(method, path, body, **head)
        said = f"{method} {path[:120]} {str(body)[:60]} {head}: {status} {raw[:300]!r}"
        assert status < 500 or (path.partition("?")[0].endswith("/wait") and status == 504), said
        if status >= 400 and method != "HEAD":
            assert headers["content-type"] == "application/json", said
            refusal = json.loads(raw)
            assert {"error", "code"} <= set(refusal), said
            assert ("fields" in refusal) == (status == 400), said
        elif "/docs" not in path:
            assert "html" not in headers.get("content-type", ""), said


@pytest.fixture(scope="module")
def caller(template: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    product = Product(template, tmp_path_factory.mktemp("hostile"))  # type: ignore[arg-type]
    try:
        product.start()
        made = Caller(product)
        with contextlib.closing(made.link):
            yield made
            assert made.call("GET", "/readyz")[0] == 200
            assert "Traceback" not in product.logs(), product.logs()[-6000:]
    finally:
        product.close()


def paths() -> list[str]:
    found = {route for route in routes.django_routes() if route.startswith("/api/v1/")}
    return sorted(found | {"/api/v1/clarification/{}/wait", "/api/v1/nowhere"})


@pytest.mark.parametrize("route", paths())
def test_nothing_that_is_sent_to_an_address_breaks_it(caller: Caller, route: str) -> None:
    path = route.replace("{}", caller.unknown)
    for method in METHODS:
        caller.is_well(method, path, b"{}")
    for query in QUERIES:
        caller.is_well("GET", f"{path}?{query}")
    for suffix in SUFFIXES:
        caller.is_well("GET", path + suffix)
    for body in BODIES:
        caller.is_well("PATCH" if route in CHANGED else "POST", path, body)
    for kind in KINDS:
        caller.is_well("POST", path, b'{"a":1}', **{"Content-Type": kind})
    for head in HEADS:
        caller.is_well("GET", path, None, **head)


@pytest.mark.parametrize("raw", RAW)
def test_what_the_server_itself_refuses_is_no_page(caller: Caller, raw: bytes) -> None:
    with socket.create_connection((HOST, caller.server.port), 10) as link:
        link.sendall(raw.replace(b"{host}", HOST.encode()).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        got = b"".join(iter(lambda: link.recv(65536), b""))
    head, _, body = got.partition(b"\r\n\r\n")
    assert re.match(rb"HTTP/1\.[01] 4\d\d ", head)
    assert b"html" not in got.lower()
    assert not body or {"error", "code"} <= set(json.loads(body))
