"""Who has waited longest comes first, and since when is shown."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.pages.conftest import Signed, World, question


def ask_in(world: World, title: str) -> None:
    world.ask(world.session(task=world.new_task(title)), question(f"{title}?"))


def titles(page: bytes) -> list[str]:
    return re.findall(r'class="task-title" dir="auto">([^<]+)<', page.decode())


@pytest.mark.scenario("I1")
def test_the_longest_blocked_task_comes_first_with_its_time(world: World, signed: Signed) -> None:
    for title in ("older", "newer"):
        ask_in(world, title)
    world.new_task("quiet")
    page = signed("owner").get("/").content
    assert titles(page) == ["older", "newer", "quiet", "The task"]
    assert page.count(b'class="since"') == 2
    inbox = signed("owner").get("/questions").content.decode()
    assert inbox.index("older?") < inbox.index("newer?")


def test_the_times_cost_the_same_for_one_and_for_many(world: World, signed: Signed) -> None:
    owner, counts = signed("owner"), []
    for number in range(5):
        ask_in(world, f"task {number}")
        owner.get("/")
        with CaptureQueriesContext(connection) as captured:
            owner.get("/")
        counts.append(len(captured))
    assert len(set(counts)) == 1
