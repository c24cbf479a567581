"""The envelope of `/ws/` (contract 7): `{"id"?, "type", "action", "payload", "timestamp"}`."""

import datetime as dt
import json
import uuid
from dataclasses import dataclass
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from tasks import strictjson
from tasks.access import parse_id
from tasks.errors import KandevError, NotFound, TooLarge, invalid
from tasks.hub import Key

MAX_BYTES = 64 * 1024  # a request is an action and an id; parsing runs on the event loop
MAX_ID_LENGTH = 200


@dataclass(frozen=True)
class Request:
    """A request as it was sent; `id` is the caller's and comes back with the answer."""

    id: str | int | None = None
    type: Any = None
    action: Any = None
    payload: Any = None

    def key(self) -> Key:
        """The task or workspace that the payload names; Invalid names the field that is wrong."""
        payload = self.payload if isinstance(self.payload, dict) else {}
        named = [kind for kind in ("task", "workspace") if f"{kind}_id" in payload]
        if len(named) != 1:
            raise invalid("payload", "must be an object with either task_id or workspace_id")
        kind = named[0]
        try:
            return Key(kind, parse_id(payload[f"{kind}_id"]))
        except NotFound:
            raise invalid(f"{kind}_id", "must be a UUID") from None


def read(raw: bytes) -> Request:
    """The request in one frame; Invalid or TooLarge when it is none."""
    if len(raw) > MAX_BYTES:
        raise TooLarge(f"a request is at most {MAX_BYTES} bytes")
    value = strictjson.parse(raw)
    if not isinstance(value, dict):
        raise invalid("request", "must be an object")
    request_id = value.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int | None):
        raise invalid("id", "must be a text or a whole number")
    if isinstance(request_id, str) and len(request_id) > MAX_ID_LENGTH:
        raise invalid("id", f"must be at most {MAX_ID_LENGTH} characters")
    return Request(request_id, value.get("type"), value.get("action"), value.get("payload"))


def response(request: Request, payload: dict[str, Any]) -> str:
    return _text("response", request.action, payload, request.id, timezone.now())


def error(request: Request, refusal: KandevError) -> str:
    """The body of REST's errors as payload, so that one client function reads both."""
    action = request.action if isinstance(request.action, str) else ""
    return _text("error", action[:100], refusal.body(), request.id, timezone.now())


def notification(action: str, payload: dict[str, Any], now: dt.datetime | None = None) -> str:
    return _text("notification", action, payload, None, now or timezone.now())


def _text(kind: str, action: str, payload: dict[str, Any], request_id: str | int | None, now: dt.datetime) -> str:
    head = {} if request_id is None else {"id": request_id}
    stamp = now.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
    body = {**head, "type": kind, "action": action, "payload": payload, "timestamp": stamp}
    return json.dumps(body, cls=DjangoJSONEncoder, separators=(",", ":"), ensure_ascii=False)


def named(key: Key) -> dict[str, str]:
    """`{"task_id": …}` or `{"workspace_id": …}`."""
    return {key.field: str(uuid.UUID(int=key.pk.int))}
