"""Projection revisions `(epoch, sequence)`: allocated under the session lock, in the transaction of the change (promise I2).

Epoch is one database value that each starting process raises; it is read with the lock, so commit order and revision
order agree whoever commits. No process keeps an epoch of its own.
"""

import uuid
from typing import Any

from django.db import transaction
from django.db.models import F, Subquery

from tasks.errors import NotFound
from tasks.models import Epoch, Session


def lock_session(session_id: uuid.UUID) -> Session:
    """The session's row, locked until the end of the transaction: the first lock of every change (session, turn, message).

    NotFound when it is gone. On SQLite the immediate transaction is the lock.
    """
    require_transaction()
    session = Session.objects.select_for_update(of=("self",)).filter(pk=session_id).first()
    if session is None:
        raise NotFound
    return session


def require_transaction() -> None:
    """A function that needs a held lock says so in its first line."""
    assert transaction.get_connection().in_atomic_block, "needs an open transaction"


def advance(session_id: uuid.UUID, **changes: Any) -> None:
    """Takes the next revision for a change of the projection, with other fields of the session in the same update.

    Needs the session lock.
    """
    require_transaction()
    epoch = Epoch.objects.filter(pk=1).values("value")[:1]
    Session.objects.filter(pk=session_id).update(
        revision_epoch=Subquery(epoch), revision_sequence=F("revision_sequence") + 1, **changes
    )


def wire(session: Session) -> dict[str, Any]:
    """`pending_action_revision` as contract 3 shows it."""
    return {"epoch": str(session.revision_epoch), "sequence": session.revision_sequence}


