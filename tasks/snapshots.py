"""The state that a follower starts from: sessions with their projection and tasks with their summary (contract 7)."""

import logging
from typing import Any

from django.db.models import QuerySet

from tasks import access, revisions, summaries
from tasks.errors import KandevError, ServerFault
from tasks.hub import Key
from tasks.models import Session, Task
from tasks.principals import Principal

logger = logging.getLogger(__name__)


def check(principal: Principal, key: Key) -> None:
    """NotFound when `key` is unknown or not the caller's, alike for both (promise H6)."""
    read = access.task if key.kind == "task" else access.workspace
    read(principal, key.pk)


def of(principal: Principal, key: Key) -> dict[str, Any]:
    """`{"sessions": [...], "tasks": [...]}` as `principal` sees them.

    ServerFault `projection_failed` when it cannot be read: never an answer that looks clean (promise I6).
    """
    try:
        return {"sessions": _sessions(principal, key), "tasks": _tasks(key)}
    except KandevError:
        raise
    except Exception as error:
        logger.exception("projection of %s %s failed", key.kind, key.pk)
        raise ServerFault("the pending actions could not be read", code="projection_failed") from error


def _sessions(principal: Principal, key: Key) -> list[dict[str, Any]]:
    rows = Session.objects.reachable(principal).with_pending()
    return [session(row) for row in rows.filter(**{_path(key, "task"): key.pk})]


def session(row: Session) -> dict[str, Any]:
    """A row of `with_pending`: projection and revision were read in one statement (promise I2, R31)."""
    return {
        "session_id": str(row.pk),
        "task_id": str(row.task_id),
        "state": row.state,
        "pending_action": getattr(row, "pending_kind") or None,  # noqa: B009 - an annotation
        "pending_action_revision": revisions.wire(row),
    }


def _tasks(key: Key) -> list[dict[str, Any]]:
    """A summary is null when it is stale and cannot be mended just now (promise I4)."""
    rows: QuerySet[Task] = Task.objects.with_pending().filter(**{_path(key, ""): key.pk})
    return [{"task_id": str(pk), "summary": summary} for pk, summary in summaries.repair(rows).items()]


def _path(key: Key, prefix: str) -> str:
    """From a row that reaches its task by `prefix` ("" = the task itself) to the id of `key`."""
    parts = [part for part in (prefix, "workspace" if key.kind == "workspace" else "") if part]
    return "__".join(parts) or "pk"
