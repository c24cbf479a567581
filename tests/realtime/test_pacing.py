"""A real Daphne and a client that does not read."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from websockets.sync.client import ClientConnection, connect

from tests.realtime import flood
from tests.support.keeper import free_port
from tests.support.processes import Process
from tests.support.waiting import until
from tests.support.web import LOCAL

pytestmark = pytest.mark.once

Serve = Callable[[bool], str]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    started: list[Process] = []

    def start(paced: bool) -> str:
        port = free_port()
        argv = [sys.executable, "-m", "daphne", "-p", str(port), "tests.realtime.flood:application"]
        started.append(Process(argv, {**os.environ, "FLOOD_PACED": str(int(paced))}, tmp_path / "log"))
        url = f"127.0.0.1:{port}"
        until(lambda: taken(url) is not None, what="Daphne answers")
        return url

    yield start
    for process in started:
        process.kill9()


def taken(url: str) -> int | None:
    try:
        return int(httpx2.get(f"http://{url}/", timeout=5, **LOCAL).text)
    except httpx2.TransportError:
        return None


def open_without_reading(url: str) -> ClientConnection:
    return connect(f"ws://{url}/", max_size=None, max_queue=1, close_timeout=0.1, proxy=None)


def standstill(url: str) -> int:
    """The number of taken frames once it no longer grows."""
    seen = [-1]

    def stands() -> bool:
        seen.append(taken(url) or 0)
        return len(seen) > 20 and len(set(seen[-10:])) == 1

    until(stands, every=0.1, what="the flood stands still")
    return seen[-1]


def test_a_server_does_not_buffer_for_a_client_that_does_not_read(serve: Serve) -> None:
    url = serve(True)
    with open_without_reading(url) as socket:
        held = standstill(url)
        assert 0 < held < flood.FRAMES / 2
        for _ in range(flood.FRAMES):
            assert len(socket.recv(10)) == len(flood.FRAME)
    assert taken(url) == flood.FRAMES


def test_without_pacing_it_would(serve: Serve) -> None:
    """The negative control: the whole flood ends up in the server's memory."""
    url = serve(False)
    with open_without_reading(url):
        assert standstill(url) == flood.FRAMES


def test_a_client_that_leaves_without_reading_ends_the_flood(serve: Serve) -> None:
    url = serve(True)
    socket = open_without_reading(url)
    standstill(url)
    socket.socket.close()
    until(lambda: taken(url) == flood.FRAMES, what="what waited goes on, to nobody")
