"""Tokens: `kdv_pat_` (a person), `kdv_run_` (a runner), `kdv_ses_` (a session's agent). Only a hash is stored (H8)."""

import base64
import datetime as dt
import hashlib
import hmac
import secrets
import uuid
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils import timezone

from tasks import hints, prepared
from tasks.models import Token, TokenKind

PREFIXES = {TokenKind.PERSONAL: "kdv_pat_", TokenKind.RUNNER: "kdv_run_", TokenKind.SESSION: "kdv_ses_"}
USED_EVERY = dt.timedelta(seconds=60)


def digest(text: str) -> str:
    """SHA-256 is enough: the text is 256 random bits, nobody can guess it from the hash."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def mint(kind: TokenKind, **fields: Any) -> str:
    """Stores a new token and returns its text, which cannot be read again."""
    text = PREFIXES[kind] + secrets.token_urlsafe(32)
    Token.objects.create(kind=kind, digest=digest(text), **fields)
    return text


def session_token_text(dispatch_id: uuid.UUID) -> str:
    """The token of a dispatch's agent, made from the server's secret: any process can send it, none keeps it (R26)."""
    key = hashlib.sha256(b"kandev.session-token:" + settings.SECRET_KEY.encode()).digest()
    made = hmac.new(key, dispatch_id.bytes, hashlib.sha256).digest()
    return PREFIXES[TokenKind.SESSION] + base64.urlsafe_b64encode(made).decode().rstrip("=")


def mint_for_dispatch(dispatch_id: uuid.UUID, session_id: uuid.UUID, turn_id: uuid.UUID) -> None:
    """Stores the hash of a dispatch's token; called in the transaction of the attempt."""
    text = session_token_text(dispatch_id)
    Token.objects.get_or_create(
        digest=digest(text),
        defaults={"kind": TokenKind.SESSION, "session_id": session_id, "turn_id": turn_id, "name": "agent of a turn"},
    )


def find(text: str) -> Token | None:
    """The live token with this text, its user loaded; None when unknown, expired, revoked or its person is inactive."""
    kind = next((k for k, prefix in PREFIXES.items() if text.startswith(prefix)), None)
    if kind is None:
        return None
    now = timezone.now()
    token = _live.first(digest(text), kind, now)
    if token is None or (token.user is not None and not token.user.is_active):
        return None
    if token.kind == TokenKind.PERSONAL and token.user is None:
        return None
    _used(token, now)
    return token


@prepared.rows
def _live(digest: str, kind: str, now: dt.datetime) -> QuerySet[Token]:
    rows = Token.objects.select_related("user").filter(digest=digest, kind=kind, revoked_at__isnull=True)
    return rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now))[:1]


def _used(token: Token, now: dt.datetime) -> None:
    if token.last_used_at is None or now - token.last_used_at > USED_EVERY:
        Token.objects.filter(pk=token.pk).update(last_used_at=now)


def revoke_rows(rows: QuerySet[Token]) -> int:
    """Revokes those that are live and says how many; a token that was revoked keeps its time."""
    revoked = rows.filter(revoked_at__isnull=True).update(revoked_at=timezone.now())
    hints.after_commit(hints.ACCESS)
    return revoked


def revoke(text: str) -> bool:
    """Revokes by text; True when it was live."""
    return bool(revoke_rows(Token.objects.filter(digest=digest(text))))


def revoke_own(user: User, pk: int) -> bool:
    """Revokes a person's own token by its row; True when it was live."""
    return bool(revoke_rows(Token.objects.filter(pk=pk, user=user, kind=TokenKind.PERSONAL)))
