"""Claim, list and projection beside few and beside many messages, half of them in the asking session itself, and as
many open questions of other people in both cases.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from django.db import connection

from clarifications import discovering, responding
from kandev.bench import seeding
from kandev.bench.report import Plan, Row, median
from kandev.bench.seeding import Scene
from tasks.models import Session
from turns.models import Message, Turn

Times = dict[str, float]


def measure(scene: Scene, plan: Plan) -> Row:
    seeding.asked(seeding.scene(f"beside {scene.user}"), plan.waiters)  # open questions of somebody else
    (session, turn), (other, other_turn) = seeding.sessions(scene, 2)

    def fill(count: int) -> None:
        for place in ((session, turn), (other, other_turn)):
            seeding.noise(*place, count // 2)
        seeding.analyze()

    fill(plan.few_messages)
    _times(scene, session, turn, 3)
    few = _times(scene, session, turn, plan.samples)
    fill(plan.messages - plan.few_messages)
    _times(scene, session, turn, 3)
    many = _times(scene, session, turn, plan.samples)
    ratios = {name: many[name] / few[name] for name in few}
    figures = ", ".join(f"{name} {ratio:.2f} x ({many[name] * 1e3:.1f} ms)" for name, ratio in ratios.items())
    goal = f"at most 1.2 x with {plan.messages:,} messages against {plan.few_messages:,}"
    return Row("claim, list, projection", goal, figures, max(ratios.values()) <= 1.2)


def _times(scene: Scene, session: Session, turn: Turn, samples: int) -> Times:
    """The medians, in seconds."""
    found: dict[str, list[float]] = {"claim": [], "list": [], "projection": []}
    for _ in range(samples):
        one = seeding.ask(session, turn)
        Message.objects.bulk_create(one.rows)
        reads: dict[str, Callable[[], object]] = {
            "projection": lambda: Session.objects.projected().get(pk=session.pk),
            "list": lambda: discovering.list_pending(scene.principal),
            "claim": lambda pending_id=one.pending_id: responding.respond(  # type: ignore[misc]
                scene.principal, pending_id, {"rejected": True}
            ),
        }
        for name, read in reads.items():
            started = _spent()
            read()
            found[name].append(_spent() - started)
    return {name: median(times) for name, times in found.items()}


def _spent() -> float:
    """CPU seconds of this thread and of its database process, which other work on the machine does not change; where
    that process is not ours to see (SQLite has none, a server may be elsewhere), the time that passed.
    """
    if connection.vendor == "postgresql":
        connection.ensure_connection()
        with suppress(OSError):
            seen = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text()
            return time.thread_time() + int(seen.split()[0]) / 1e9
    return time.perf_counter()
