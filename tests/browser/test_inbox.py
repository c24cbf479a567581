"""Everything that waits for a person, by keyboard."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.stage import ONE, Stage

pytestmark = pytest.mark.once


def test_n_goes_to_the_next_question_and_types_in_a_text(stage: Stage, open_page: Open) -> None:
    stage.ask()
    stage.ask([{**ONE[0], "prompt": "And which cache?"}])
    page = open_page("owner", "/questions")
    first, second = (page.locator("[data-bundle]").nth(index).locator("h2") for index in (0, 1))
    for heading in (first, second, first):
        page.keyboard.press("n")
        expect(heading).to_be_focused()
    page.keyboard.press("2")
    expect(page.get_by_role("radio", name="SQLite").first).to_be_checked()
    page.keyboard.press("n")
    expect(second).to_be_focused()
    field = page.get_by_label("In your own words").first
    field.focus()
    page.keyboard.press("n")
    expect(field).to_have_value("n")
