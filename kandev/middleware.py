"""A strict Content-Security-Policy (everything from our own origin, no inline script), bodies sent in chunks, and JSON
for every error of the API.
"""

import os
from collections.abc import Callable
from typing import IO

from django.core.exceptions import DisallowedHost, SuspiciousOperation
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse

from tasks.errors import KandevError, UnknownHost, of_status

POLICY = (
    "default-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
)
RELAXED = POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace(
    "script-src 'self'", "script-src 'self' 'unsafe-inline'"
)


class ContentSecurityPolicyMiddleware:
    """Sets the header on every response; the OpenAPI page alone starts itself with an inline script."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", RELAXED if request.path.endswith("/docs") else POLICY)
        return response


class JsonErrorsMiddleware:
    """Every refusal under /api/ is the error of contract 3, also one that no view made: Django's own are pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith("/api/"):
            return self.get_response(request)
        try:
            request.get_host()
        except DisallowedHost:
            return as_json(UnknownHost())
        response = self.get_response(request)
        if response.status_code < 400 or response.headers.get("Content-Type", "").startswith("application/json"):
            return response
        return as_json(of_status(response.status_code))


def as_json(refusal: KandevError) -> HttpResponse:
    """The error of contract 3."""
    return JsonResponse(refusal.body(), status=refusal.status, headers=refusal.headers())


class NoNulMiddleware:
    """A NUL in an address is refused before any view: SQLite takes one and PostgreSQL does not, here as in a body.

    REST names the parameter itself, with its own error; this is for pages, and for the admin's filters above all.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith("/api/"):
            if "\0" in request.path and request.path.startswith("/admin/"):
                raise Http404  # a key of an admin page; pages themselves look nothing up by such a text
            given = [*request.GET, *(value for values in request.GET.lists() for value in values[1])]
            if any("\0" in text for text in given):
                raise SuspiciousOperation("a NUL character in a query parameter")
        return self.get_response(request)


class ChunkedBodyMiddleware:
    """Gives a body that came in chunks its length: without one, what reads it would take it for an empty body.

    The ASGI handler has read it whole by now, so its length is known.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if isinstance(request, ASGIRequest) and "CONTENT_LENGTH" not in request.META:
            stream: IO[bytes] = request._stream  # noqa: SLF001 - the spooled body
            request.META["CONTENT_LENGTH"] = str(stream.seek(0, os.SEEK_END))
            stream.seek(0)
        return self.get_response(request)
