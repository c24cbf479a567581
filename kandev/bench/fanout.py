"""One change told to many sockets of another process, against a bare Channels consumer on the same layer."""

import json
import time
from collections.abc import Callable

from channels.layers import get_channel_layer
from django.db import transaction
from django.utils import timezone

from kandev.bench import bare_group, seeding
from kandev.bench.looping import Loop
from kandev.bench.report import Plan, Row, median, spread
from kandev.bench.seeding import Scene
from kandev.bench.stage import Client, Server, Stage
from kandev.demo.processes import LocalError
from tasks import events
from tasks.models import Task

PATIENCE_S = 60.0
SUMMARY = {"revision": 1, "pending_action": "clarification", "primary_session_pending_action": "clarification"}


def measure(stage: Stage, server: Server, bare: Server, scene: Scene, plan: Plan, here: Loop) -> Row:
    task = seeding.sessions(scene, 1)[0][0].task
    ours, floor = stage.client(), stage.client()
    subscribe = json.dumps({"id": 1, "type": "request", "action": "subscribe", "payload": {"task_id": str(task.pk)}})
    header = f"Authorization: Bearer {scene.token}\r\n"
    ours("open", port=server.port, path="/ws/", header=header, count=plan.sockets, say=subscribe)
    floor("open", port=bare.port, path="/", header="", count=plan.sockets, say="")
    tell, tell_bare = _product(task), _bare(here)
    pairs = [(_seconds(ours, tell), _seconds(floor, tell_bare)) for _ in range(plan.changes + 1)][1:]
    ratios = [theirs / mine for mine, theirs in pairs]
    ratio, rate = median(ratios), plan.sockets / median(mine for mine, _ in pairs)
    figures = (
        f"{ratio:.2f} x ({spread(ratios)}) with {plan.sockets:,} sockets: {rate:.0f} deliveries/s, "
        f"bare {plan.sockets / median(theirs for _, theirs in pairs):.0f}/s"
    )
    for client in (ours, floor):
        client("close")
    return Row("fan-out of one change", "at least 0.5 x bare", figures, ratio >= 0.5)


def _product(task: Task) -> Callable[[], None]:
    """As any change does: an outbox row in a transaction, told by the publisher here to the process there."""

    def tell() -> None:
        with transaction.atomic():
            events.emit(events.task_event("task.summary.updated", task, {"summary": SUMMARY}, timezone.now()))

    return tell


def _bare(here: Loop) -> Callable[[], None]:
    layer = get_channel_layer()
    text = json.dumps({"type": "notification", "action": "task.summary.updated", "payload": {"summary": SUMMARY}})

    def tell() -> None:
        here.run(layer.group_send(bare_group.GROUP, {"type": "bench.told", "text": text}))

    return tell


def _seconds(client: Client, tell: Callable[[], None]) -> float:
    """From the change to the last socket that heard of it."""
    client("expect", frames=1)
    started = time.monotonic()
    tell()
    found = client("arrived", within=PATIENCE_S)
    if found["at"] is None:
        raise LocalError(f"{found['left']} sockets heard nothing ({found['broken']} closed)")
    return float(found["at"]) - started
