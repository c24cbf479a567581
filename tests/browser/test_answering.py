"""The main job in a real browser: an agent asks, a person sees it without reload and answers, the agent gets it."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, Held, Open, both_sizes
from tests.browser.stage import TWO, Stage

pytestmark = pytest.mark.once


def to_next_question(page: Page) -> None:
    """On a phone several questions are steps; on a desk all are seen."""
    if page.viewport_size == {"width": PHONE[0], "height": PHONE[1]}:
        page.get_by_role("button", name="Next").click()


@both_sizes
@pytest.mark.scenario("C1", "I7")
def test_a_question_appears_is_answered_and_reaches_the_agent(stage: Stage, open_page: Open) -> None:
    page = open_page("owner", stage.task_url())
    expect(page.locator("[data-connection=live]")).to_be_attached()
    expect(page.locator("[data-bundle]")).to_have_count(0)

    pending_id = stage.ask(TWO, context="Billing writes forty rows a second.")
    waiting = stage.wait(pending_id)
    expect(page.get_by_role("heading", name="The agent asks 2 questions")).to_be_in_viewport()
    expect(page.get_by_text("Billing writes forty rows a second.")).to_be_visible()
    expect(page.locator(".tabs [aria-current]")).to_have_attribute("data-pending", "clarification")

    page.get_by_role("radio", name="PostgreSQL").check()
    to_next_question(page)
    page.get_by_role("checkbox", name="Unit tests").check()
    page.get_by_role("checkbox", name="Load test").check()
    page.get_by_role("group", name=re.compile("Which checks")).get_by_label("In your own words").fill("only at night")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("[data-outcome]")).to_contain_text("Your answer reached the agent.")

    status, body = waiting.result(20)
    assert status == 200
    assert body["answers"] == [
        {"question_id": "db", "selected_options": ["pg"], "custom_text": ""},
        {"question_id": "checks", "selected_options": ["unit", "load"], "custom_text": "only at night"},
    ]
    expect(page.locator(".tabs [aria-current]")).to_have_attribute("data-pending", "")
    expect(page.locator(".history-question").last).to_contain_text("only at night")


@pytest.mark.scenario("C2")
def test_skip_tells_the_agent_why(stage: Stage, open_page: Open) -> None:
    waiting = stage.wait(stage.ask())
    page = open_page("owner", stage.task_url())
    page.get_by_role("button", name="Skip…").click()
    page.get_by_label("Why? The agent is told.").fill("ask Mira")
    page.get_by_role("button", name="Skip without an answer").click()
    expect(page.locator("[data-outcome]")).to_contain_text("Skipped. The agent is told.")
    status, body = waiting.result(20)
    assert (status, body["rejected"], body["reject_reason"]) == (200, True, "ask Mira")


@both_sizes
@pytest.mark.scenario("D3", "L5")
def test_a_refused_hand_over_keeps_everything_and_a_retry_delivers_it(stage: Stage, open_page: Open) -> None:
    pending_id = stage.ask(TWO)
    stage.runner.finish(stage.dispatch)
    page = open_page("owner", stage.task_url())
    expect(page.get_by_text("The agent has paused. Your answer starts it again.")).to_be_visible()
    page.get_by_role("radio", name="SQLite").check()
    page.get_by_label("In your own words").first.fill("keep it small")
    to_next_question(page)
    page.get_by_role("checkbox", name="Type check").check()
    stage.runner.refusing = True
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert").filter(has_text=re.compile(".+"))).to_be_visible(timeout=40_000)
    expect(page.get_by_role("radio", name="SQLite", include_hidden=True)).to_be_checked()
    expect(page.get_by_role("checkbox", name="Type check")).to_be_checked()
    expect(page.get_by_label("In your own words").first).to_have_value("keep it small")

    stage.runner.refusing = False
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("[data-outcome]")).to_contain_text("Your answer reached the agent.", timeout=40_000)
    assert "keep it small" in stage.runner.dispatched(2)["prompt"]
    assert stage.bundle(pending_id)["questions"][0]["status"] == "answered"


def test_without_a_network_nothing_is_lost_and_trying_again_is_offered(stage: Stage, open_page: Open) -> None:
    waiting = stage.wait(stage.ask())
    page = open_page("owner", stage.task_url())
    page.get_by_label("In your own words").fill("typed on a train")
    page.route("**/respond", lambda route: route.abort())
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("The server could not be reached.")).to_be_visible()
    expect(page.get_by_label("In your own words")).to_have_value("typed on a train")
    page.unroute("**/respond")
    page.get_by_role("button", name="Try again").click()
    assert waiting.result(20)[1]["answers"][0]["custom_text"] == "typed on a train"


def test_a_submission_in_flight_cannot_be_sent_twice(stage: Stage, open_page: Open) -> None:
    waiting = stage.wait(stage.ask())
    page = open_page("owner", stage.task_url())
    held = Held()
    page.route("**/respond", held.hold)
    page.get_by_role("radio", name="SQLite").check()
    page.get_by_role("button", name="Submit").click()
    sending = page.get_by_role("button", name="Sending…")
    expect(sending).to_be_disabled()
    page.locator("[data-question-form]").evaluate("form => form.requestSubmit()")
    assert len(held.routes) == 1
    held.go()
    expect(page.locator("[data-outcome]")).to_contain_text("Your answer reached the agent.")
    assert waiting.result(20)[0] == 200
    assert len(held.routes) == 1


def test_the_loser_sees_the_winners_answer(stage: Stage, open_page: Open) -> None:
    pending_id = stage.ask()
    waiting = stage.wait(pending_id)
    page = open_page("owner", stage.task_url())
    page.get_by_role("radio", name="SQLite").check()
    page.route("**/ws/**", lambda route: route.abort())
    held = Held()
    page.route("**/respond", held.hold)
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("button", name="Sending…")).to_be_visible()
    answer = {"question_id": "db", "selected_options": ["pg"], "custom_text": "first!"}
    stage.answerer.post(f"/clarification/{pending_id}/respond", {"answers": [answer]})
    held.go()
    outcome = page.locator("[data-outcome]")
    expect(outcome).to_contain_text("Somebody else answered first:")
    expect(outcome).to_contain_text("PostgreSQL")
    expect(outcome).to_contain_text("first!")
    assert waiting.result(20)[1]["answers"] == [answer]


def test_a_half_filled_form_says_that_it_was_answered_elsewhere(stage: Stage, open_page: Open) -> None:
    pending_id = stage.ask()
    stage.wait(pending_id)
    page = open_page("owner", stage.task_url())
    expect(page.locator("[data-connection=live]")).to_be_attached()
    page.get_by_label("In your own words").fill("half a thou")
    answer = {"question_id": "db", "selected_options": ["lite"], "custom_text": ""}
    stage.answerer.post(f"/clarification/{pending_id}/respond", {"answers": [answer]})
    outcome = page.locator("[data-outcome]")
    expect(outcome).to_contain_text("Answered elsewhere:")
    expect(outcome).to_contain_text("SQLite")
    expect(page.get_by_role("button", name="Copy my text")).to_be_visible()


def test_a_refresh_of_the_page_wipes_neither_the_form_nor_the_message(stage: Stage, open_page: Open) -> None:
    stage.wait(stage.ask())
    page = open_page("owner", stage.task_url())
    expect(page.locator("[data-connection=live]")).to_be_attached()
    words = page.get_by_label("In your own words")
    words.press_sequentially("half")
    page.get_by_role("radio", name="PostgreSQL").check()
    words.focus()
    stage.runner.say(stage.dispatch, "Meanwhile I read the tests.")
    expect(page.get_by_text("Meanwhile I read the tests.")).to_be_attached()
    expect(words).to_be_focused()
    words.press_sequentially(" done")
    expect(words).to_have_value("half done")
    expect(page.get_by_role("radio", name="PostgreSQL")).to_be_checked()


def test_a_reload_brings_the_draft_back(stage: Stage, open_page: Open) -> None:
    stage.wait(stage.ask(TWO))
    page = open_page("owner", stage.task_url())
    page.get_by_role("radio", name="SQLite").check()
    page.get_by_label("In your own words").last.fill("after lunch")
    page.reload()
    expect(page.get_by_role("radio", name="SQLite")).to_be_checked()
    expect(page.get_by_label("In your own words").last).to_have_value("after lunch")


def test_the_limit_counts_code_points_as_the_server_does(stage: Stage, open_page: Open) -> None:
    waiting = stage.wait(stage.ask())
    page = open_page("owner", stage.task_url())
    words = page.get_by_label("In your own words")
    words.fill("😀" * 2001)
    expect(page.get_by_text("2001 of 2000 characters: too long")).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    expect(words).to_have_attribute("aria-invalid", "true")
    expect(words).to_be_focused()
    words.fill("😀" * 2000)
    expect(page.get_by_text("2000 of 2000 characters")).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    assert waiting.result(20)[1]["answers"][0]["custom_text"] == "😀" * 2000


def test_an_empty_form_is_not_sent_and_a_partly_empty_one_only_on_purpose(stage: Stage, open_page: Open) -> None:
    waiting = stage.wait(stage.ask(TWO))
    page = open_page("owner", stage.task_url())
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("Choose an option or write something. To say nothing, use Skip.")).to_be_visible()
    page.get_by_role("radio", name="SQLite").check()
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("Not answered yet. Submit once more to leave it blank.")).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    assert waiting.result(20)[1]["answers"][1] == {"question_id": "checks", "selected_options": [], "custom_text": ""}


def test_the_keyboard_is_enough(stage: Stage, open_page: Open) -> None:
    waiting = stage.wait(stage.ask(TWO))
    page = open_page("owner", stage.task_url())
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_role("radio", name="SQLite")).to_be_checked()
    page.get_by_role("checkbox", name="Unit tests").focus()
    page.keyboard.press("3")
    expect(page.get_by_role("checkbox", name="Load test")).to_be_checked()
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-outcome]")).to_contain_text("Your answer reached the agent.")
    answers = waiting.result(20)[1]["answers"]
    assert [answer["selected_options"] for answer in answers] == [["lite"], ["load"]]


@both_sizes
@pytest.mark.scenario("L4")
def test_close_and_escape_only_close(stage: Stage, open_page: Open) -> None:
    pending_id = stage.ask()
    waiting = stage.wait(pending_id)
    page = open_page("owner", stage.task_url())
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.get_by_role("radio", name="SQLite").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Submit")).to_be_hidden()
    page.get_by_role("button", name="Show the question").click()
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    page.get_by_role("button", name="Close (answers nothing)").click()
    expect(page.get_by_role("button", name="Submit")).to_be_hidden()
    assert not sent
    assert not waiting.done()
    assert stage.bundle(pending_id)["state"] == "active_live"


def test_the_inbox_shows_it_and_is_enough_to_answer(stage: Stage, open_page: Open) -> None:
    page = open_page("answerer", "/questions")
    expect(page.locator("[data-connection=live]")).to_be_attached()
    pending_id = stage.ask()
    waiting = stage.wait(pending_id)
    mine = page.locator(f'[data-bundle="{pending_id}"]')
    expect(mine).to_contain_text("Move the billing")
    mine.get_by_role("radio", name="PostgreSQL").check()
    mine.get_by_role("button", name="Submit").click()
    expect(mine).to_contain_text("Your answer reached the agent.")
    assert waiting.result(20)[0] == 200


@pytest.mark.scenario("F6")
def test_the_page_tells_a_waiting_agent_from_a_paused_one_while_somebody_writes(stage: Stage, open_page: Open) -> None:
    stage.wait(stage.ask())
    page = open_page("owner", stage.task_url())
    expect(page.get_by_text("The agent is waiting for your answer.")).to_be_visible()
    page.get_by_label("In your own words").fill("still thinking")
    stage.runner.finish(stage.dispatch)
    expect(page.get_by_text("The agent has paused. Your answer starts it again.")).to_be_visible()
    expect(page.get_by_label("In your own words")).to_have_value("still thinking")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("[data-outcome]")).to_contain_text("Your answer reached the agent.")
    assert "still thinking" in stage.runner.dispatched(2)["prompt"]
