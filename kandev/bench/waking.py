"""From the commit of an answer in one process to the return of the wait in another, above the layer's own delay."""

import datetime as dt
import socket
import threading
import time

from channels.layers import get_channel_layer
from django.utils import timezone

from clarifications import answers, bundles, claiming, delivering, leases
from clarifications.claiming import Lost
from clarifications.models import LeaseKind, WaiterLease
from kandev.bench import clientlayer, seeding
from kandev.bench.looping import Loop
from kandev.bench.report import Plan, Row, median
from kandev.bench.seeding import Asked, Scene
from kandev.bench.stage import Client, Server
from kandev.bench.waiters import wait_request
from tasks import hints

APART_S = 0.01


def measure(client: Client, server: Server, scene: Scene, plan: Plan, here: Loop) -> Row:
    found = [_once(server, scene, one) for one in seeding.asked(scene, plan.wakes + 2)][2:]
    layer = _layer(client, here, plan.wakes)
    above = (median(found) - layer) * 1e3
    figures = f"{above:.1f} ms above: {median(found) * 1e3:.1f} ms, the layer alone {layer * 1e3:.1f} ms"
    return Row("answer committed to waiter returning", "at most 5 ms above the layer", figures, above <= 5)


def _once(server: Server, scene: Scene, asked: Asked) -> float:
    """Seconds from the commit here, where the hint is given, to the last byte of the wait that `server` holds."""
    committed: list[float] = []

    def note() -> None:
        committed.append(time.monotonic())

    waiting = _Waiting(server, scene, asked)
    bundle = bundles.reach(scene.principal, asked.pending_id)
    said = answers.clean({"rejected": True}, bundle.rows)
    topic = leases.topic(asked.pending_id)
    hints.listen(topic, note)
    try:
        claim = claiming.claim(scene.principal, bundle, said, timezone.now() + dt.timedelta(seconds=5))
    finally:
        hints.unlisten(topic, note)
    returned = waiting.returned()
    assert not isinstance(claim, Lost)
    delivering.deliver(claim, bundle.session)
    return returned - committed[0]


class _Waiting:
    """A wait that the server holds, read in a thread of its own."""

    def __init__(self, server: Server, scene: Scene, asked: Asked) -> None:
        self._link = socket.create_connection(("127.0.0.1", server.port), 10)
        self._link.sendall(wait_request(scene, asked).encode())
        self._at = 0.0
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        while not WaiterLease.objects.filter(pending_id=asked.pending_id, kind=LeaseKind.REST).exists():
            time.sleep(APART_S)
        time.sleep(3 * APART_S)  # it looks once more before it sleeps

    def _read(self) -> None:
        head = self._link.recv(65536)
        self._at = time.monotonic()
        assert b" 200 " in head.split(b"\r\n")[0], head
        self._link.close()

    def returned(self) -> float:
        self._thread.join(30)
        return self._at


def _layer(client: Client, here: Loop, count: int) -> float:
    client("listen", url=_layer_url())
    layer = get_channel_layer()
    for _ in range(count + 2):
        here.run(layer.group_send(clientlayer.GROUP, {"type": "bench", "sent": time.monotonic()}))
        time.sleep(APART_S)
    return median(client("delays", count=count + 2)["delays"][2:])


def _layer_url() -> str:
    from django.conf import settings

    return str(settings.REDIS_URL)
