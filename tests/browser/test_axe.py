"""axe-core finds nothing on any page and in any state of a question, on a desk and on a phone, light and dark.

It is used by this test only and not shipped. It comes from a `node_modules` folder, else from npm into var/; without
either the test is skipped and says so.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import PHONE, Open, both_sizes
from tests.browser.stage import TWO, Stage
from tests.browser.test_messages import superseded
from tests.browser.test_permission import ask as ask_permission

pytestmark = [pytest.mark.once, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[2]
Check = Callable[[Page, str], None]
Size = tuple[int, int]
VERSION = "4.10.3"
HERE = ROOT / "var" / "axe"
PLACES = (ROOT / "node_modules", HERE / "node_modules")
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MISSING = "not on this machine: axe-core is not in node_modules, and npm is missing or could not fetch it"


def script() -> Path | None:
    found = [place / "axe-core" / "axe.min.js" for place in PLACES]
    if not any(path.exists() for path in found) and (npm := shutil.which("npm")):
        HERE.mkdir(parents=True, exist_ok=True)
        wanted = [npm, "install", "--prefix", str(HERE), "--no-save", "--ignore-scripts", f"axe-core@{VERSION}"]
        subprocess.run(wanted, check=False, capture_output=True, timeout=120)
    return next((path for path in found if path.exists()), None)


@pytest.fixture(scope="module")
def axe() -> str:
    path = script()
    if path is None:
        pytest.skip(MISSING)
    return path.read_text(encoding="utf-8")


def faults(page: Page, axe: str) -> Iterator[str]:
    """Run in the page by the debugger, which the Content-Security-Policy does not concern."""
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.evaluate(axe)
        found: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        for fault in found["violations"]:
            for node in fault["nodes"]:
                yield f"{page.url} {scheme} {fault['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"


@both_sizes
def test_no_page_has_a_violation(stage: Stage, open_page: Open, axe: str) -> None:
    stage.ask(TWO, context="Billing writes forty rows a second.")
    stage.prompt(stage.session, "and then the invoices")
    stage.runner.say(
        stage.dispatch, "# Looking\n\n`code` and a [link](https://example.org), then a list\n\n- one\n- two"
    )
    page = open_page("owner", "/")
    found: list[str] = []
    for path, ready in (
        ("/", ".task-card"),
        ("/?filter=needs-me", ".task-card"),
        ("/questions", "[data-bundle]"),
        ("/settings/tokens", "h1"),
        ("/tasks/nowhere", "h1"),
        (stage.task_url().removeprefix(stage.url), "[data-bundle]"),
    ):
        page.goto(stage.url + path)
        expect(page.locator(ready).first).to_be_visible()
        found += faults(page, axe)
    page.locator("[data-open-dialog]:visible").first.click()
    found += faults(page, axe)
    page.context.clear_cookies()
    page.goto(f"{stage.url}/accounts/login/")
    found += faults(page, axe)
    assert found == []


@pytest.fixture
def check(axe: str) -> Iterator[Check]:
    """`check(page, "words that the state shows")` looks at a page as soon as it shows them."""
    found: list[str] = []

    def look(page: Page, words: str) -> None:
        expect(page.get_by_text(words).locator("visible=true").first).to_be_visible(timeout=20_000)
        found.extend(f"{words}: {fault}" for fault in faults(page, axe))

    yield look
    assert found == []


@both_sizes
def test_no_state_of_a_form_has_a_violation(stage: Stage, open_page: Open, check: Check, size: Size) -> None:
    stage.ask(TWO, context="Billing writes forty rows a second.")
    check(open_page("viewer", stage.task_url()), "You may see this question, but not answer it.")
    page = open_page("owner", stage.task_url())
    check(page, "1 of 2" if size == PHONE else "Which checks?")
    page.get_by_role("button", name="Next" if size == PHONE else "Submit").click()
    check(page, "2 of 2" if size == PHONE else "To say nothing, use Skip.")
    page.get_by_role("button", name="Skip all…").click()
    check(page, "Why? The agent is told.")
    page.get_by_role("button", name="Back", exact=True).last.click()
    page.get_by_label("In your own words").last.fill("x" * 2001)
    check(page, "too long")
    page.get_by_label("In your own words").last.fill("enough")
    page.keyboard.press("Control+Enter")
    check(page, "Submit once more")
    page.keyboard.press("Control+Enter")
    check(page, "Your answer reached the agent.")


@both_sizes
def test_what_became_of_an_answer_has_no_violation(stage: Stage, open_page: Open, check: Check) -> None:
    pending_id = stage.ask()
    page = open_page("owner", stage.task_url())
    page.get_by_label("In your own words").fill("mine")
    page.route("**/respond", lambda route: route.abort())
    page.get_by_role("button", name="Submit").click()
    check(page, "The server could not be reached.")
    page.unroute("**/respond")

    def too_late(route: Route) -> None:
        answer = {"question_id": "db", "selected_options": ["pg"], "custom_text": "first!"}
        stage.answerer.post(f"/clarification/{pending_id}/respond", {"answers": [answer]})
        route.continue_()

    page.route("**/respond", too_late)
    page.get_by_role("button", name="Try again").click()
    check(page, "Somebody else answered first:")


@both_sizes
def test_the_end_of_a_session_has_no_violation(stage: Stage, open_page: Open, check: Check) -> None:
    stage.ask()
    page = open_page("owner", stage.task_url())
    page.get_by_label("In your own words").fill("mine")
    stage.owner.post(f"/task-sessions/{stage.session}/complete")
    check(page, "This session has ended, so nothing can reach it.")
    page.reload()
    check(page, "Expired without an answer")


@both_sizes
def test_no_state_beside_a_question_has_a_violation(stage: Stage, open_page: Open, check: Check) -> None:
    page = open_page("owner", stage.task_url())
    ask_permission(stage)
    check(page, "The agent asks for permission")
    page.get_by_role("button", name="Deny: No").click()
    stage.prompt(stage.session, "and then the invoices")
    check(page, "1 message is queued")
    stage.owner.post(f"/task-sessions/{stage.session}/cancel")
    check(page, "It takes no more messages.")


@both_sizes
def test_a_late_answer_has_no_violation(stage: Stage, open_page: Open, check: Check) -> None:
    superseded(stage)
    page = open_page("owner", stage.task_url())
    check(page, "The conversation went on without it.")
    page.get_by_role("button", name="Answer as new message").click()
    check(page, "The agent no longer waits for this.")
    page.locator("#late").get_by_label("In your own words").fill("as before")
    page.get_by_role("button", name="Send as new message").click()
    check(page, "Sent to the agent as a new message.")


@both_sizes
def test_no_page_of_somebody_without_rights_has_a_violation(stage: Stage, open_page: Open, check: Check) -> None:
    stranger = open_page("stranger", "/")
    check(stranger, "Nothing here yet")
    check(open_page("stranger", stage.task_url()), "It does not exist, or it is not yours to see.")
    pending_id = stage.ask()
    viewer = open_page("viewer", stage.task_url())
    plain = viewer.locator("[data-question-form]")
    plain.evaluate("form => form.submit()")
    check(viewer, "You may see this, but not do that.")
    answerer = open_page("answerer", "/questions")
    form = answerer.locator(f'[data-pending-id="{pending_id}"]')
    form.get_by_label("In your own words").fill("x" * 2001)
    form.evaluate("form => form.submit()")
    check(answerer, "Go back in your browser: what you typed is still there.")
    empty = stage.owner.post("/workspaces", {"name": "Bare", "owner": "owner"})["id"]
    check(open_page("owner", f"/?workspace={empty}"), "New task")
    stranger.context.clear_cookies(name="csrftoken")
    stranger.goto(f"{stage.url}/")
    stranger.locator("form.leave").evaluate("form => { form.elements.csrfmiddlewaretoken.value = 'x'; form.submit(); }")
    check(stranger, "This form is out of date")
    stranger.context.clear_cookies()
    stranger.goto(f"{stage.url}/accounts/login/")
    stranger.get_by_label("Name").fill("nobody")
    stranger.get_by_label("Password").fill("wrong")
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("alert")).to_be_visible()
    check(stranger, "Sign in")
