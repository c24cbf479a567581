"""What is typed into a question is there after a reload, in another session's place and on another device."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.stage import TWO, Stage
from tests.support.waiting import until

pytestmark = pytest.mark.once


def test_another_device_shows_what_was_typed_here(stage: Stage, open_page: Open) -> None:
    stage.ask(TWO)
    desk = open_page("owner", stage.task_url())
    desk.get_by_role("radio", name="SQLite").check()
    with desk.expect_response("**/draft") as saved:
        desk.get_by_label("In your own words").first.fill("small but")
    assert saved.value.status == 204
    phone = open_page("owner", "/questions")
    expect(phone.get_by_role("radio", name="SQLite")).to_be_checked()
    expect(phone.get_by_label("In your own words").first).to_have_value("small but")
    with phone.expect_response("**/draft"):
        phone.get_by_role("checkbox", name="Unit tests").check()
    other = open_page("answerer", "/questions")
    expect(other.get_by_role("radio", name="SQLite")).not_to_be_checked()
    desk.reload()
    expect(desk.get_by_role("checkbox", name="Unit tests")).to_be_checked()
    expect(desk.get_by_label("In your own words").first).to_have_value("small but")


def test_what_the_server_did_not_get_stays_here_and_is_sent_again(stage: Stage, open_page: Open) -> None:
    stage.ask()
    page = open_page("owner", stage.task_url())
    away = [True]
    page.route("**/draft", lambda route: route.abort() if away else route.continue_())
    with page.expect_event("requestfailed"):
        page.get_by_label("In your own words").fill("typed without a server")
    away.clear()
    page.reload()
    expect(page.get_by_label("In your own words")).to_have_value("typed without a server")
    other = open_page("owner", stage.task_url())

    def arrived() -> bool:
        other.reload()
        return other.get_by_label("In your own words").input_value() == "typed without a server"

    until(arrived, what="the draft on another device")


def test_an_answered_draft_is_gone_everywhere(stage: Stage, open_page: Open) -> None:
    waiting = stage.wait(stage.ask())
    page = open_page("owner", stage.task_url())
    with page.expect_response("**/draft"):
        page.get_by_label("In your own words").fill("go on")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("[data-outcome]")).to_contain_text("Your answer reached the agent.")
    assert waiting.result(20)[0] == 200
    stage.ask()
    expect(page.locator("[data-bundle]:not([data-settled])").get_by_label("In your own words")).to_have_value("")
