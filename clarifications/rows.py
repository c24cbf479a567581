"""Writing question rows: status, response and marks change together, with one event a row. Needs the session lock."""

import datetime as dt
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from tasks import prepared, revisions
from tasks.models import Session
from turns import transcript
from turns.models import Message

Change = Callable[[dict[str, Any]], dict[str, Any]]


def write(rows: list[Message], change: Change, now: dt.datetime) -> list[Message]:
    """Applies `change` to the metadata of rows read under the session lock, in one update."""
    write_counted(rows, change, now)
    return rows


def write_counted(rows: list[Message], change: Change, now: dt.datetime) -> int:
    """`write`, and how many of the rows were still there."""
    revisions.require_transaction()
    for row in rows:
        row.metadata, row.updated_at = change(dict(row.metadata)), now
    if len(rows) == 1:
        return _write_one(rows[0].pk, rows[0].metadata, now)
    return Message.objects.bulk_update(rows, ["metadata", "updated_at"]) if rows else 0


@prepared.update
def _write_one(pk: uuid.UUID, metadata: dict[str, Any], now: dt.datetime) -> prepared.Change:
    return Message.objects.filter(pk=pk), {"metadata": metadata, "updated_at": now}


def tell(session: Session, rows: list[Message], now: dt.datetime) -> None:
    """`session.message.updated` for each row."""
    transcript.tell(transcript.UPDATED, session, rows, now)


def with_status(status: str) -> Change:
    return lambda metadata: {**metadata, "status": status}


def locked(rows: Iterable[Message]) -> list[Message]:
    """The rows read again under their locks, in bundle order."""
    ids = [row.pk for row in rows]
    return list(Message.objects.select_for_update().filter(pk__in=ids).order_by("created_at", "id"))
