"""Several questions: on a phone one at a time, on a desk and without scripts the plain long form."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import DESKTOP, PHONE, House, Open, both_sizes
from tests.browser.stage import TWO, Stage

pytestmark = pytest.mark.once

Size = tuple[int, int]
on_a_phone = pytest.mark.parametrize("size", [PHONE], ids=["phone"])
THREE = [
    *TWO,
    {
        "id": "when",
        "prompt": "When?",
        "options": [{"option_id": str(day), "label": f"Day {day}", "description": "Early."} for day in (1, 2)],
    },
]


def form(page: Page) -> Locator:
    return page.locator("[data-question-form]")


def step(page: Page, text: str, prompt: str) -> None:
    """The step is named, its question alone is seen, and the focus is on it."""
    expect(form(page).locator("[data-step-line]")).to_have_text(text)
    expect(form(page).locator("fieldset:visible")).to_have_count(1)
    expect(form(page).locator("legend:visible")).to_contain_text(prompt)


def asked(stage: Stage, open_page: Open, path: str = "") -> Page:
    page = open_page("owner", path or stage.task_url())
    expect(form(page)).to_be_visible()
    return page


@on_a_phone
@pytest.mark.parametrize("path", ["", "/questions"], ids=["task", "inbox"])
def test_a_phone_asks_one_question_at_a_time_and_keeps_everything(stage: Stage, open_page: Open, path: str) -> None:
    waiting = stage.wait(stage.ask(THREE))
    page = asked(stage, open_page, path)
    step(page, "1 of 3", "Which database?")
    expect(page.get_by_role("button", name="Back")).to_be_hidden()
    expect(page.get_by_role("button", name="Submit")).to_be_hidden()
    page.get_by_role("radio", name="SQLite").check()
    page.get_by_role("button", name="Next").click()

    step(page, "2 of 3", "Which checks?")
    expect(form(page).locator("legend:visible")).to_be_focused()
    expect(form(page).locator("[data-step-line]")).to_be_in_viewport(ratio=1)
    expect(page.locator("#live")).to_have_text("Question 2 of 3")
    page.get_by_role("checkbox", name="Load test").check()
    page.locator("[data-custom]:visible").fill("at night")
    with page.expect_response("**/draft"):
        page.get_by_role("button", name="Back").click()

    step(page, "1 of 3", "Which database?")
    expect(form(page).locator("legend:visible")).to_be_focused()
    expect(page.get_by_role("radio", name="SQLite")).to_be_checked()
    page.get_by_role("button", name="Next").click()
    page.reload()
    step(page, "2 of 3", "Which checks?")
    expect(page.get_by_role("checkbox", name="Load test")).to_be_checked()
    expect(page.locator("[data-custom]:visible")).to_have_value("at night")
    page.get_by_role("button", name="Next").click()

    step(page, "3 of 3", "When?")
    expect(page.get_by_role("button", name="Next")).to_be_hidden()
    page.get_by_role("radio", name="Day 2").check()
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("[data-outcome]")).to_contain_text("Your answer reached the agent.")
    assert waiting.result(20)[1]["answers"] == [
        {"question_id": "db", "selected_options": ["lite"], "custom_text": ""},
        {"question_id": "checks", "selected_options": ["load"], "custom_text": "at night"},
        {"question_id": "when", "selected_options": ["2"], "custom_text": ""},
    ]


@on_a_phone
def test_the_keyboard_goes_through_the_steps(stage: Stage, open_page: Open) -> None:
    waiting = stage.wait(stage.ask(THREE))
    page = asked(stage, open_page)
    page.keyboard.press("1")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="SQLite")).to_be_checked()
    page.keyboard.press("Enter")
    step(page, "2 of 3", "Which checks?")
    page.keyboard.press("3")
    expect(page.get_by_role("checkbox", name="Load test")).to_be_checked()
    page.get_by_role("button", name="Next").press("Enter")
    step(page, "3 of 3", "When?")
    page.keyboard.press("2")
    page.keyboard.press("Meta+Enter")
    expect(page.locator("[data-outcome]")).to_contain_text("Your answer reached the agent.")
    answers = waiting.result(20)[1]["answers"]
    assert [answer["selected_options"] for answer in answers] == [["lite"], ["load"], ["2"]]


@on_a_phone
def test_what_is_wrong_is_shown_on_its_own_step(stage: Stage, open_page: Open) -> None:
    waiting = stage.wait(stage.ask(THREE))
    page = asked(stage, open_page)
    page.get_by_role("radio", name="SQLite").check()
    page.locator("[data-custom]:visible").fill("x" * 2001)
    for _ in range(2):
        page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Submit").click()
    step(page, "1 of 3", "Which database?")
    expect(page.locator("[data-custom]:visible")).to_be_focused()
    page.locator("[data-custom]:visible").fill("small")
    page.keyboard.press("Control+Enter")
    step(page, "2 of 3", "Which checks?")
    expect(page.get_by_text("Not answered yet. Submit once more").first).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    answers = waiting.result(20)[1]["answers"]
    assert [answer["selected_options"] for answer in answers] == [["lite"], [], []]


@on_a_phone
def test_skip_is_for_all_questions_and_comes_back_to_the_step(stage: Stage, open_page: Open) -> None:
    waiting = stage.wait(stage.ask(THREE))
    page = asked(stage, open_page)
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Skip all…").click()
    expect(page.get_by_role("button", name="Next")).to_be_hidden()
    page.get_by_role("button", name="Back").click()
    step(page, "2 of 3", "Which checks?")
    page.get_by_role("button", name="Skip all…").click()
    page.get_by_role("button", name="Skip without an answer").click()
    assert waiting.result(20)[1]["rejected"] is True


def test_a_desk_shows_all_questions_and_a_narrow_window_the_one_with_the_focus(stage: Stage, open_page: Open) -> None:
    stage.wait(stage.ask(THREE))
    page = asked(stage, open_page)
    expect(form(page).locator("fieldset:visible")).to_have_count(3)
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    expect(page.get_by_role("button", name="Next")).to_be_hidden()
    expect(form(page).locator("[data-step-line]")).to_be_hidden()
    page.get_by_role("checkbox", name="Unit tests").focus()
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    step(page, "2 of 3", "Which checks?")
    expect(page.get_by_role("checkbox", name="Unit tests")).to_be_focused()


@both_sizes
def test_one_question_has_no_steps(stage: Stage, open_page: Open) -> None:
    stage.wait(stage.ask())
    page = asked(stage, open_page)
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    expect(page.get_by_role("button", name="Next")).to_have_count(0)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_without_scripts_the_long_form_is_enough(
    stage: Stage, browser: Browser, house: House, cookies: Callable[[str], Any], size: Size
) -> None:
    waiting = stage.wait(stage.ask(THREE))
    width, height = size
    context = browser.new_context(
        java_script_enabled=False, viewport={"width": width, "height": height}, storage_state=cookies("owner")
    )
    page = context.new_page()
    page.goto(f"{house.url}/questions")
    expect(form(page).locator("fieldset:visible")).to_have_count(3)
    for name in ("Next", "Back", "Skip all…"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    page.get_by_role("radio", name="SQLite").check()
    page.get_by_role("checkbox", name="Load test").check()
    page.locator("[data-custom]").nth(1).fill("at night\nor never")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="Your answer reached the agent.")).to_be_visible()
    assert waiting.result(20)[1]["answers"] == [
        {"question_id": "db", "selected_options": ["lite"], "custom_text": ""},
        {"question_id": "checks", "selected_options": ["load"], "custom_text": "at night\nor never"},
        {"question_id": "when", "selected_options": [], "custom_text": ""},
    ]
    context.close()
