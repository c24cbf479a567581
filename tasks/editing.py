"""Change what people wrote about a task, and where it stands: workspace, archive, primary session."""

import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone

from tasks import creating, deleting, events, hints, revisions, summaries
from tasks.errors import NotFound, invalid
from tasks.models import Session, Task
from tasks.sharing import lock_workspace


def edit_task(task_id: uuid.UUID, **changes: Any) -> None:
    """Of `title`, `description`, `workspace_id`, `archived` and `primary_session` what is given.

    Access is the caller's to check. Archiving ends the live sessions first, as deletion does. The state is not
    among them: see `moving`.
    """
    primary, archived = changes.pop("primary_session", None), changes.pop("archived", None)
    if primary is not None:
        _choose_primary(task_id, primary)
    if changes:
        _update(task_id, changes)
    if archived is not None:
        (deleting.archive_task if archived else _unarchive)(task_id)


def _update(task_id: uuid.UUID, changes: dict[str, Any]) -> None:
    now = timezone.now()
    with transaction.atomic():
        if "workspace_id" in changes:
            lock_workspace(changes["workspace_id"])
            events.tell_updated(creating.lock_task(task_id), now)  # to those who see it go
            hints.after_commit(hints.ACCESS)
        if not Task.objects.filter(pk=task_id).update(**changes, updated_at=now):
            raise NotFound
        events.tell_updated(Task.objects.get(pk=task_id), now)


def _unarchive(task_id: uuid.UUID) -> None:
    now = timezone.now()
    with transaction.atomic():
        if Task.objects.filter(pk=task_id, archived_at__isnull=False).update(archived_at=None, updated_at=now):
            events.tell_updated(Task.objects.get(pk=task_id), now)


def _choose_primary(task_id: uuid.UUID, session_id: uuid.UUID) -> None:
    with transaction.atomic():
        revisions.lock_sessions(task_id)
        creating.lock_task(task_id)
        mine = Session.objects.filter(task=task_id)
        if not mine.filter(pk=session_id).exists():
            raise invalid("primary_session", "is not a session of this task")
        mine.filter(is_primary=True).exclude(pk=session_id).update(is_primary=False)
        mine.filter(pk=session_id).update(is_primary=True)
    summaries.refresh(task_id)
