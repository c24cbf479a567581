"""The status summary of a task: a cache of the rule, repaired on read by compare-and-set (promises I3, I4, I5).

`{revision, pending_action, primary_session_pending_action}` and whatever else is stored there, which is left alone. A
refresh ends only with a read that found rule and cache equal. Without that last look a refresh that read the rule early
and wrote late could leave the older verdict of two near-simultaneous changes (promise I1).
"""

import logging
import uuid
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from tasks import events, prepared
from tasks.errors import Unavailable
from tasks.models import Task
from tasks.registry import Kinds, kinds

logger = logging.getLogger(__name__)

TRIES = 8


class SummaryConflict(Unavailable):
    """Every try lost to another writer (I4)."""

    code, message = "convergence_failed", "the task's summary could not be brought up to date, try again"


def wire(task: Task) -> dict[str, Any]:
    """The stored summary as it is shown: whole, with its revision."""
    stored = task.summary if isinstance(task.summary, dict) else {}
    actions = {"pending_action": None, "primary_session_pending_action": None}
    return {**actions, **stored, "revision": task.summary_revision}


def is_stale(task: Task) -> bool:
    """Whether the summary of a task from `with_pending` differs from the rule."""
    shown = wire(task)
    return any(shown[key] != value for key, value in _rule(task).items())


def refresh(task_id: uuid.UUID) -> Task | None:
    """Brings the stored summary in line with the rule; the task as last read, None when it is gone.

    No change takes no revision and tells nobody. SummaryConflict when other writers won every try.
    """
    for _ in range(TRIES):
        task = next(iter(read([task_id])), None)
        if task is None or not is_stale(task):
            return task
        _store(task)
    raise SummaryConflict


def read(task_ids: list[uuid.UUID]) -> list[Task]:
    """Tasks with what the rule says of them now."""
    return _read(task_ids, kinds()) if task_ids else []


@prepared.rows
def _read(task_ids: list[uuid.UUID], shaped_by: Kinds) -> QuerySet[Task]:
    return Task.objects.with_pending().filter(pk__in=task_ids)


def repair(tasks: Iterable[Task]) -> dict[uuid.UUID, dict[str, Any] | None]:
    """The summaries of tasks from `with_pending`, stale ones mended on the way: no query while nothing is stale.

    A task whose summary cannot be mended gets None; its `pending_kind` is the coarse truth. Tasks are updated in place.
    """
    return {task.pk: _repaired(task) for task in tasks}


def _repaired(task: Task) -> dict[str, Any] | None:
    if not is_stale(task):
        return wire(task)
    try:
        fresh = refresh(task.pk)
    except Exception:
        logger.exception("the summary of task %s could not be repaired", task.pk)
        return None
    if fresh is not None:
        for name in ("summary", "summary_revision", "pending_kind", "primary_pending_kind", "primary_session_id"):
            setattr(task, name, getattr(fresh, name))
    return wire(task)


def _rule(task: Task) -> dict[str, Any]:
    return {
        "pending_action": task.pending_kind or None,
        "primary_session_pending_action": task.primary_pending_kind or None,
    }


def _store(task: Task) -> bool:
    """Compare-and-set on the revision that was read; False when another writer was first."""
    stored = task.summary if isinstance(task.summary, dict) else {}
    seen = task.summary_revision
    task.summary, task.summary_revision = {**stored, **_rule(task)}, seen + 1
    with transaction.atomic():
        rows = Task.objects.filter(pk=task.pk, summary_revision=seen)
        if not rows.update(summary=task.summary, summary_revision=task.summary_revision):
            return False
        events.emit(events.task_event("task.summary.updated", task, {"summary": wire(task)}, timezone.now()))
    return True
