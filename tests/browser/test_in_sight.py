"""What a person has to see is not covered and not beyond the edge; who is signed out or too late is told."""

import pytest
from playwright.sync_api import WebSocketRoute, expect

from tests.browser.conftest import Open, both_sizes
from tests.browser.stage import TWO, Stage

pytestmark = pytest.mark.once

Size = tuple[int, int]


@both_sizes
def test_a_form_is_seen_from_its_first_question_to_what_became_of_it(stage: Stage, open_page: Open, size: Size) -> None:
    for number in range(12):
        stage.prompt(stage.session, f"More {number}")
    stage.ask(TWO)
    page = open_page("owner", f"/tasks/{stage.task}/open")
    expect(page.get_by_role("radio", name="PostgreSQL")).to_be_in_viewport()
    page.get_by_role("button", name="Skip all…").click()
    for name in ("Skip without an answer", "Back"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Back", exact=True).click()
    page.get_by_role("radio", name="SQLite").check()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Some questions are not answered yet")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Control+Enter")
    outcome = page.locator("[data-outcome]")
    expect(outcome).to_be_focused()
    expect(outcome).to_be_in_viewport(ratio=1)


def test_a_session_that_ended_elsewhere_says_so_and_keeps_the_text(stage: Stage, open_page: Open) -> None:
    stage.ask()
    page = open_page("owner", stage.task_url())
    page.get_by_label("In your own words").fill("Neither")
    stage.owner.post(f"/task-sessions/{stage.session}/complete")
    expect(page.locator("[data-outcome]")).to_contain_text("This session has ended")
    expect(page.get_by_role("button", name="Copy my text")).to_be_visible()
    expect(page.locator("[data-outcome]").get_by_role("button", name="Answer as new message")).to_have_count(0)
    expect(page.get_by_text("It takes no more messages.")).to_be_attached()
    expect(page.locator("[data-composer]")).to_have_count(0)


def test_who_signed_out_in_another_tab_is_told(stage: Stage, open_page: Open) -> None:
    page = open_page("owner", "/questions")
    sockets: list[WebSocketRoute] = []

    def pass_on(route: WebSocketRoute) -> None:
        sockets.append(route)
        route.connect_to_server()

    page.route_web_socket("**/ws/", pass_on)
    page.goto(stage.task_url())
    expect(page.locator("[data-connection=live]")).to_be_attached()
    page.context.clear_cookies()
    sockets[0].close(code=4401)
    expect(page.get_by_role("link", name="Sign in again")).to_be_visible()
