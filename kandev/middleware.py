"""A strict Content-Security-Policy (everything from our own origin, no inline script), and bodies sent in chunks."""

import os
from collections.abc import Callable
from typing import IO

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse

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
