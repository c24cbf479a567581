"""Through real server processes: a commit in one is heard on a socket of the other, also around an outage of Redis."""

import json
import threading
from contextlib import ExitStack
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.conftest import MakeProduct
from tests.realtime.redis_server import Redis
from tests.support.processes import Product, Server
from tests.support.waiting import until


class Listener:
    """A socket whose messages are kept by a thread."""

    def __init__(self, product: Product, server: Server, name: str) -> None:
        head = {"Authorization": f"Bearer {product.tokens[name]}"}
        url = server.url.replace("http", "ws", 1) + "/ws/"
        self._stack = ExitStack()
        self.socket: ClientConnection = self._stack.enter_context(connect(url, additional_headers=head, proxy=None))
        self.heard: list[dict[str, Any]] = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        for text in self.socket:
            self.heard.append(json.loads(text))

    def follow(self, task: str) -> None:
        self.socket.send(
            json.dumps({"id": "s", "type": "request", "action": "subscribe", "payload": {"task_id": task}})
        )
        until(lambda: any(message.get("id") == "s" for message in self.heard), what="the subscription is answered")

    def actions(self) -> list[str]:
        return [message["action"] for message in self.heard if message["type"] == "notification"]

    def close(self) -> None:
        self._stack.close()
        self.thread.join(10)


@pytest.mark.scenario("R18", "R39")
def test_both_processes_tell_a_change_and_an_outage_of_redis_refuses_and_loses_nothing(
    make_product: MakeProduct, redis: Redis
) -> None:
    redis.start()
    product = make_product(REDIS_URL=redis.url)
    servers = [product.start(), product.start()]
    client = product.client("owner", servers[0])
    workspace = client.post("/workspaces", json={"name": "W"}).json()["id"]
    tasks = [client.post("/tasks", json={"workspace": workspace, "title": t}).json()["id"] for t in ("1", "2")]
    listeners = [Listener(product, server, "owner") for server in servers]
    for listener in listeners:
        for task in tasks:
            listener.follow(task)
    assert client.delete(f"/tasks/{tasks[0]}").status_code == 204
    until(lambda: all("task.deleted" in listener.actions() for listener in listeners), what="both hear")
    redis.stop()
    assert client.delete(f"/tasks/{tasks[1]}").status_code == 204
    until(lambda: listeners[0].actions().count("task.deleted") == 2, what="this process' own sockets hear at once")
    redis.start()
    until(lambda: listeners[1].actions().count("task.deleted") == 2, within=30, what="the other's hear afterwards")
    assert listeners[0].actions().count("task.deleted") == 2
    for listener in listeners:
        listener.close()
