"""From a task to its question, on a desk and from a phone's sheet: the server decides, the page only follows."""

import json
import re
from contextlib import suppress

import pytest
from playwright.sync_api import Error, Locator, Page, Route, WebSocketRoute, expect

from tests.browser.conftest import PHONE, Held, Open, both_sizes
from tests.browser.stage import ONE, Caller, Stage

pytestmark = pytest.mark.once

Size = tuple[int, int]


class Asking:
    """A second task whose secondary session has a question; its primary session is clean."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.task = stage, stage.new_task("Choose a database")
        self.primary = stage.owner.post(f"/tasks/{self.task}/task-sessions", {"agent": "demo"})["id"]
        self.session = stage.owner.post(f"/tasks/{self.task}/task-sessions", {"agent": "demo"})["id"]
        stage.prompt(self.session, "Begin")
        self.dispatch = stage.runner.dispatched(2)
        self.agent = Caller(stage.url, self.dispatch["mcp"]["token"])
        body = {"session_id": self.session, "questions": ONE}
        self.pending_id = self.agent.post("/clarification/request", body)["pending_id"]
        self.agent.http.close()

    def skip(self) -> None:
        self.stage.owner.post(f"/clarification/{self.pending_id}/respond", {"answers": [], "rejected": True})


def link_to(page: Page, asking: Asking, size: Size) -> Locator:
    """The other task's link beside the open task: in the side list, on a phone in the sheet."""
    if size == PHONE:
        page.get_by_role("button", name="Tasks").click()
        return page.locator(f'dialog [data-task="{asking.task}"] a')
    return page.locator(f'aside [data-task="{asking.task}"] a')


def is_closed(page: Page) -> None:
    expect(page.locator("dialog[open]")).to_have_count(0)


@both_sizes
@pytest.mark.scenario("J1")
def test_an_icon_leads_to_the_session_with_the_question(stage: Stage, open_page: Open, size: Size) -> None:
    asking = Asking(stage)
    page = open_page("owner", f"/tasks/{asking.task}?session={asking.primary}")
    page.goto(stage.task_url())
    link_to(page, asking, size).click()
    page.wait_for_url(f"**/tasks/{asking.task}?session={asking.session}")
    expect(page.get_by_role("heading", name="The agent asks")).to_be_in_viewport()
    is_closed(page)


@pytest.mark.scenario("J1")
def test_a_card_of_the_board_leads_there_too(stage: Stage, open_page: Open) -> None:
    asking = Asking(stage)
    page = open_page("owner", "/")
    card = page.locator(f'.task-card[data-task="{asking.task}"]')
    expect(card).to_contain_text("Has a question")
    card.get_by_role("link").click()
    page.wait_for_url(f"**/tasks/{asking.task}?session={asking.session}")
    expect(page.get_by_role("radio", name="PostgreSQL")).to_be_in_viewport()


@both_sizes
@pytest.mark.scenario("J2", "J3")
def test_what_changed_meanwhile_opens_the_task_alone(stage: Stage, open_page: Open, size: Size) -> None:
    asking = Asking(stage)
    page = open_page("owner", stage.task_url())
    link = link_to(page, asking, size)
    held = Held()
    page.route("**/open?*", held.hold)
    link.click()
    page.wait_for_function("() => true")
    asking.skip()
    held.go()
    page.wait_for_url(re.compile(f"/tasks/{asking.task}$"))
    is_closed(page)
    expect(page.locator("[data-bundle]")).to_have_count(0)


@both_sizes
@pytest.mark.scenario("J4")
def test_a_task_that_vanished_moves_nothing(stage: Stage, open_page: Open, size: Size) -> None:
    asking = Asking(stage)
    page = open_page("owner", stage.task_url())
    link = link_to(page, asking, size)
    held = Held()
    page.route("**/open?*", held.hold)
    link.click()
    page.wait_for_function("() => true")
    assert stage.owner.call("DELETE", f"/tasks/{asking.task}")[0] == 204
    held.go()
    expect(page.get_by_text("This task is gone.")).to_be_visible()
    assert page.url == stage.task_url()


@pytest.mark.scenario("J5")
def test_of_two_overlapping_loads_the_older_never_wins(stage: Stage, open_page: Open) -> None:
    asking = Asking(stage)
    page = open_page("owner", "/")
    card = page.locator(f'.task-card[data-task="{asking.task}"] a')
    held = Held()
    page.route("**/open?*", held.hold)
    card.click()
    card.click()
    page.wait_for_function("() => true")
    assert len(held.routes) == 2
    arrives(page, held.routes[0], "/questions?older")
    assert page.url == f"{stage.url}/"
    held.routes[1].fulfill(body=json.dumps({"url": "/questions?newer"}), content_type="application/json")
    page.wait_for_url("**/questions?newer")
    expect(page.locator(".notice")).to_have_count(0)


def arrives(page: Page, route: Route, url: str) -> None:
    """The server's decision comes in, and whatever the page does with it is done; a request that the page gave up has
    no use for it.
    """
    with suppress(Error):
        route.fulfill(body=json.dumps({"url": url}), content_type="application/json")
    assert page.evaluate("() => fetch('/healthz').then((reply) => reply.status)") == 200


@pytest.mark.scenario("J6")
@pytest.mark.parametrize("size", [PHONE], ids=["phone"])
def test_two_sheets_do_not_disturb_each_other_and_a_closed_one_is_silent(stage: Stage, open_page: Open) -> None:
    asking = Asking(stage)
    page = open_page("owner", stage.task_url())
    held = Held()
    page.route("**/open?*", held.hold)
    link = link_to(page, asking, PHONE)
    link.click()
    page.wait_for_function("() => true")
    page.evaluate(SECOND_SHEET)
    page.locator(f'#second [data-task="{asking.task}"] a').click()
    page.wait_for_function("() => true")
    page.locator("#second").evaluate("sheet => sheet.close()")
    held.routes[0].fulfill(body=json.dumps({"url": f"/tasks/{asking.task}"}), content_type="application/json")
    page.wait_for_url(f"**/tasks/{asking.task}")


SECOND_SHEET = """() => {
  const first = document.getElementById("task-sheet");
  const second = first.cloneNode(true);
  second.id = "second";
  second.removeAttribute("open");
  document.body.append(second);
  second.showModal();
}"""


@pytest.mark.scenario("J6")
@pytest.mark.parametrize("size", [PHONE], ids=["phone"])
def test_a_change_of_layout_ends_what_a_sheet_had_begun(stage: Stage, open_page: Open) -> None:
    asking = Asking(stage)
    page = open_page("owner", stage.task_url())
    held = Held()
    page.route("**/open?*", held.hold)
    link_to(page, asking, PHONE).click()
    page.wait_for_function("() => true")
    page.set_viewport_size({"width": 1280, "height": 800})
    is_closed(page)
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Tasks").click()
    expect(page.locator("dialog[open]")).to_have_count(1)
    arrives(page, held.routes[0], f"/tasks/{asking.task}")
    expect(page.locator("dialog[open]")).to_have_count(1)
    assert page.url == stage.task_url()


@both_sizes
@pytest.mark.scenario("J7")
def test_a_failing_decision_strands_nobody(stage: Stage, open_page: Open, size: Size) -> None:
    asking = Asking(stage)
    page = open_page("owner", stage.task_url())
    page.route("**/open?*", fail)
    link_to(page, asking, size).click()
    page.wait_for_url(re.compile(f"/tasks/{asking.task}$"))
    expect(page.get_by_role("heading", name="Choose a database")).to_be_visible()


def fail(route: Route) -> None:
    route.fulfill(status=500, body="{}", content_type="application/json")


@pytest.mark.scenario("I1", "J1")
@pytest.mark.parametrize("path", ["task", "/questions"])
def test_a_page_that_missed_events_catches_up_with_the_next_snapshot(stage: Stage, open_page: Open, path: str) -> None:
    """The server sends one whenever events may have been lost between the processes."""
    page, deaf = open_page("owner", "/settings/tokens"), [False]
    sockets: list[WebSocketRoute] = []

    def pass_on(route: WebSocketRoute) -> None:
        sockets.append(route)
        server = route.connect_to_server()
        server.on_message(lambda text: None if deaf[0] else route.send(text))

    page.route_web_socket("**/ws/", pass_on)
    page.goto(stage.task_url() if path == "task" else f"{stage.url}{path}")
    expect(page.locator("[data-connection=live]")).to_be_attached()
    deaf[0] = True
    question = page.locator(f'[data-bundle="{stage.ask()}"]')
    expect(question).to_have_count(0)
    told = {"task_id": stage.task, "sessions": [], "tasks": []}
    sockets[-1].send(json.dumps({"type": "notification", "action": "snapshot", "payload": told}))
    expect(question).to_be_attached()


@pytest.mark.scenario("I7")
def test_a_board_that_was_clean_shows_a_new_question(stage: Stage, open_page: Open) -> None:
    page = open_page("owner", "/")
    card = page.locator(f'.task-card[data-task="{stage.task}"]')
    expect(card).to_have_attribute("data-pending", "")
    expect(page.locator("[data-connection=live]")).to_be_attached()
    pending_id = stage.ask()
    expect(card).to_have_attribute("data-pending", "clarification")
    stage.owner.post(f"/clarification/{pending_id}/respond", {"answers": [], "rejected": True})
    expect(card).to_have_attribute("data-pending", "")


@pytest.mark.scenario("I2")
def test_an_icon_follows_the_greatest_revision_and_ignores_silence(stage: Stage, open_page: Open) -> None:
    page = open_page("owner", stage.task_url())
    tab = page.locator(f'[data-session="{stage.session}"]')
    expect(page.locator("[data-connection=live]")).to_be_attached()
    stage.ask()
    expect(tab).to_have_attribute("data-pending", "clarification")
    page.evaluate(LEARN, [stage.session, {"pending_action": None, "pending_action_revision": revision(0, 1)}])
    expect(tab).to_have_attribute("data-pending", "clarification")
    page.evaluate(LEARN, [stage.session, {"pending_action_revision": revision(10**30, 1)}])
    expect(tab).to_have_attribute("data-pending", "clarification")
    page.evaluate(LEARN, [stage.session, {"pending_action": None, "pending_action_revision": revision(10**30, 1)}])
    expect(tab).to_have_attribute("data-pending", "")
    page.evaluate(
        LEARN, [stage.session, {"pending_action": "clarification", "pending_action_revision": revision(2, 9)}]
    )
    expect(tab).to_have_attribute("data-pending", "")


LEARN = """async ([session, payload]) => {
  (await import("/static/kandev/icons.js")).learn(session, payload);
}"""


def revision(epoch: int, sequence: int) -> dict[str, object]:
    return {"epoch": str(epoch), "sequence": sequence}


def test_a_lost_connection_is_shown_and_made_up_for(stage: Stage, open_page: Open) -> None:
    page = open_page("owner", "/questions")
    sockets: list[WebSocketRoute] = []
    reachable = [True]

    def pass_on(route: WebSocketRoute) -> None:
        sockets.append(route)
        if reachable:
            route.connect_to_server()
        else:
            route.close()

    page.route_web_socket("**/ws/", pass_on)
    page.goto(stage.task_url())
    expect(page.locator("[data-connection=live]")).to_be_attached()
    reachable.clear()
    sockets[0].close()
    expect(page.get_by_text("Reconnecting…").first).to_be_visible()
    stage.ask()
    reachable.append(True)
    expect(page.get_by_role("heading", name="The agent asks")).to_be_visible(timeout=20_000)
    expect(page.locator("[data-connection=live]")).to_be_attached()
