"""The rows in the order in which they disturb each other least, each as soon as it is measured."""

from collections.abc import Collection, Iterator

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from kandev.bench import answers, fanout, listing, looping, queries, seeding, sizes, waiters, waking
from kandev.bench.report import Plan, Row
from kandev.bench.stage import Stage

MISSING = {
    "answers": "needs PostgreSQL",
    "waiters": "needs PostgreSQL",
    "processes": "needs PostgreSQL and Redis",
    "waking": "needs PostgreSQL and Redis",
    "fanout": "needs PostgreSQL and Redis",
}


def run(plan: Plan, rows: Collection[str]) -> Iterator[Row]:
    """Measures the named rows on a database that is empty so far."""
    call_command("migrate", interactive=False, verbosity=0)
    have = ["needs PostgreSQL"] if connection.vendor == "postgresql" else []
    have += ["needs PostgreSQL and Redis"] if have and settings.REDIS_URL else []
    possible = [row for row in rows if MISSING.get(row, "") in ("", *have)]
    with Stage(settings.REDIS_URL) as stage:
        yield from _alone(plan, possible)
        yield from _one_process(stage, plan, possible)
        yield from _two_processes(stage, plan, possible)
        if "sizes" in possible:
            yield sizes.measure(seeding.scene("sizes"), plan)
    yield from (Row(row, "see docs/speed.md", MISSING[row], None) for row in rows if row not in possible)


def _alone(plan: Plan, rows: Collection[str]) -> Iterator[Row]:
    if "queries" in rows:
        yield queries.measure(seeding.scene("queries"), plan)
    if "list" in rows:
        yield listing.measure(seeding.scene("list"), plan)


def _one_process(stage: Stage, plan: Plan, rows: Collection[str]) -> Iterator[Row]:
    client = stage.client()
    if "answers" in rows:
        product, bare = stage.server(), stage.bare()
        yield answers.against_bare(client, product.ready(), bare, seeding.scene("answers"), plan)
        product.kill()
        bare.kill()
    if "waiters" in rows:
        for measure in (waiters.rest, waiters.mcp):  # each in a process of its own, without freed memory
            product = stage.server().ready()
            yield measure(client, product, seeding.scene(measure.__name__), plan)
            client("release")


def _two_processes(stage: Stage, plan: Plan, rows: Collection[str]) -> Iterator[Row]:
    if not {"processes", "waking", "fanout"} & set(rows):
        return
    client, servers = stage.client(), [stage.server(redis=True), stage.server(redis=True)]
    one, two = (server.ready() for server in servers)
    if "processes" in rows:
        yield answers.two_against_one(client, (one, two), seeding.scene("processes"), plan)
    two.kill()
    with looping.member() as here:
        if "waking" in rows:
            yield waking.measure(client, one, seeding.scene("waking"), plan, here)
        if "fanout" in rows:
            bare = stage.bare()
            yield fanout.measure(stage, one, bare, seeding.scene("fan-out"), plan, here)
            bare.kill()
    one.kill()
