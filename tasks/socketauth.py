"""Who opens a socket, from where, and whether the credential still lives (promises B15, B34 of the fault list; H6).

A socket is opened once and lives for hours, so its credential is judged again and again: for all sockets together, in
a few statements, whatever their number.
"""

import datetime as dt
import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as SignIn
from django.http.request import split_domain_port, validate_host
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.http import is_same_domain

from tasks.authentication import auth_off, bearer_of, identify_bearer, identify_user
from tasks.errors import Forbidden, Unauthorized
from tasks.models import Token
from tasks.principals import Principal

LOCAL_HOSTS = [".localhost", "127.0.0.1", "[::1]"]


@dataclass(frozen=True)
class Caller:
    """The principal of a socket and the key of the sign-in that it came with ("" for a token or nobody)."""

    principal: Principal
    sign_in: str = ""


def identify(headers: dict[str, str], address: str) -> Caller:
    """The caller behind the headers of a handshake; header names in lower case.

    Unauthorized without a live credential; TooMany after too many dead tokens. Forbidden with a foreign Origin, which
    only a browser sends, or when a peer from elsewhere meets the single-user mode.
    """
    check_peer(address)
    check_origin(headers)
    bearer = bearer_of(headers.get("authorization", ""))
    principal = identify_bearer(bearer, address) if bearer is not None else None
    if principal is not None:
        return Caller(principal)
    key = _cookie(headers.get("cookie", ""))
    principal = identify_user(signed_in([key]).get(key), address)
    if principal is None:
        raise Unauthorized
    return Caller(principal, key if principal.user is not None else "")


def check_peer(address: str) -> None:
    """Single-user mode serves this machine alone, unless the operator said otherwise (contract 2)."""
    if (
        auth_off()
        and not settings.KANDEV_AUTH_OFF_ANYWHERE
        and address
        and not ipaddress.ip_address(address).is_loopback
    ):
        raise Forbidden("KANDEV_AUTH=off serves callers on this machine only")


def check_origin(headers: dict[str, str]) -> None:
    """Forbidden unless the page that opened the socket is ours.

    Every browser sends Origin with a handshake; a client without it is no page and cannot be made to borrow a cookie.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if origin is None:
        return
    if not (knows_host(host) and _netloc(origin) == host.lower()) and not _trusted(origin):
        raise Forbidden("a page of another origin may not open this socket", code="foreign_origin")


def knows_host(host: str) -> bool:
    """Whether a Host header names one of ALLOWED_HOSTS, as Django judges it."""
    return validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS or (LOCAL_HOSTS if settings.DEBUG else []))


def _netloc(origin: str) -> str | None:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in ("http", "https") else None


def _trusted(origin: str) -> bool:
    netloc = _netloc(origin)
    return netloc is not None and any(_matches(origin, netloc, trusted) for trusted in settings.CSRF_TRUSTED_ORIGINS)


def _matches(origin: str, netloc: str, trusted: str) -> bool:
    """An exact origin, or `https://*.example.com` as Django reads it."""
    scheme, _, pattern = trusted.partition("://")
    if "*" not in pattern:
        return origin.lower() == trusted.lower().rstrip("/")
    return origin.lower().startswith(f"{scheme}://") and is_same_domain(netloc, pattern.lstrip("*"))


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return ""
    return found.value if found else ""


def signed_in(keys: Collection[str]) -> dict[str, User]:
    """By key of a sign-in: its person, while the sign-in lives, the person is active and the password is the same."""
    rows = SignIn.objects.filter(session_key__in={key for key in keys if key}, expire_date__gt=timezone.now())
    data: dict[str, dict[str, Any]] = {row.session_key: row.get_decoded() for row in rows}
    ids = {str(values[SESSION_KEY]) for values in data.values() if SESSION_KEY in values}
    people = {str(user.pk): user for user in User.objects.filter(pk__in=ids, is_active=True)} if ids else {}
    found = {key: people.get(str(values.get(SESSION_KEY))) for key, values in data.items()}
    return {key: user for key, user in found.items() if user is not None and _same_password(user, data[key])}


def _same_password(user: User, values: dict[str, Any]) -> bool:
    stored = str(values.get(HASH_SESSION_KEY, ""))
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(stored, made) for made in hashes)


def refresh(callers: Iterable[Caller]) -> list[Caller | None]:
    """Each caller as he is now, None for a dead credential: at most three statements for all of them."""
    callers = list(callers)
    people = signed_in({caller.sign_in for caller in callers if caller.sign_in})
    tokens = _live_tokens({caller.principal.token.pk for caller in callers if caller.principal.token is not None})
    return [_now(caller, people, tokens) for caller in callers]


def _live_tokens(ids: set[int]) -> dict[int, Token]:
    rows = Token.objects.select_related("user").filter(pk__in=ids, revoked_at__isnull=True) if ids else []
    return {row.pk: row for row in rows if _lives(row, timezone.now())}


def _lives(token: Token, now: dt.datetime) -> bool:
    """As `tokens.find` judges one by its text."""
    return (token.expires_at is None or token.expires_at > now) and (token.user is None or token.user.is_active)


def _now(caller: Caller, people: dict[str, User], tokens: dict[int, Token]) -> Caller | None:
    old = caller.principal
    if old.token is not None:
        token = tokens.get(old.token.pk)
        user = token.user if token else None
        fresh = token and replace(old, user=user, token=token, unscoped=auth_off() or bool(user and user.is_superuser))
    else:
        fresh = identify_user(people.get(caller.sign_in), old.address) if caller.sign_in or auth_off() else None
    return replace(caller, principal=fresh) if fresh else None
