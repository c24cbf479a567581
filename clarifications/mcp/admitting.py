"""What an HTTP request must be before its message is read: from where, by whom, of which kind, how large."""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from tasks import strictjson
from tasks.authentication import bearer_of, identify_bearer, identify_token, identify_user
from tasks.errors import KandevError, TooLarge, Unauthorized
from tasks.models import TokenKind
from tasks.principals import Principal
from tasks.socketauth import check_peer, knows_host

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = MutableMapping[str, Any]

JSON, EVENTS = "application/json", "text/event-stream"


class RefusedError(Exception):
    """The request is answered with this status and body, and nothing of it is read any further."""

    def __init__(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self.status, self.body, self.headers = status, body, headers or {}
        super().__init__(body)


class ClientGoneError(Exception):
    """The client left before its request was complete."""


@dataclass(frozen=True)
class Incoming:
    """The head of a request, header names in lower case."""

    method: str
    address: str
    pairs: list[tuple[str, str]]
    headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", dict(self.pairs))

    @classmethod
    def of(cls, scope: Scope) -> "Incoming":
        pairs = [(name.decode("latin1").lower(), value.decode("latin1")) for name, value in scope.get("headers", ())]
        return cls(str(scope["method"]), str((scope.get("client") or [""])[0]), pairs)


def refused(error: KandevError) -> RefusedError:
    """A refusal of contract 3 with the headers that go with its status."""
    return RefusedError(error.status, error.body(), error.headers())


def _refuse(status: int, sentence: str, code: str, **headers: str) -> RefusedError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RefusedError(status, {"error": sentence, "code": code}, named)


def check_origin(incoming: Incoming) -> None:
    """Against DNS rebinding: Host is one of ours, and a page that calls is served from one of our hosts or trusted."""
    if not knows_host(incoming.headers.get("host", "")):
        raise _refuse(421, "this host name is not in ALLOWED_HOSTS", "unknown_host")
    origin = incoming.headers.get("origin")
    if origin is not None and origin not in settings.CSRF_TRUSTED_ORIGINS and not _own(origin):
        raise _refuse(403, "a page of another origin may not call this", "foreign_origin")


def _own(origin: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and knows_host(parts.netloc.lower())


def agent(incoming: Incoming) -> Principal:
    """The agent of one session: only its token says which, so nobody gets in without one."""
    check_peer(incoming.address)
    return identify_token(_bearer(incoming), incoming.address, (TokenKind.SESSION,))


def person(incoming: Incoming) -> Principal:
    """A person by his token; anybody when authentication is off (H4)."""
    check_peer(incoming.address)
    text = bearer_of(incoming.headers.get("authorization", ""))
    found = identify_bearer(text, incoming.address, (TokenKind.PERSONAL,)) if text is not None else None
    found = found or identify_user(None, incoming.address)
    if found is None:
        raise Unauthorized
    return found


def _bearer(incoming: Incoming) -> str:
    text = bearer_of(incoming.headers.get("authorization", ""))
    if text is None:
        raise Unauthorized
    return text


def check_kind(incoming: Incoming) -> None:
    """POST alone is served: without sessions in memory there is no stream to open and none to delete."""
    if incoming.method != "POST":
        raise _refuse(405, "only POST is served here", "method_not_allowed", Allow="POST")
    if incoming.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise _refuse(415, "the body must be application/json", "unsupported_media_type")
    if not (_accepts(incoming, JSON) and _accepts(incoming, EVENTS)):
        raise _refuse(406, f"the client must accept {JSON} and {EVENTS}", "not_acceptable")


def _accepts(incoming: Incoming, kind: str) -> bool:
    given = {part.partition(";")[0].strip().lower() for part in incoming.headers.get("accept", "").split(",")}
    return bool(given & {kind, "*/*", kind.partition("/")[0] + "/*"})


async def read_body(incoming: Incoming, receive: Receive) -> bytes:
    """The body up to 1 MiB."""
    length = incoming.headers.get("content-length", "")
    body, more = bytearray(), not (length.isdigit() and int(length[:20]) > strictjson.MAX_BYTES)
    while more and len(body) <= strictjson.MAX_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)
    raise refused(TooLarge())
