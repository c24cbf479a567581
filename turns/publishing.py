"""Publish an accepted dispatch: `turn.started` into the outbox, then markers cleared and the answer finalized
(promise D2).

Two transactions. If the process dies between them, recovery repeats the first: the event is told at least once, and the
markers go only after the bus took it (promise E4).
"""

import datetime as dt
import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone

from tasks import events, failpoints, moving, revisions
from tasks.models import Session, SessionState, TaskState
from turns import background, points, shapes, transcript
from turns.models import Admission, AdmissionState, Dispatch, DispatchState, Turn

PRIVATE = (
    "prompt_dispatch_pending",
    "prompt_dispatch_attempted",
    "prompt_start_event_outbox",
    "owner_instance",
    "source_turn_id",
    "pending_id",
    "claim_id",
    "claimed_message_ids",
)


def publish(dispatch_id: uuid.UUID) -> bool:
    """Publishes an accepted dispatch; False when it is not accepted (or another process was first). May raise."""
    failpoints.reach("dispatch.after_accept")
    if not _announce(dispatch_id):
        return False
    failpoints.reach("dispatch.after_publish")
    return _clear(dispatch_id)


def _announce(dispatch_id: uuid.UUID) -> bool:
    with transaction.atomic():
        found = _accepted(dispatch_id)
        if found is None:
            return False
        _, session, turn = found
        now = timezone.now()
        Turn.objects.filter(pk=turn.pk).update(metadata={**turn.metadata, "prompt_start_event_outbox": True})
        rows = [events.event("turn.started", session, {"turn": shapes.turn(turn)}, now)]
        if turn.completed_at is not None:
            rows.append(events.event("turn.completed", session, {"turn": shapes.turn(turn)}, now))
        events.emit(*rows)
    return True


def _clear(dispatch_id: uuid.UUID) -> bool:
    """Markers, the prompt's own row, the session's state and the answer's intent change in one transaction."""
    with transaction.atomic():
        found = _accepted(dispatch_id)
        if found is None:
            return False
        dispatch, session, turn = found
        now = timezone.now()
        Dispatch.objects.filter(pk=dispatch.pk, state=DispatchState.ACCEPTED).update(state=DispatchState.PUBLISHED)
        clean = {k: v for k, v in turn.metadata.items() if k not in PRIVATE}
        Turn.objects.filter(pk=turn.pk).update(metadata=clean)
        _start_session(session, turn, now)
        _record_prompt(dispatch, session, turn, now)
        points.dispatch_published.run(dispatch, session, now)
        from turns import completing, draining

        background.after_commit(completing.judge, session.task_id)
        if turn.completed_at is not None:
            background.after_commit(draining.drain, session.pk)
    return True


def _accepted(dispatch_id: uuid.UUID) -> tuple[Dispatch, Session, Turn] | None:
    dispatch = Dispatch.objects.filter(pk=dispatch_id).first()
    if dispatch is None:
        return None
    revisions.lock_session(dispatch.session_id)
    row = Dispatch.objects.select_related("session__task").filter(pk=dispatch_id, state=DispatchState.ACCEPTED).first()
    turn = Turn.objects.filter(pk=dispatch.turn_id).first()
    return (row, row.session, turn) if row is not None and turn is not None else None


def _start_session(session: Session, turn: Turn, now: dt.datetime) -> None:
    """The session runs while its turn does; an ended session stays ended."""
    changes: dict[str, Any] = {"last_activity_at": now}
    if turn.completed_at is None and not session.terminal:
        changes["state"] = SessionState.RUNNING
    Session.objects.filter(pk=session.pk).update(**changes)
    moving.advance(session.task_id, TaskState.TODO, TaskState.IN_PROGRESS, now)


def _record_prompt(dispatch: Dispatch, session: Session, turn: Turn, now: dt.datetime) -> None:
    """A prompt's own row gets its turn at publication, never before: only a runner's word is evidence (rulings,
    Evidence).
    """
    if dispatch.admission_id is None:
        return
    admission = Admission.objects.filter(pk=dispatch.admission_id).first()
    if admission is None:
        return
    message = transcript.place_prompt(session, admission, turn, now)
    result = admission.result or {"message": shapes.message(message, session), "admission": "sent"}
    Admission.objects.filter(pk=admission.pk).update(state=AdmissionState.SENT, message_id=message.pk, result=result)
