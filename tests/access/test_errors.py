"""Whatever refuses under /api/, the refusal is the error of contract 3: never a page, whoever made it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from pytest_django import Settings

from kandev.middleware import JsonErrorsMiddleware
from tests.access.cast import Cast

pytestmark = pytest.mark.once
PATHS = ("/api/v1/boot", "/api/v1/docs", "/api/v1/schema", "/api/v1/nowhere", "/api/", "/api/v1/clarifications")


@pytest.fixture(params=[True, False], ids=["debug", "production"])
def mode(request: pytest.FixtureRequest, settings: Settings) -> bool:
    settings.DEBUG, settings.ALLOWED_HOSTS = request.param, ["kandev.example"]
    return bool(request.param)


@pytest.mark.parametrize("host", ["evil.example", "", "a b", "kandev.example:port", "[::1", "kandev.example.evil.com"])
def test_an_unknown_host_is_a_400_in_json(cast: Cast, mode: bool, host: str) -> None:
    for path in PATHS:
        got: Any = Client(headers={"Authorization": f"Bearer {cast.tokens['owner']}"}).get(path, HTTP_HOST=host)
        assert (got.status_code, got["Content-Type"]) == (400, "application/json"), path
        assert (got.json()["code"], set(got.json())) == ("unknown_host", {"error", "code", "fields"})


def test_a_host_of_ours_is_served_and_a_page_stays_a_page(cast: Cast, mode: bool) -> None:
    assert Client().get("/api/v1/boot", HTTP_HOST="kandev.example:8000").status_code == 401
    assert Client().get("/nowhere", HTTP_HOST="kandev.example")["Content-Type"].startswith("text/html")


def raising(error: Exception) -> Callable[[HttpRequest], Any]:
    """What Django makes of an error before any view is asked."""
    from django.core.handlers.exception import convert_exception_to_response

    def broken(request: HttpRequest) -> HttpResponse:
        raise error

    return convert_exception_to_response(broken)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(SuspiciousOperation("x"), 400, "invalid"), (PermissionError("x"), 500, "internal_error")],
)
def test_an_error_outside_of_every_view_is_json(
    mode: bool, error: Exception, status: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = JsonErrorsMiddleware(raising(error))(RequestFactory().get("/api/v1/boot", HTTP_HOST="kandev.example"))
    said = json.loads(got.content)
    assert (got.status_code, got["Content-Type"], said["code"]) == (status, "application/json", code)
    assert said.get("retryable", False) is False


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 418, 500, 502, 503])
def test_a_page_of_any_status_is_replaced_and_keeps_its_status(settings: Settings, status: int) -> None:
    def page(request: HttpRequest) -> HttpResponse:
        return HttpResponse("<h1>no</h1>", status=status)

    got = JsonErrorsMiddleware(page)(RequestFactory().get("/api/v1/boot", HTTP_HOST="testserver"))
    body = json.loads(got.content)
    assert (got.status_code, type(body["error"]), type(body["code"])) == (status, str, str)
    assert ("fields" in body, "retryable" in body) == (status == 400, status in (500, 503))
