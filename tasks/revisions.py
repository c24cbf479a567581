"""Projection revisions `(epoch, sequence)`: allocated under the session lock, in the transaction of the change (I2).

Epoch is one database value that each starting process raises; it is read with the lock, so commit order and revision
order agree whoever commits. No process keeps an epoch of its own.
"""

import datetime as dt
import uuid
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from tasks import prepared
from tasks.errors import NotFound
from tasks.models import Epoch, Session


def lock_sessions(task_id: uuid.UUID) -> list[uuid.UUID]:
    """Locks all sessions of a task, in the order of their ids so that two callers cannot block each other.

    Whoever then writes the task takes its row last. A question cannot appear in these sessions meanwhile.
    """
    require_transaction()
    rows = Session.objects.select_for_update(of=("self",)).filter(task=task_id).order_by("id")
    return [session.pk for session in rows.only("pk")]


def lock_session(session_id: uuid.UUID) -> Session:
    """The session's row, locked to the transaction's end: the first lock of every change (session, turn, message).

    NotFound when it is gone. On SQLite the immediate transaction is the lock.
    """
    require_transaction()
    session = _locked.first(session_id)
    if session is None:
        raise NotFound
    return session


@prepared.rows
def _locked(session_id: uuid.UUID) -> QuerySet[Session]:
    return Session.objects.select_for_update(of=("self",)).filter(pk=session_id)


def require_transaction() -> None:
    """A function that needs a held lock says so in its first line."""
    assert transaction.get_connection().in_atomic_block, "needs an open transaction"


def advance(session_id: uuid.UUID, where: Q | None = None, **changes: Any) -> bool:
    """Takes the next revision for a change of the projection, with other fields of the session in the same update.

    Needs the session lock. `where` restates what the change was decided on; False when it no longer holds (nothing is
    written then) or the session is gone. Before any process registered there is no epoch row: 0.
    """
    require_transaction()
    if where is None and changes.keys() == {"last_activity_at"}:
        return bool(_noted(session_id, changes["last_activity_at"]))
    return bool(Session.objects.filter(where or Q(), pk=session_id).update(**_next(), **changes))


@prepared.update
def _noted(session_id: uuid.UUID, now: dt.datetime) -> prepared.Change:
    """The commonest change, of a question or an answer."""
    return Session.objects.filter(pk=session_id), {**_next(), "last_activity_at": now}


def _next() -> dict[str, Any]:
    epoch = Coalesce(Subquery(Epoch.objects.filter(pk=1).values("value")[:1]), Value(0))
    return {"revision_epoch": epoch, "revision_sequence": F("revision_sequence") + 1}


def wire(session: Session) -> dict[str, Any]:
    """`pending_action_revision` as contract 3 shows it."""
    return {"epoch": str(session.revision_epoch), "sequence": session.revision_sequence}
