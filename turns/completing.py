"""The workflow step of a completed turn, once: held back by an active question or an outstanding answer, made up
later (R33).

Called again whenever something that held it back is over; the guarded update on `completion_handled` decides.
"""

import uuid

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from tasks import moving, prepared, revisions
from tasks.models import Session, SessionState, TaskState
from tasks.registry import pending_kind
from turns import busy
from turns.models import EndReason, Turn

GIVEN_UP = (SessionState.FAILED, SessionState.CANCELLED)


def judge(task_id: uuid.UUID) -> None:
    """Judges every session of the task whose newest turn completed normally and was not judged yet."""
    for session_id in set(_unjudged(task_id)):
        _judge_session(task_id, session_id)


@prepared.rows
def _unjudged(task_id: uuid.UUID) -> "QuerySet[Session, uuid.UUID]":
    sessions = Session.objects.filter(task=task_id, turns__end_reason=EndReason.READY, turns__completion_handled=False)
    return sessions.values_list("pk", flat=True)


def _judge_session(task_id: uuid.UUID, session_id: uuid.UUID) -> None:
    with transaction.atomic():
        session = revisions.lock_session(session_id)
        turn = Turn.objects.current_of(session_id)
        if turn is None or turn.end_reason != EndReason.READY or turn.completion_handled or session.state in GIVEN_UP:
            return
        if busy.is_busy(session_id) or _question_open(task_id):
            return
        if busy.has_queue(session_id) and not session.terminal:  # what an ended session left behind goes nowhere
            return
        if Turn.objects.filter(pk=turn.pk, completion_handled=False).update(completion_handled=True):
            moving.advance(task_id, TaskState.IN_PROGRESS, TaskState.REVIEW, timezone.now())


def _question_open(task_id: uuid.UUID) -> bool:
    return Session.objects.filter(task=task_id).annotate(kind=pending_kind()).exclude(kind="").exists()
