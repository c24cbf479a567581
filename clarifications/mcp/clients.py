"""`Mcp-Session-Id` without a table: signed for the credential that it was given to, so any process can check it (B59).

It carries no authority and no state. It tells one client of a token from another, so that a cancellation meets its own
call. One of another credential is unknown (404), as one that never was; it outlives restarts, as SECRET_KEY does.
"""

import secrets

from django.core import signing

from tasks.principals import Principal

HEADER = "mcp-session-id"
MAX_LENGTH = 500


def new(principal: Principal) -> str:
    return _signer(principal).sign(secrets.token_urlsafe(12))


def is_known(principal: Principal, text: str) -> bool:
    try:
        _signer(principal).unsign(text[:MAX_LENGTH])
    except signing.BadSignature:
        return False
    return True


def credential(principal: Principal) -> str:
    """The token if there is one: two tokens of a person are two programs."""
    return f"token:{principal.token.pk}" if principal.token is not None else principal.pk


def _signer(principal: Principal) -> signing.Signer:
    return signing.Signer(salt=f"kandev.mcp:{credential(principal)}")
