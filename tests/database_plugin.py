"""`--database sqlite|postgres`: the whole suite runs once on each, with the same tests.

The environment is set before Django reads its settings, and a developer's own KANDEV_* never reach a test.
"""

import os
import secrets
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from tests.support import services

DATABASES = ("sqlite", "postgres")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database", choices=DATABASES, default="sqlite", help="the database under test")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """A wrapper, because it must come before pytest-django loads the settings."""
    _set_environment(early_config.known_args_namespace.database)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    from django.conf import settings

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    signal.signal(signal.SIGTERM, _stop)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("database") == "sqlite":
        return
    once = [item for item in items if item.get_closest_marker("once")]
    config.hook.pytest_deselected(items=once)
    items[:] = [item for item in items if item not in once]


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    services.stop_all()


def _set_environment(database: str) -> None:
    for name in [name for name in os.environ if name.startswith("KANDEV_")]:
        del os.environ[name]
    os.environ.pop("REDIS_URL", None)
    os.environ["SECRET_KEY"] = secrets.token_urlsafe(48)
    os.environ["DATABASE_URL"] = services.postgres_url() if database == "postgres" else "sqlite://:memory:"
    if database == "postgres":
        os.environ["TEST_DATABASE_URL"] = services.postgres_url()  # the workers of pytest-xdist use the same server


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt  # the ordinary end, which runs every fixture's clean-up
