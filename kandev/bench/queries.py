"""Statements of one answer, from the claim's first to the response, whatever the bundle's size and the transcript's."""

import datetime as dt

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clarifications import answers, bundles, claiming, delivering
from clarifications.claiming import Lost
from kandev.bench import seeding
from kandev.bench.report import Plan, Row
from kandev.bench.seeding import Asked, Scene
from turns.models import Turn

FRAMING = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK")


def measure(scene: Scene, plan: Plan) -> Row:
    one, four, long = (seeding.asked(scene, 1, size)[0] for size in (1, 4, 4))
    seeding.noise(long.session, Turn.objects.get(session=long.session), plan.few_messages)
    counted = {
        name: count(scene, asked) for name, asked in (("1", one), ("4", four), ("4 after a long transcript", long))
    }
    figures = ", ".join(f"{number} for {name}" for name, number in counted.items())
    return Row("queries in one answer", "at most 8", figures, max(counted.values()) <= 8)


def count(scene: Scene, asked: Asked) -> int:
    """Statements of this thread, transaction framing aside; a rejection of a detached bundle."""
    return len(statements(scene, asked))


def statements(scene: Scene, asked: Asked) -> list[str]:
    bundle = bundles.reach(scene.principal, asked.pending_id)
    said = answers.clean({"rejected": True}, bundle.rows)
    with CaptureQueriesContext(connection) as captured:
        claim = claiming.claim(scene.principal, bundle, said, timezone.now() + dt.timedelta(seconds=5))
        assert not isinstance(claim, Lost)
        delivering.deliver(claim, bundle.session)
    return [query["sql"] for query in captured.captured_queries if not query["sql"].startswith(FRAMING)]
