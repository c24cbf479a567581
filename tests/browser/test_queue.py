"""What waits in the queue, on the page: visible, taken back, edited."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Held, Open, both_sizes
from tests.browser.stage import Stage
from tests.support.waiting import until

pytestmark = pytest.mark.once


@both_sizes
@pytest.mark.scenario("L3")
def test_a_queued_message_is_removed_and_another_one_edited(stage: Stage, open_page: Open) -> None:
    page = open_page("owner", stage.task_url())
    stage.prompt(stage.session, "never mind this")
    stage.prompt(stage.session, "paint it green")
    queue = page.get_by_role("region", name="Queue")
    expect(queue).to_contain_text("2 messages are queued")
    expect(page.locator(".entries")).not_to_contain_text("paint it green")
    queue.get_by_role("listitem").filter(has_text="never mind").get_by_role("button", name="Remove").click()
    expect(queue).to_contain_text("1 message is queued")
    queue.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Message to the agent")).to_have_value("paint it green")
    expect(page.get_by_label("Message to the agent")).to_be_focused()
    expect(queue).to_have_count(0)
    page.get_by_label("Message to the agent").fill("paint it blue")
    page.get_by_role("button", name="Send").click()
    expect(queue).to_contain_text("paint it blue")
    stage.runner.finish(stage.dispatch)
    assert stage.runner.dispatched(2)["prompt"] == "paint it blue"
    assert stage.user_messages() == ["Go", "paint it blue"]


def test_one_that_went_out_meanwhile_is_not_taken_back(stage: Stage, open_page: Open) -> None:
    page = open_page("owner", stage.task_url())
    stage.prompt(stage.session, "and then this")
    held = Held()
    page.route("**/messages/*", held.hold)
    page.get_by_role("button", name="Remove").click()
    until(lambda: held.routes, what="the request")
    stage.runner.finish(stage.dispatch)
    stage.runner.dispatched(2)
    held.go()
    expect(page.locator("#notices")).to_contain_text("It has gone out already")
    expect(page.locator(".entries")).to_contain_text("and then this")
