"""Fixtures that every test may use. What they give is explained in tests/support/."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from playwright.sync_api import Browser, sync_playwright

from tests.support import chromium, services
from tests.support.databases import Template
from tests.support.processes import Product

MakeProduct = Callable[..., Product]

# The same examples in every run, on machines of any speed.
hypothesis_settings.register_profile("suite", deadline=None, derandomize=True)
hypothesis_settings.load_profile("suite")


@pytest.fixture(scope="session")
def database(request: pytest.FixtureRequest) -> str:
    """The database under test: "sqlite" or "postgres"."""
    return str(request.config.getoption("database"))


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    database: str, tmp_path_factory: pytest.TempPathFactory, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """SQLite in a file, as in production: threads and WAL behave differently in memory. A worker has a database of its
    own.
    """
    from django.db import connections

    if database == "sqlite":
        name = tmp_path_factory.mktemp("database") / "test.sqlite3"
        connections["default"].settings_dict["TEST"]["NAME"] = str(name)


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """A PostgreSQL server, whatever the database under test."""
    return services.postgres_url()


@pytest.fixture(scope="session")
def redis_url() -> str:
    return services.redis_url()


@pytest.fixture(scope="session")
def template(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Template]:
    made = Template(database, tmp_path_factory.mktemp("template"))
    try:
        made.build()
        yield made
    finally:
        made.drop(made.url(made.name))


@pytest.fixture
def make_product(template: Template, tmp_path: Path) -> Iterator[MakeProduct]:
    """`make_product(redis=True, KANDEV_WATCHDOG_S="1")`: a product on a fresh database, its processes not started."""
    made: list[Product] = []

    def make(*, redis: bool = False, **environment: str) -> Product:
        if redis:
            environment["REDIS_URL"] = services.redis_url()
        folder = tmp_path / f"product-{len(made)}"
        folder.mkdir()
        made.append(Product(template, folder, environment))
        return made[-1]

    yield make
    for product in made:
        product.close()


@pytest.fixture
def product(make_product: MakeProduct) -> Product:
    """A product with one ready server process."""
    made = make_product()
    made.start()
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium. Its loop occupies the thread, so a module that uses it has no coroutine tests and no ORM."""
    program = chromium.find()
    assert program, chromium.MISSING
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=chromium.flags())
        yield launched
        launched.close()
