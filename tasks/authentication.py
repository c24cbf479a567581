"""Who calls: session cookie (with CSRF) or `Authorization: Bearer <token>`. One place for REST, sockets and MCP.

`identify_token` and `identify_user` make the Principal; DRF's classes below only find the credentials in a request.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, HttpResponse
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.request import Request

from tasks import rates, tokens
from tasks.errors import Forbidden, TooMany, Unauthorized
from tasks.models import TokenKind
from tasks.principals import Principal

KINDS = (TokenKind.PERSONAL, TokenKind.SESSION, TokenKind.RUNNER)


def auth_off() -> bool:
    return bool(settings.KANDEV_AUTH == "off")


def identify_token(text: str, address: str, kinds: tuple[str, ...] = KINDS) -> Principal:
    """The caller behind a token. Unauthorized when dead or of a kind not in `kinds`; TooMany after too many dead ones.

    A good token still works from an address that is over its limit of dead ones (contract 2).
    """
    token = tokens.find(text)
    if token is None or token.kind not in kinds:
        rates.count_failed_token(address)
        raise Unauthorized
    user = token.user if token.kind == TokenKind.PERSONAL else None
    unscoped = auth_off() or bool(user and user.is_superuser)
    return Principal(user=user, token=token, unscoped=unscoped, address=address, anybody=auth_off())


def identify_bearer(text: str, address: str, kinds: tuple[str, ...] = KINDS) -> Principal | None:
    """`identify_token`, but None where authentication is off: then a dead token is no hindrance (H4)."""
    try:
        return identify_token(text, address, kinds)
    except (Unauthorized, TooMany):
        if auth_off():
            return None
        raise


def identify_user(user: User | AnonymousUser | None, address: str) -> Principal | None:
    """The caller behind a signed-in cookie session, or anybody when authentication is off; None for nobody."""
    if isinstance(user, User) and user.is_active:
        return Principal(user=user, unscoped=auth_off() or user.is_superuser, address=address, anybody=auth_off())
    return Principal(unscoped=True, address=address, anybody=True) if auth_off() else None


def bearer_of(header: str) -> str | None:
    """The token of an Authorization header; None when the header is of another scheme or absent."""
    scheme, _, text = header.partition(" ")
    return text.strip() if scheme.lower() == "bearer" else None


def address_of(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR") or "")


def _nothing(request: HttpRequest) -> HttpResponse:
    """Stands for the view, which the check does not call."""
    return HttpResponse()


def _django(request: Request) -> HttpRequest:
    """Django's own request: asking DRF's for its user would begin the authentication anew."""
    return request._request  # noqa: SLF001


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer <token>`; a dead token is 401, not anonymous, unless authentication is off (H4)."""

    def authenticate(self, request: Request) -> tuple[Principal, Any] | None:
        text = bearer_of(request.META.get("HTTP_AUTHORIZATION", ""))
        if text is None:
            return None
        principal = identify_bearer(text, address_of(_django(request)))
        return None if principal is None else (principal, principal.token)

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class CookieAuthentication(BaseAuthentication):
    """Django's signed-in session with its CSRF check; with KANDEV_AUTH=off everybody."""

    def authenticate(self, request: Request) -> tuple[Principal, None] | None:
        plain = _django(request)
        principal = identify_user(getattr(plain, "user", None), address_of(plain))
        if principal is not None and principal.user is not None:
            self._check_csrf(plain)
        return None if principal is None else (principal, None)

    def _check_csrf(self, request: HttpRequest) -> None:
        check = CSRFCheck(_nothing)
        check.process_request(request)
        if check.process_view(request, _nothing, (), {}):
            raise Forbidden("the CSRF token is missing or wrong", code="csrf_failed")
