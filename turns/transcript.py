"""Writing transcript rows: each with its event in the same transaction. Needs the session lock."""

import datetime as dt
import uuid
from typing import Any

from tasks import events, revisions
from tasks.models import Session
from turns import shapes
from turns.models import Admission, Author, Message, MessageType, Turn

ADDED, UPDATED, DELETED = "session.message.added", "session.message.updated", "session.message.deleted"


def tell(action: str, session: Session, rows: list[Message], now: dt.datetime) -> None:
    """One event a row, with the row as it is now."""
    events.emit(*(events.event(action, session, {"message": shapes.message(row, session)}, now) for row in rows))


def add(
    session: Session,
    now: dt.datetime,
    *,
    author: Author,
    kind: MessageType = MessageType.MESSAGE,
    content: str = "",
    turn_id: uuid.UUID | None = None,
    metadata: dict[str, Any] | None = None,
    pk: uuid.UUID | None = None,
) -> Message:
    """A new transcript row and its `session.message.added`; with a `pk` of its own where it must not be made twice."""
    revisions.require_transaction()
    row = Message.objects.create(
        pk=pk or uuid.uuid4(),
        session=session,
        turn_id=turn_id,
        author_type=author,
        type=kind,
        content=content,
        metadata=metadata or {},
        created_at=now,
        updated_at=now,
    )
    tell(ADDED, session, [row], now)
    return row


def queue_prompt(session: Session, admission: Admission, now: dt.datetime) -> Message:
    """The row of a prompt that waits in the queue."""
    metadata = {"client_message_id": admission.client_message_id, "admission": "queued"}
    return add(session, now, author=Author.USER, content=admission.content, metadata=metadata)


def place_prompt(session: Session, admission: Admission, turn: Turn, now: dt.datetime) -> Message:
    """The prompt's row in its turn: the queued row moves there, else a new one is made."""
    metadata = {"client_message_id": admission.client_message_id, "admission": "sent"}
    row: Message | None = Message.objects.filter(pk=admission.message_id).first() if admission.message_id else None
    if row is None:
        return add(session, now, author=Author.USER, content=admission.content, turn_id=turn.pk, metadata=metadata)
    row.turn_id, row.metadata, row.updated_at = turn.pk, metadata, now
    Message.objects.filter(pk=row.pk).update(turn_id=turn.pk, metadata=metadata, updated_at=now)
    tell(UPDATED, session, [row], now)
    return row
