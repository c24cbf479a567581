"""Events of before two restarts come again, as from a proxy or a log: the page stays with what the database says."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from tests.browser.conftest import House, Open
from tests.browser.stage import Stage
from tests.support.waiting import never, until

pytestmark = [pytest.mark.once, pytest.mark.timeout(300)]

WATCH = """
window.shown = [];
new MutationObserver((changes) => changes.forEach(({ target }) => {
  if (target.matches("[data-session]")) window.shown.push(target.dataset.pending);
})).observe(document.body, { subtree: true, attributes: true, attributeFilter: ["data-pending"] });
"""


class Wire:
    """The page's socket, seen from between: every frame that came is kept and can be sent again."""

    def __init__(self, page: Page) -> None:
        self.frames: list[str | bytes] = []
        self.open: list[WebSocketRoute] = []
        page.route_web_socket("**/ws/", self._pass_on)

    def _pass_on(self, route: WebSocketRoute) -> None:
        self.open.append(route)
        server = route.connect_to_server()
        server.on_message(self._note_for(route))

    def _note_for(self, route: WebSocketRoute) -> Callable[[str | bytes], None]:
        def note(text: str | bytes) -> None:
            self.frames.append(text)
            route.send(text)

        return note

    def actions(self) -> list[Any]:
        """What the kept frames say of the icon, in their order."""
        payloads = [json.loads(text)["payload"] for text in self.frames]
        return [payload["pending_action"] for payload in payloads if "pending_action" in payload]


def is_live(page: Page) -> None:
    expect(page.locator("[data-connection=live]")).to_be_attached(timeout=30_000)


def restart(house: House, page: Page, wire: Wire) -> None:
    sockets = len(wire.open)
    house.server.restart()
    until(lambda: page.evaluate("1") and len(wire.open) > sockets, within=40, what="the page connects again")
    is_live(page)


def believe_everything(route: Route) -> None:
    """The page's own script, without its comparison of revisions."""
    text = route.fetch().text()
    changed = re.sub(r"const newer = .*;", "const newer = () => true;", text)
    assert changed != text
    route.fulfill(body=changed, content_type="text/javascript")


def replay(house: House, stage: Stage, page: Page) -> Callable[[], list[str]]:
    """Captures a question's life, restarts the server twice with a change in between, and sends all of it once more.

    → what the icon was set to from then on
    """
    wire = Wire(page)
    page.goto(stage.task_url())
    is_live(page)
    tab = page.locator(".tabs [aria-current]")
    first = stage.ask()
    expect(tab).to_have_attribute("data-pending", "clarification")
    stage.owner.post(f"/clarification/{first}/respond", {"answers": [], "rejected": True})
    expect(tab).to_have_attribute("data-pending", "")
    second = stage.ask()
    expect(tab).to_have_attribute("data-pending", "clarification")
    old = list(wire.frames)
    assert {"clarification", None} <= set(wire.actions())
    restart(house, page, wire)
    stage.owner.post(f"/clarification/{second}/respond", {"answers": [], "rejected": True})
    expect(tab).to_have_attribute("data-pending", "")
    restart(house, page, wire)
    expect(tab).to_have_attribute("data-pending", "")
    page.evaluate(WATCH)
    for text in old:
        wire.open[-1].send(text)
    return lambda: list(page.evaluate("shown"))


@pytest.mark.scenario("I2")
def test_old_events_after_two_restarts_change_nothing(house: House, stage: Stage, open_page: Open) -> None:
    page = open_page("owner", "/questions")
    shown = replay(house, stage, page)
    never(lambda: "clarification" in shown(), seconds=2)
    expect(page.locator(".tabs [aria-current]")).to_have_attribute("data-pending", "")
    expect(page.locator("[data-bundle]:not([data-settled])")).to_have_count(0, timeout=30_000)
    is_live(page)


def test_control_a_page_that_believes_every_event_shows_a_question_that_is_gone(
    house: House, stage: Stage, open_page: Open
) -> None:
    page = open_page("owner", "/questions")
    page.route("**/icons.js", believe_everything)
    shown = replay(house, stage, page)
    until(lambda: "clarification" in shown(), what="the old icon")
