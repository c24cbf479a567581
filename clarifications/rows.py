"""Writing question rows: status, response and marks change together, with one event a row. Needs the session lock."""

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any

from tasks import revisions
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
    if len(rows) == 1:  # the same statement, built in a third of the time
        return Message.objects.filter(pk=rows[0].pk).update(metadata=rows[0].metadata, updated_at=now)
    return Message.objects.bulk_update(rows, ["metadata", "updated_at"]) if rows else 0


def tell(session: Session, rows: list[Message], now: dt.datetime) -> None:
    """`session.message.updated` for each row."""
    transcript.tell(transcript.UPDATED, session, rows, now)


def with_status(status: str) -> Change:
    return lambda metadata: {**metadata, "status": status}


def locked(rows: Iterable[Message]) -> list[Message]:
    """The rows read again under their locks, in bundle order."""
    ids = [row.pk for row in rows]
    return list(Message.objects.select_for_update().filter(pk__in=ids).order_by("created_at", "id"))
