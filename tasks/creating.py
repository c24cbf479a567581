"""New tasks and sessions. What was created stays, whatever becomes of its first prompt, which runs after the commit."""

import logging
import uuid

from django.db import transaction
from django.utils import timezone

from tasks import events, points
from tasks.errors import Conflict, NotFound, Unavailable
from tasks.models import Session, Task
from tasks.principals import Principal
from tasks.sharing import lock_workspace

logger = logging.getLogger(__name__)

TRIES = 5


class TaskArchived(Conflict):
    code, message = "task_archived", "the task is archived"


def create_task(
    principal: Principal, workspace_id: uuid.UUID, title: str, description: str = "", agent: str = "", prompt: str = ""
) -> Task:
    """A task; `agent` makes its primary session, `prompt` starts that. Access is the caller's to check.

    A prompt that cannot be admitted leaves both as they are: repeating the whole request would make a second task.
    """
    now = timezone.now()
    with transaction.atomic():
        lock_workspace(workspace_id)  # its deletion finds either no task or this one
        task = Task.objects.create(
            workspace_id=workspace_id, title=title, description=description, created_at=now, updated_at=now
        )
        events.tell_updated(task, now)
        session = _insert(task, agent, is_primary=True) if agent else None
    if session is not None and prompt:
        _start(principal, session, prompt)
    return task


def _start(principal: Principal, session: Session, prompt: str) -> None:
    try:
        points.prompt_given.run(session, prompt, principal)
    except Exception:
        logger.exception("the first prompt of session %s was not admitted", session.pk)


def create_session(
    principal: Principal, task_id: uuid.UUID, agent: str, prompt: str = "", is_primary: bool | None = None
) -> Session:
    """A session of a task; primary when asked for, or by default when the task has none.

    Access is the caller's to check. Raises what the prompt's admission raises; the session is kept then too.
    """
    session = _create(task_id, agent, is_primary)
    if prompt:
        points.prompt_given.run(session, prompt, principal)
    return session


def _create(task_id: uuid.UUID, agent: str, is_primary: bool | None) -> Session:
    for _ in range(TRIES):
        with transaction.atomic():
            primary = lock_primary(task_id)
            task = lock_task(task_id)
            if task.archived_at is not None:
                raise TaskArchived
            if primary == _primary_of(task_id):
                wanted = primary is None if is_primary is None else is_primary
                if wanted and primary is not None:
                    Session.objects.filter(pk=primary).update(is_primary=False)
                return _insert(task, agent, is_primary=wanted)
    raise Unavailable


def lock_task(task_id: uuid.UUID) -> Task:
    """The task's row, locked to the end of the transaction: after the locks on its sessions, never before (B26)."""
    task = Task.objects.select_for_update(of=("self",)).filter(pk=task_id).first()
    if task is None:
        raise NotFound
    return task


def lock_primary(task_id: uuid.UUID) -> uuid.UUID | None:
    """Locks the primary session, which a new primary one demotes."""
    rows = Session.objects.select_for_update(of=("self",)).filter(task=task_id, is_primary=True)
    return rows.values_list("pk", flat=True).first()


def _primary_of(task_id: uuid.UUID) -> uuid.UUID | None:
    return Session.objects.filter(task=task_id, is_primary=True).values_list("pk", flat=True).first()


def _insert(task: Task, agent: str, *, is_primary: bool) -> Session:
    """Needs the task's lock, or a task that nobody else sees yet."""
    now = timezone.now()
    return Session.objects.create(task=task, agent=agent, is_primary=is_primary, created_at=now, last_activity_at=now)
