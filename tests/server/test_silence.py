"""What is shown and logged of a fault: no secrets, and no tracebacks for refusals."""

import logging
from typing import Any

import pytest
from django.core.exceptions import SuspiciousOperation
from django.test import RequestFactory
from django.views.debug import technical_500_response
from pytest_django import Settings

from kandev.logs import OneLine

pytestmark = pytest.mark.once


def raised(error: Exception) -> Any:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001 - that is what it is for
        return type(caught), caught, caught.__traceback__


@pytest.mark.parametrize(
    ("name", "status", "kept"),
    [
        ("django.security.SuspiciousOperation", 400, False),
        ("django.request", 403, False),
        ("django.request", 500, True),
        ("kandev.server", 400, True),
    ],
)
def test_a_refusal_is_logged_without_a_traceback_and_a_fault_with_it(name: str, status: int, kept: bool) -> None:
    record = logging.LogRecord(name, logging.ERROR, "", 0, "said", None, raised(SuspiciousOperation("no")))
    record.status_code = status
    assert OneLine().filter(record)
    assert (record.exc_info is not None) is kept


def test_the_page_for_developers_shows_no_address_of_a_service(settings: Settings) -> None:
    settings.DEBUG = True
    settings.DATABASE_URL = "postgres://kan:PASSWORD-OF-IT@db/kan"
    settings.REDIS_URL = "redis://:PASSWORD-OF-IT@layer/0"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "x", "CONFIG": {"hosts": [settings.REDIS_URL]}}}
    page = technical_500_response(RequestFactory().get("/"), *raised(ValueError("fault")))
    text = page.content.decode()
    assert "DATABASE_URL" in text
    assert "PASSWORD-OF-IT" not in text


def test_make_run_does_not_turn_the_pages_for_developers_on() -> None:
    from tests.support.services import ROOT

    recipe = (ROOT / "Makefile").read_text().partition("\nrun:")[2].partition("\n\n")[0]
    assert "runall" in recipe
    assert "DEBUG" not in recipe
