"""Late answers and messages in a real browser: sent told from queued, nothing lost, one message for many tries."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Held, Open, both_sizes
from tests.browser.stage import ONE, Stage

pytestmark = pytest.mark.once


def superseded(stage: Stage) -> str:
    """A question that nobody answered before the conversation went on."""
    pending_id = stage.ask()
    stage.runner.finish(stage.dispatch)
    stage.prompt(stage.session, "Go on without it")
    stage.runner.finish(stage.runner.dispatched(2))
    return pending_id


def open_late(page: Page) -> None:
    page.get_by_role("button", name="Answer as new message").click()
    expect(page.locator("#late").get_by_role("heading", name="Answer as new message")).to_be_focused()


@both_sizes
@pytest.mark.scenario("L1", "L3", "L6")
def test_history_offers_the_answer_as_a_message_and_says_sent(stage: Stage, open_page: Open) -> None:
    pending_id = superseded(stage)
    page = open_page("owner", stage.task_url())
    entry = page.locator(".history-question")
    expect(entry).to_contain_text("Not answered. The conversation went on without it.")
    expect(page.get_by_text("is waiting for your answer")).to_have_count(0)
    open_late(page)
    page.locator("#late").get_by_role("radio", name="SQLite").check()
    page.get_by_role("button", name="Send as new message").click()
    expect(page.locator("[data-outcome]")).to_contain_text("Sent to the agent as a new message.")
    prompt = stage.runner.dispatched(3)["prompt"]
    assert "Which database?" in prompt
    assert "SQLite" in prompt
    assert stage.bundle(pending_id)["questions"][0]["status"] == "pending"


@pytest.mark.scenario("L3")
def test_a_busy_agent_gets_it_from_the_queue_and_the_page_says_so(stage: Stage, open_page: Open) -> None:
    pending_id = stage.ask()
    stage.runner.finish(stage.dispatch)
    stage.prompt(stage.session, "Go on")
    stage.runner.dispatched(2)
    page = open_page("owner", stage.task_url())
    open_late(page)
    page.locator("#late").get_by_role("radio", name="PostgreSQL").check()
    page.get_by_role("button", name="Send as new message").click()
    expect(page.locator("[data-outcome]")).to_contain_text("Queued as a new message")
    expect(page.get_by_role("region", name="Queue")).to_contain_text("1 message is queued")
    assert stage.bundle(pending_id)["state"] == "superseded_history"


@both_sizes
@pytest.mark.scenario("L2", "R36")
def test_an_answer_that_meets_not_active_goes_on_as_one_message(stage: Stage, open_page: Open) -> None:
    stage.ask()
    stage.runner.finish(stage.dispatch)
    page = open_page("owner", stage.task_url())
    page.get_by_role("radio", name="SQLite").check()
    page.get_by_label("In your own words").fill("and soon")
    held = Held()
    page.route("**/respond", held.hold)
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("button", name="Sending…")).to_be_visible()
    stage.prompt(stage.session, "Go on without it")
    stage.runner.finish(stage.runner.dispatched(2))
    held.go()
    expect(page.locator("[data-outcome]")).to_contain_text(re.compile("as a new message"))
    expect(page.locator("[data-outcome]")).not_to_contain_text("reached the agent")
    assert "and soon" in stage.runner.dispatched(3)["prompt"]
    assert len([text for text in stage.user_messages() if "and soon" in text]) == 1


@both_sizes
@pytest.mark.scenario("L1", "L5")
def test_the_answer_as_a_message_is_offered_in_one_place(stage: Stage, open_page: Open) -> None:
    stage.ask()
    stage.runner.finish(stage.dispatch)
    page = open_page("owner", stage.task_url())
    expect(page.locator("[data-connection=live]")).to_be_attached()
    page.get_by_label("In your own words").fill("and soon")
    stage.prompt(stage.session, "Go on without it")
    expect(page.locator("[data-outcome]")).to_contain_text("The conversation went on without an answer")
    expect(page.locator(".history-question")).to_contain_text("Not answered.")
    offer = page.get_by_role("button", name="Answer as new message")
    expect(offer).to_have_count(1)
    offer.click()
    expect(offer).to_have_count(0)
    page.route("**/late-answer", lambda route: route.abort())
    page.get_by_role("button", name="Send as new message").click()
    expect(page.get_by_text("The server could not be reached.")).to_be_visible()
    stage.runner.finish(stage.runner.dispatched(2))
    expect(page.get_by_text("Ready for a message.")).to_be_attached()
    expect(offer).to_have_count(0)
    page.unroute("**/late-answer")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("[data-outcome]")).to_contain_text("Sent to the agent as a new message.")
    expect(offer).to_have_count(1)
    assert "and soon" in stage.runner.dispatched(3)["prompt"]


@pytest.mark.scenario("L4", "R36")
def test_a_skip_that_meets_not_active_only_closes(stage: Stage, open_page: Open) -> None:
    stage.ask()
    stage.runner.finish(stage.dispatch)
    page = open_page("owner", stage.task_url())
    page.get_by_role("button", name="Skip…").click()
    held = Held()
    page.route("**/respond", held.hold)
    page.get_by_role("button", name="Skip without an answer").click()
    expect(page.get_by_role("button", name="Sending…")).to_be_attached()
    stage.prompt(stage.session, "Go on without it")
    stage.runner.finish(stage.runner.dispatched(2))
    held.go()
    expect(page.locator("[data-outcome]")).to_contain_text("Nothing was sent.")
    assert stage.user_messages() == ["Go", "Go on without it"]
    assert len(stage.runner.dispatches) == 2


@pytest.mark.scenario("L5")
def test_an_unclear_late_answer_is_retried_under_its_identity_even_after_a_reload(
    stage: Stage, open_page: Open
) -> None:
    superseded(stage)
    page = open_page("owner", stage.task_url())
    open_late(page)
    late = page.locator("#late")
    late.get_by_label("In your own words").fill("as before")
    page.route("**/late-answer", swallow_the_reply)
    late.get_by_role("button", name="Send as new message").click()
    expect(late.get_by_role("alert").filter(has_text="could not be reached")).to_be_visible()
    page.unroute("**/late-answer")
    page.reload()
    open_late(page)
    expect(late.get_by_label("In your own words")).to_have_value("as before")
    late.get_by_role("button", name="Send as new message").click()
    expect(page.locator("[data-outcome]")).to_contain_text(re.compile("new message"))
    assert len([text for text in stage.user_messages() if "as before" in text]) == 1


def swallow_the_reply(route: Route) -> None:
    """The server gets it; the page never hears so."""
    route.fetch()
    route.abort()


@pytest.mark.scenario("L1", "R36")
def test_in_an_ended_session_it_says_so_beforehand_and_keeps_the_text(stage: Stage, open_page: Open) -> None:
    superseded(stage)
    stage.owner.post(f"/task-sessions/{stage.session}/complete")
    page = open_page("owner", stage.task_url())
    open_late(page)
    late = page.locator("#late")
    expect(late).to_contain_text("This session has ended, so no answer can reach it.")
    late.get_by_label("In your own words").fill("for the archive")
    expect(late.get_by_role("button", name="Copy text")).to_be_visible()
    late.get_by_role("button", name="Send as new message").click()
    expect(late.get_by_role("alert").filter(has_text="has ended")).to_be_visible()
    expect(late.get_by_label("In your own words")).to_have_value("for the archive")


@both_sizes
@pytest.mark.scenario("L3")
def test_a_message_is_sent_to_an_idle_agent_and_queued_for_a_busy_one(stage: Stage, open_page: Open) -> None:
    page = open_page("owner", stage.task_url())
    text = page.get_by_label("Message to the agent")
    text.fill("While you are at it")
    text.press("Control+Enter")
    expect(page.locator("[data-composer-state]")).to_contain_text("Queued")
    expect(page.get_by_role("region", name="Queue")).to_contain_text("While you are at it")
    expect(page.locator("#transcript")).not_to_contain_text("While you are at it")
    stage.runner.finish(stage.dispatch)
    stage.runner.finish(stage.runner.dispatched(2))
    expect(page.locator("#transcript")).to_contain_text("While you are at it")
    expect(page.get_by_role("region", name="Queue")).to_have_count(0)
    expect(page.get_by_text("Ready for a message.")).to_be_visible()
    text.fill("Now this")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("[data-composer-state]")).to_contain_text("Sent.")
    assert stage.runner.dispatched(3)["prompt"]


@pytest.mark.scenario("L5")
def test_a_message_that_could_not_be_sent_is_kept_and_sent_once(stage: Stage, open_page: Open) -> None:
    stage.runner.finish(stage.dispatch)
    page = open_page("owner", stage.task_url())
    text = page.get_by_label("Message to the agent")
    text.fill("Only once")
    page.route("**/messages", swallow_the_reply)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("Not sent. Send again to retry.")).to_be_visible()
    page.unroute("**/messages")
    page.reload()
    expect(text).to_have_value("Only once")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("[data-composer-state]")).to_contain_text("Sent.")
    assert stage.user_messages().count("Only once") == 1


def test_a_message_beside_an_open_question_says_what_it_does(stage: Stage, open_page: Open) -> None:
    stage.wait(stage.ask(ONE))
    page = open_page("owner", stage.task_url())
    expect(page.get_by_label("Message to the agent")).to_be_hidden()
    page.get_by_role("button", name="Write a message instead").click()
    expect(page.get_by_label("Message to the agent")).to_be_focused()
    expect(page.get_by_text("A question is open.")).to_be_visible()
