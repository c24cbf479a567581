"""axe-core finds nothing on any page, on a desk and on a phone, light and dark.

It is used by this test only and not shipped. It comes from a `node_modules` folder, else from npm into var/; without
either the test is skipped and says so.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, both_sizes
from tests.browser.stage import TWO, Stage

pytestmark = [pytest.mark.once, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[2]
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
