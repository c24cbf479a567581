"""Discovery: the bundles that a caller may see, oldest first, in whole pages (promises G6, H7).

The walk goes along the index of pending rows by (created_at, pending_id), in strides: visibility is part of each, so a
page is short only when there is no more. Of a stride's rows those remain that are the first active one of a bundle that
an answer can win. A cursor is the key of the last bundle of a page: rows answered meanwhile move nothing.
"""

import datetime as dt
import re
import uuid
from typing import Any

from django.core import signing
from django.db.models import Exists, OuterRef, Q, TextField, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from clarifications import shapes
from tasks.access import read_id
from tasks.errors import invalid
from tasks.principals import Need, Principal
from tasks.querysets import session_condition
from turns.jsoncolumns import JSONText
from turns.models import QUESTION, Message
from turns.querysets import MessageQuerySet
from turns.shapes import time

DEFAULT_LIMIT, MAX_LIMIT, MAX_CURSOR, MAX_STRIDE = 50, 200, 1000, 2000
ORDER = ("created_at", "pending_id", "id")
Key = tuple[dt.datetime, str, uuid.UUID | None]
RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def list_pending(
    principal: Principal,
    workspace_id: str = "",
    created_since: str = "",
    cursor: str = "",
    limit: int = 0,
    *,
    surface: str = "rest",
) -> dict[str, Any]:
    """`{"bundles", "count", "next_cursor"}`; an empty text is no filter, a limit below 1 the default.

    Invalid names a workspace id, a time or a cursor that is none. Of a foreign workspace there is nothing.
    """
    signer = _signer(surface, principal, workspace_id, created_since)
    rows = _visible(principal, workspace_id, created_since)
    size = min(limit, MAX_LIMIT) if limit >= 1 else DEFAULT_LIMIT
    heads = _walk(rows, _read(signer, cursor) if cursor else None, size + 1)
    page = heads[:size]
    bundles = _bundles(page, timezone.now())
    return {"bundles": bundles, "count": len(bundles), "next_cursor": _write(signer, page[-1]) if heads[size:] else ""}


def _walk(rows: MessageQuerySet, after: Key | None, wanted: int) -> list[Message]:
    """The first `wanted` heads beyond a key. Strides keep the work near the page's size, whatever else is pending."""
    ordered, stride = rows.order_by(*ORDER), 2 * wanted + 100
    found: list[Message] = []
    while len(found) < wanted:
        ahead = _beyond(ordered, after) if after else ordered
        seen = list(ahead.values_list("pk", "created_at", "pending_id")[:stride])
        found += heads(Message.objects.filter(pk__in=[pk for pk, *_ in seen])).order_by(*ORDER)
        if len(seen) < stride:
            break
        after, stride = (seen[-1][1], seen[-1][2], seen[-1][0]), min(2 * stride, MAX_STRIDE)
    return found[:wanted]


def _visible(principal: Principal, workspace_id: str, created_since: str) -> MessageQuerySet:
    """Pending rows in reach, active or not; an agent reaches its own session's."""
    rows = Message.objects.pending().exclude(pending_id="")
    rows = rows.filter(session_condition(principal, Need.READ, "session", "session__task__workspace"))
    if workspace_id:
        pk = read_id(workspace_id)
        if pk is None:
            raise invalid("workspace_id", "must be the id of a workspace")
        rows = rows.filter(session__task__workspace=pk)
    return rows.filter(created_at__gte=_time(created_since)) if created_since else rows


def heads(rows: MessageQuerySet) -> MessageQuerySet:
    """One row a bundle, its first active one, of bundles that an answer can win."""
    fellows = Message.objects.filter(pending_id=OuterRef("pending_id")).exclude(pending_id="")  # message_bundle has it
    earlier = Q(created_at__lt=OuterRef("created_at")) | Q(created_at=OuterRef("created_at"), id__lt=OuterRef("id"))
    named = Coalesce(JSONText("metadata", "question_id"), Value("", output_field=TextField()))
    other_turn = Q(turn_id__isnull=False) & ~Q(turn_id=OuterRef("turn_id"))
    strange = ~Q(session=OuterRef("session")) | ~Q(type=QUESTION) | other_turn | Q(named="")
    answerable = ~Exists(fellows.annotate(named=named).filter(strange))
    return rows.active().filter(answerable, ~Exists(fellows.active().filter(earlier))).select_related("session")


def _bundles(heads: list[Message], now: dt.datetime) -> list[dict[str, Any]]:
    """The listed shape of each head's bundle, in the heads' order; two queries for all of them."""
    rows: dict[str, list[Message]] = {head.pending_id: [] for head in heads}
    for row in Message.objects.filter(pending_id__in=rows).exclude(pending_id="").order_by("created_at", "id"):
        rows[row.pending_id].append(row)
    return [_bundle(head, rows[head.pending_id] or [head], now) for head in heads]


def _bundle(head: Message, rows: list[Message], now: dt.datetime) -> dict[str, Any]:
    return {
        "pending_id": head.pending_id,
        "task_id": str(head.session.task_id),
        "session_id": str(head.session_id),
        "created_at": time(rows[0].created_at),
        "age_seconds": max(0.0, round((now - rows[0].created_at).total_seconds(), 3)),
        "context": rows[0].metadata.get("context") or "",
        "questions": [shapes.question(row) for row in rows],
    }


def _beyond(rows: MessageQuerySet, key: Key) -> MessageQuerySet:
    """After the key, which is one of a row or, without its id, of a bundle; the first condition finds the place."""
    created_at, pending_id, pk = key
    beyond = Q(created_at__gt=created_at) | Q(created_at=created_at, pending_id__gt=pending_id)
    if pk is not None:
        beyond |= Q(created_at=created_at, pending_id=pending_id, id__gt=pk)
    return rows.filter(Q(created_at__gte=created_at) & beyond)


def _signer(surface: str, *parts: object) -> signing.Signer:
    """A cursor is good for the surface, the caller and the filters that it was given for, and for nothing else."""
    principal, *filters = parts
    assert isinstance(principal, Principal)
    return signing.Signer(salt="kandev.discovery:" + repr((surface, principal.pk, *filters)))


def _write(signer: signing.Signer, head: Message) -> str:
    return signer.sign_object([head.created_at.isoformat(), head.pending_id])


def _read(signer: signing.Signer, cursor: str) -> Key:
    try:
        created_at, pending_id = signer.unsign_object(cursor if len(cursor) <= MAX_CURSOR else "")
        return dt.datetime.fromisoformat(created_at), str(pending_id), None
    except (signing.BadSignature, ValueError, TypeError):
        raise invalid("cursor", "is not a cursor of this list with these filters") from None


def _time(text: str) -> dt.datetime:
    try:
        if RFC3339.fullmatch(text):
            return dt.datetime.fromisoformat(text.upper()).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        pass
    raise invalid("created_since", "must be a time of RFC 3339, such as 2026-01-31T12:00:00Z")


__all__ = ["list_pending"]
