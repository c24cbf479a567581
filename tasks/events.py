"""Notifications to pages (contract 7). `emit` writes the outbox row in the transaction of the change; a publisher
sends it after the commit, in row order, at least once. What is not committed is never told (B05 of the fault list)."""

import datetime as dt
from typing import Any

from django.db import transaction

from tasks import hints, instances, prepared
from tasks.models import Event, Session, Task

OUTBOX = "outbox"


def event(action: str, session: Session, payload: dict[str, Any], now: dt.datetime) -> Event:
    """An unsaved outbox row about a session; `session.task` is read if it is not loaded."""
    return Event(
        action=action,
        workspace_id=session.task.workspace_id,
        task_id=session.task_id,
        session_id=session.pk,
        payload={"session_id": str(session.pk), "task_id": str(session.task_id), **payload},
        owner=instances.generation(),
        created_at=now,
    )


def task_event(action: str, task: Task, payload: dict[str, Any], now: dt.datetime) -> Event:
    """An unsaved outbox row about a task."""
    return Event(
        action=action,
        workspace_id=task.workspace_id,
        task_id=task.pk,
        payload={"task_id": str(task.pk), **payload},
        owner=instances.generation(),
        created_at=now,
    )


def tell_updated(task: Task, now: dt.datetime) -> None:
    """Something of the task changed that its followers show; needs an open transaction."""
    emit(task_event("task.updated", task, {"state": str(task.state)}, now))


def emit(*rows: Event) -> None:
    """Stores the rows in the open transaction; the publisher is poked after its commit."""
    if rows:
        if len(rows) == 1:
            prepared.insert(rows[0])
        else:
            Event.objects.bulk_create(rows)
        transaction.on_commit(poke, robust=True)


def poke() -> None:
    hints.wake(OUTBOX)
