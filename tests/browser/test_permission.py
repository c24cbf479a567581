"""An agent asks for leave: the panel appears by itself, a button decides, and somebody else's decision is told."""

import re
import uuid

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Held, Open, both_sizes
from tests.browser.stage import Json, Stage

pytestmark = pytest.mark.once

OPTIONS = [
    {"option_id": "yes", "name": "Yes, delete them", "kind": "allow_once"},
    {"option_id": "no", "name": "No", "kind": "reject_once"},
]


def ask(stage: Stage) -> None:
    stage.runner.ask_permission(stage.dispatch, str(uuid.uuid4()), OPTIONS)


@both_sizes
@pytest.mark.scenario("I7", "J1")
def test_a_request_appears_and_a_button_decides_it(stage: Stage, open_page: Open) -> None:
    page = open_page("owner", stage.task_url())
    expect(page.locator("[data-connection=live]")).to_be_attached()
    ask(stage)
    expect(page.get_by_role("heading", name="The agent asks for permission")).to_be_in_viewport()
    expect(page.locator(".tabs [aria-current]")).to_have_attribute("data-pending", "permission")
    page.get_by_role("button", name="Deny: No").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-permission]")).to_have_count(0)
    expect(page.locator("#live")).to_have_text("Decided: No")
    expect(page.locator(".history-question[data-state=answered]")).to_contain_text("No")
    expect(page.locator(".tabs [aria-current]")).to_have_attribute("data-pending", "")
    assert stage.runner.decided() == "no"


def test_while_the_answer_is_on_its_way_nothing_can_be_pressed_twice(stage: Stage, open_page: Open) -> None:
    ask(stage)
    page = open_page("owner", stage.task_url())
    held = Held()
    page.route("**/api/v1/permissions/**", held.hold)
    page.get_by_role("button", name="Allow: Yes, delete them").click()
    expect(page.get_by_role("button", name="Allow: Sending…")).to_be_disabled()
    expect(page.get_by_role("button", name="Deny: No")).to_be_disabled()
    held.go()
    expect(page.locator("[data-permission]")).to_have_count(0)
    assert len(held.routes) == 1
    assert stage.runner.decided() == "yes"


def test_a_failure_is_said_and_trying_again_decides(stage: Stage, open_page: Open) -> None:
    ask(stage)
    page = open_page("owner", stage.task_url())
    page.route("**/api/v1/permissions/**", lambda route: route.abort())
    page.get_by_role("button", name="Allow: Yes, delete them").click()
    expect(page.get_by_role("alert").filter(has_text=re.compile("could not be reached"))).to_be_focused()
    page.unroute("**/api/v1/permissions/**")
    page.get_by_role("button", name="Allow: Yes, delete them").click()
    expect(page.locator("[data-permission]")).to_have_count(0)
    assert stage.runner.decided() == "yes"


@pytest.mark.scenario("G2")
def test_whoever_comes_second_is_told_what_was_picked(stage: Stage, open_page: Open) -> None:
    ask(stage)
    page = open_page("owner", stage.task_url())
    held = Held()
    page.route("**/api/v1/permissions/**", held.hold)
    page.get_by_role("button", name="Allow: Yes, delete them").click()
    messages: list[Json] = stage.owner.get(f"/task-sessions/{stage.session}/messages")["results"]
    [asked] = [row for row in messages if row["type"] == "permission_request"]
    stage.answerer.post(f"/permissions/{asked['id']}/answer", {"option_id": "no"})
    expect(page.locator("[data-permission]")).to_have_count(0)
    held.go()
    expect(page.locator("#notices")).to_contain_text("Somebody else decided first: No")


def test_a_request_that_ends_with_its_turn_leaves_the_page_and_the_inbox(stage: Stage, open_page: Open) -> None:
    ask(stage)
    page, inbox = open_page("owner", stage.task_url()), open_page("answerer", "/questions")
    expect(page.locator("[data-permission]")).to_have_count(1)
    expect(inbox.locator("[data-permission]")).to_have_count(1)
    stage.runner.finish(stage.dispatch)
    expect(page.locator("[data-permission]")).to_have_count(0)
    expect(inbox.locator("[data-permission]")).to_have_count(0)
    expect(page.locator(".history-question")).to_contain_text("Over before somebody decided it.")
