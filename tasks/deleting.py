"""Archive and delete tasks and workspaces. Every live session is cancelled first, so nobody waits for what is gone.

A session may be created between that and the deletion; it is found under the task's lock, and the round begins anew.
"""

import uuid
from collections.abc import Callable

from django.db import transaction
from django.utils import timezone

from tasks import creating, ending, events, revisions
from tasks.errors import NotFound, Unavailable
from tasks.models import Session, Task, Workspace
from tasks.sharing import lock_workspace

TRIES = 5


def archive_task(task_id: uuid.UUID) -> None:
    """Takes a task off the board; again is a no-op. NotFound when it is gone."""
    _without_live_sessions(task_id, _archive)


def delete_task(task_id: uuid.UUID) -> None:
    """Deletes a task with everything under it and tells `task.deleted`. NotFound when it is gone."""
    _without_live_sessions(task_id, _delete)


def delete_workspace(workspace_id: uuid.UUID) -> None:
    """Deletes a workspace and its tasks. A task that is created meanwhile is deleted too (it needs this row's lock)."""
    for _ in range(TRIES):
        for task_id in Task.objects.filter(workspace=workspace_id).values_list("pk", flat=True):
            _delete_if_there(task_id)
        with transaction.atomic():
            row = lock_workspace(workspace_id)
            if not Task.objects.filter(workspace=row).exists():
                Workspace.objects.filter(pk=row.pk).delete()
                return
    raise Unavailable


def _delete_if_there(task_id: uuid.UUID) -> None:
    try:
        delete_task(task_id)
    except NotFound:
        return  # somebody else deleted it


def _without_live_sessions(task_id: uuid.UUID, change: Callable[[Task], None]) -> None:
    for _ in range(TRIES):
        ending.cancel_live(task_id)
        with transaction.atomic():
            revisions.lock_sessions(task_id)
            task = creating.lock_task(task_id)
            if not Session.objects.filter(task=task_id).live().exists():
                change(task)
                return
    raise Unavailable


def _archive(task: Task) -> None:
    now = timezone.now()
    if Task.objects.filter(pk=task.pk, archived_at__isnull=True).update(archived_at=now, updated_at=now):
        events.tell_updated(task, now)


def _delete(task: Task) -> None:
    events.emit(events.task_event("task.deleted", task, {}, timezone.now()))
    Task.objects.filter(pk=task.pk).delete()
