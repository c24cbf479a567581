"""Every page opens on a desk and on a phone, light and dark, and nothing of it is wider than the screen.

With SCREENS=write the pictures of docs/screens are made on the way.
"""

import os
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, Open, both_sizes
from tests.browser.stage import TWO, Stage

pytestmark = pytest.mark.once
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screens"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WORDS = """I looked at the billing writer. It takes a **table lock** for each invoice:

```
LOCK TABLE invoice IN EXCLUSIVE MODE
```

Two ways lead on, and I need a decision for them."""


def furnish(stage: Stage) -> None:
    stage.runner.say(stage.dispatch, WORDS)
    for title, state in (("Rename the exports", "review"), ("Rotate the signing keys", "done"), ("Trim logs", "todo")):
        stage.owner.post(f"/tasks/{stage.new_task(title)}/move", {"state": state})
    stage.ask(TWO, context="Billing writes forty rows a second, and the export reads all of them at night.")
    stage.prompt(stage.session, "And then the invoices, please.")


def shoot(page: Page, name: str, size: tuple[int, int]) -> None:
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        if os.environ.get("SCREENS") == "write":
            kind = "phone" if size == PHONE else "desktop"
            page.screenshot(path=FOLDER / f"{name}-{kind}-{scheme}.png")


@both_sizes
def test_every_page_fits_its_screen(stage: Stage, open_page: Open, size: tuple[int, int]) -> None:
    furnish(stage)
    page = open_page("owner", "/")
    pages = {
        "board": (f"/?workspace={stage.workspace}", ".task-card"),
        "task": (stage.task_url().removeprefix(stage.url), "[data-bundle]"),
        "questions": ("/questions", "[data-bundle]"),
        "tokens": ("/settings/tokens", "h1"),
        "not-found": ("/tasks/nowhere", "h1"),
    }
    for name, (path, ready) in pages.items():
        page.goto(stage.url + path)
        expect(page.locator(ready).first).to_be_visible()
        if name == "task":
            expect(page.get_by_role("region", name="Queue")).to_be_attached()
        shoot(page, name, size)
    page.context.clear_cookies()
    page.goto(f"{stage.url}/accounts/login/")
    shoot(page, "sign-in", size)
