"""Move a task between the columns. An active question of any of its sessions keeps it where it is (promise M1)."""

import datetime as dt
import uuid

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from tasks import events, points, revisions
from tasks.errors import Conflict, KandevError, NotFound, Unavailable
from tasks.models import Session, Task, TaskState


class PendingInput(Conflict):
    code, message = "pending_input", "a question of this task waits for an answer"


def move(task_id: uuid.UUID, state: TaskState) -> None:
    """Moves a task; where it is already, nothing happens. Access is the caller's to check.

    PendingInput while a question or an outstanding answer blocks it, Unavailable when that cannot be read. The task's
    sessions are locked first: a question is stored under that lock, so none appears between the look and the move.
    """
    with transaction.atomic():
        revisions.lock_sessions(task_id)
        if Task.objects.filter(pk=task_id, state=state).exists():
            return
        if is_blocked(task_id):
            raise PendingInput
        if not _change(task_id, {"pk": task_id}, state, timezone.now()):
            raise NotFound


def advance(task_id: uuid.UUID, from_state: TaskState, to_state: TaskState, now: dt.datetime) -> bool:
    """The step of a turn that starts or completes; False when the task is elsewhere. The session is locked."""
    with transaction.atomic():
        return _change(task_id, {"pk": task_id, "state": from_state}, to_state, now)


def is_blocked(task_id: uuid.UUID) -> bool:
    """The guard, read now. It fails closed: Unavailable when it cannot be read (promise M1)."""
    try:
        waiting = Session.objects.filter(task=task_id).with_pending().exclude(Q(pending_kind="")).exists()
        return waiting or any(points.move_blocked.run(task_id))
    except KandevError:
        raise
    except Exception as error:
        raise Unavailable("whether a question waits cannot be read just now") from error


def _change(task_id: uuid.UUID, decided_on: dict[str, object], state: TaskState, now: dt.datetime) -> bool:
    if not Task.objects.filter(**decided_on).update(state=state, updated_at=now):
        return False
    told = Task.objects.only("workspace").get(pk=task_id)
    events.emit(events.task_event("task.updated", told, {"state": str(state)}, now))
    return True
