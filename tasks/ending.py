"""End a session: it becomes completed, failed or cancelled, once. An open question does not stop it, but expires (F3).

Other writers: a second end (the guarded update decides), a claim, confirm or dispatch of this session (its lock
decides; what they restate includes the session's state, R7).
"""

import datetime as dt
import logging
import uuid
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from tasks import hints, points, revisions, summaries
from tasks.errors import SessionEnded
from tasks.models import TERMINAL, Session, SessionState

logger = logging.getLogger(__name__)


def end_session(session_id: uuid.UUID, state: SessionState) -> bool:
    """Ends a session; False when it had ended in that state already. Access is the caller's to check.

    NotFound when it is gone, SessionEnded when it ended otherwise. Its turn ends inside the same transaction
    (`session_ending`); questions expire and waiters are released right after the commit (`session_ended`, R30).
    """
    now = timezone.now()
    with transaction.atomic():
        session = revisions.lock_session(session_id)
        if not revisions.advance(session_id, ~Q(state__in=TERMINAL), state=state, last_activity_at=now):
            return _ended_before(session, state)
        session.state, session.last_activity_at = state, now
        points.session_ending.run(session, now)
        hints.after_commit(f"session:{session_id}")
        transaction.on_commit(partial(_after, session, now), robust=True)
    return True


def _ended_before(session: Session, state: SessionState) -> bool:
    if session.state != state:
        raise SessionEnded(f"the session has already ended as {session.state}")
    return False


def _after(session: Session, now: dt.datetime) -> None:
    """The end stands, whatever fails here: a sweep and the next read make up for it (R30, I3)."""
    points.session_ended.run_each(session.pk, now)
    try:
        summaries.refresh(session.task_id)
    except Exception:
        logger.exception("the summary of task %s is left to the next read", session.task_id)


def cancel_live(task_id: uuid.UUID) -> None:
    """Cancels every session of a task that has not ended, so that agents stop and waiters are released (B23)."""
    for session_id in Session.objects.filter(task=task_id).live().values_list("pk", flat=True):
        try:
            end_session(session_id, SessionState.CANCELLED)
        except SessionEnded:
            continue  # it ended by itself meanwhile
