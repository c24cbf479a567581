"""A product for each module, and pages signed in as one of its people. No ORM here: the browser owns the thread."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route

from tests.browser.stage import Stage
from tests.support.databases import Template
from tests.support.processes import Product, Server
from tests.support.seed import password_of

DESKTOP, PHONE = (1280, 800), (390, 844)
Open = Callable[..., Page]


@dataclass(frozen=True)
class House:
    """A product with one ready server, for all tests of a module."""

    product: Product
    server: Server

    @property
    def url(self) -> str:
        return self.server.url


@pytest.fixture(scope="module")
def house(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    product = Product(template, tmp_path_factory.mktemp("pages"), {"KANDEV_RATE_LOGIN": "1000/m"})
    yield House(product, product.start())
    product.close()


@pytest.fixture
def stage(house: House) -> Iterator[Stage]:
    made = Stage(house.url, house.product.tokens)
    yield made
    made.close()


both_sizes = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])


@pytest.fixture
def size() -> tuple[int, int]:
    """A test marked with `both_sizes` runs on a desk and on a phone."""
    return DESKTOP


class Held:
    """Requests that are kept from the server until `go`."""

    def __init__(self) -> None:
        self.routes: list[Route] = []

    def hold(self, route: Route) -> None:
        self.routes.append(route)

    def go(self) -> None:
        self.routes[0].continue_()


@pytest.fixture(scope="module")
def cookies(browser: Browser, house: House) -> Callable[[str], Any]:
    """Each person signs in once in a module."""
    kept: dict[str, Any] = {}

    def of(name: str) -> Any:
        if name not in kept:
            context = browser.new_context()
            sign_in(context, house.url, name)
            kept[name] = context.storage_state()
            context.close()
        return kept[name]

    return of


def sign_in(context: BrowserContext, url: str, name: str) -> None:
    page = context.new_page()
    page.goto(f"{url}/accounts/login/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password_of(name))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Board").wait_for()
    page.close()


@pytest.fixture
def open_page(browser: Browser, house: House, size: tuple[int, int], cookies: Callable[[str], Any]) -> Iterator[Open]:
    """`open_page("owner", "/questions")`: a page of a browser of that person. Errors of scripts and of the
    Content-Security-Policy fail the test."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def make(name: str = "owner", path: str = "/") -> Page:
        width, height = size
        phone = size == PHONE
        context = browser.new_context(
            viewport={"width": width, "height": height}, has_touch=phone, is_mobile=phone, storage_state=cookies(name)
        )
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
        page.goto(path if path.startswith("http") else f"{house.url}{path}")
        return page

    yield make
    for context in contexts:
        context.close()
    assert not wrong


@pytest.fixture(autouse=True)
def keep_log(house: House) -> Iterator[None]:
    """Shown by pytest under a failed test only."""
    yield
    log: Path = house.server.log
    print(log.read_text(errors="replace")[-3000:])
