"""The benchmark itself: its parts run, with numbers too small to mean anything, and what it counts is exact."""

import pytest
from django.test.utils import override_settings

from kandev.bench import listing, queries, report, seeding, sizes
from kandev.bench.report import TINY
from tasks import instances
from tests.support import services
from tests.support.databases import product_environment, run_python

QUERIES = "8 for 1, 8 for 4, 8 for 4 after a long transcript"


@pytest.mark.parametrize("size", [1, 4])
def test_an_answer_is_counted_exactly(transactional_db: None, size: int) -> None:
    """The claim: session, rows, their update, the claim, the revision; the end: claim, rows, events."""
    scene = seeding.scene("someone")
    said = queries.statements(scene, seeding.asked(scene, 1, size)[0])
    assert [text.split()[0] for text in said] == [
        "SELECT",
        "SELECT",
        "UPDATE",
        "INSERT",
        "UPDATE",
        "UPDATE",
        "UPDATE",
        "INSERT",
    ]


def test_the_rows_without_servers_run_on_either_database(transactional_db: None) -> None:
    instances.register()
    assert queries.measure(seeding.scene("one"), TINY).figures == QUERIES
    listed = listing.measure(seeding.scene("two"), TINY)
    assert int(listed.figures.split()[0]) <= 6
    with override_settings(KANDEV_RATE_ANSWER="100000/m"):
        assert "projection" in sizes.measure(seeding.scene("three"), TINY).figures


@pytest.mark.once
def test_every_row_is_measured_with_real_processes() -> None:
    environment = product_environment("sqlite://:memory:")
    where = ["--database", services.postgres_url(), "--redis", services.redis_url()]
    done = run_python("manage.py", "bench", "--tiny", *where, environment=environment)
    lines = done.stdout.splitlines()
    assert len(lines) == len(report.ROWS) + 1, done.stdout  # waiters are two lines
    assert all(line.count(" | ") == 3 for line in lines)
    assert "not measured" not in done.stdout


@pytest.mark.once
def test_a_line_says_goal_verdict_and_figures() -> None:
    rows = [report.Row("name", "goal", "1.0 x", met) for met in (True, False, None)]
    assert [row.line().split(" | ")[2] for row in rows] == ["met", "MISSED", "not measured"]
