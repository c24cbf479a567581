"""For somebody who looks elsewhere: the icon's dot, and one notification a question that goes when it is answered."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.stage import Stage
from tests.support.waiting import until

pytestmark = pytest.mark.once

# A browser without a desktop shows nothing: what the page asks for is written down instead, and the page has no focus.
RECORDER = """
window.said = [];
document.hasFocus = () => false;
window.Notification = class extends EventTarget {
  static permission = sessionStorage.allowed ? "granted" : "default";
  static async requestPermission() {
    sessionStorage.allowed = "yes";
    return (Notification.permission = "granted");
  }
  constructor(title, { tag }) { super(); this.tag = tag; window.said.push(["told", tag]); }
  close() { window.said.push(["closed", this.tag]); }
};
"""


def test_one_notification_a_question_and_none_without_being_asked_for(stage: Stage, open_page: Open) -> None:
    page = open_page("owner", "/questions")
    page.add_init_script(RECORDER)
    page.reload()
    icon = page.locator("link[rel=icon]")
    expect(page.locator("[data-connection=live]")).to_be_attached()
    expect(icon).to_have_attribute("href", re.compile("favicon.svg"))
    first = stage.ask()
    expect(icon).to_have_attribute("href", re.compile("favicon-dot.svg"))
    expect(page).to_have_title(re.compile(r"^\(1\)"))
    assert page.evaluate("said") == []
    stage.answerer.post(f"/clarification/{first}/cancel")
    expect(icon).to_have_attribute("href", re.compile("favicon.svg"))

    page.get_by_role("button", name="Notify me").click()
    expect(page.get_by_role("button", name="Notify me")).to_have_attribute("aria-pressed", "true")
    second = stage.ask()
    until(lambda: page.evaluate("said") == [["told", second]], what="one notification")
    stage.owner.post(f"/clarification/{second}/cancel")
    until(lambda: page.evaluate("said") == [["told", second], ["closed", second]], what="its end")
    third = stage.ask()
    until(lambda: page.evaluate("said.length") == 3, what="another notification")
    page.reload()
    expect(page).to_have_title(re.compile(r"^\(1\)"))
    assert page.evaluate("said") == []
    assert stage.bundle(third)["state"] == "active_live"
