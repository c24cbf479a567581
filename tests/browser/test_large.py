"""A board of 1,000 tasks and a session of 100,000 messages in a browser: bounded, usable, and gentle to the server."""

import itertools
import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import House, Open, both_sizes
from tests.browser.stage import Stage

pytestmark = pytest.mark.once

TASKS, MESSAGES, MOST_NODES = 1_000, 100_000, 6_000
RESTS, LONGEST_REST_MS = 3, 6_000
SEED = """
from kandev.bench import seeding
from tasks.models import Session, Task, Workspace
from turns.models import Turn
scene = seeding.Scene(None, "", Workspace.objects.get(pk="{workspace}"))
made = [session.task for session, _ in seeding.sessions(scene, {tasks})]
Task.objects.filter(pk__in=[task.pk for task in made[::2]]).update(state="review")
session = Session.objects.get(pk="{session}")
seeding.noise(session, Turn.objects.filter(session=session).latest("started_at"), {messages})
"""
FIGURES = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const loaded = performance.getEntriesByType("resource").reduce((sum, one) => sum + one.decodedBodySize, 0);
  return {firstByte: page.responseStart, parsed: page.domInteractive, bytes: page.decodedBodySize + loaded,
          nodes: document.querySelectorAll("*").length};
}"""


def crowd(house: House, stage: Stage, messages: int) -> None:
    """Half of the tasks in review; the stage's session has the messages."""
    names = {"workspace": stage.workspace, "session": stage.session, "tasks": TASKS, "messages": messages}
    house.product.manage("shell", "-v0", "-c", SEED.format(**names))


def figures(page: Page, what: str) -> dict[str, Any]:
    """Told with `-s`; docs/speed.md has what was seen. Only what does not depend on the machine is asserted."""
    page.evaluate("() => { performance.mark('usable') }")
    found = dict(page.evaluate(FIGURES))
    found["usable"] = page.evaluate("() => performance.getEntriesByName('usable')[0].startTime")
    print(what, json.dumps({key: round(value) for key, value in found.items()}))
    return found


@both_sizes
def test_both_stay_usable(house: House, stage: Stage, open_page: Open, size: tuple[int, int]) -> None:
    crowd(house, stage, MESSAGES)
    page = open_page("owner", f"/?workspace={stage.workspace}")
    expect(page.locator("[data-connection=live]")).to_be_attached()
    assert figures(page, "board")["nodes"] < MOST_NODES
    column = page.locator("#column-review")
    expect(column.locator(".task-card")).to_have_count(100)
    column.get_by_role("link", name=f"and {TASKS // 2 - 100} more").click()
    expect(column.locator(".task-card")).to_have_count(TASKS // 2)
    expect(page.locator(".column")).to_have_count(1)
    pending_id = stage.ask()
    page = open_page("owner", f"/tasks/{stage.task}/open")
    page.get_by_role("radio", name="PostgreSQL").check()
    expect(page.locator("[data-connection=live]")).to_be_attached()
    expect(page.locator("#transcript .entry").last).to_be_attached()
    assert figures(page, "task page")["nodes"] < MOST_NODES
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("[data-outcome]")).to_be_visible()
    assert [one["status"] for one in stage.bundle(pending_id)["questions"]] == ["answered"]


def test_a_board_that_took_long_is_left_alone_for_longer(house: House, stage: Stage, open_page: Open) -> None:
    crowd(house, stage, 10)
    page = open_page("owner", f"/?workspace={stage.workspace}")
    expect(page.locator("[data-connection=live]")).to_be_attached()
    page.evaluate(RECORD)
    for number in range(40):
        stage.owner.call("PATCH", f"/tasks/{stage.task}", {"title": f"Title {number}"})
    expect(page.locator(f"#task-{stage.task}")).to_contain_text("Title 39")
    fetches: list[list[float]] = page.evaluate("() => window.fetches")
    assert 1 < len(fetches) < 40
    for (begun, ended), (again, _) in itertools.pairwise(fetches):
        assert again - ended >= min(RESTS * (ended - begun), LONGEST_REST_MS) - 1


RECORD = """() => {
  window.fetches = [];
  const board = document.getElementById("columns");
  board.addEventListener("htmx:beforeRequest", () => window.fetches.push([performance.now(), 0]));
  board.addEventListener("htmx:afterRequest", () => { window.fetches.at(-1)[1] = performance.now(); });
}"""
