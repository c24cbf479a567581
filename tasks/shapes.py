"""Wire shapes of this layer (contract 3). Whitelists: no e-mail address, no internal key (B71 of the fault list)."""

import datetime as dt
from typing import Any

from tasks import revisions
from tasks.models import Session, Task, Workspace


def time(value: dt.datetime) -> str:
    """RFC 3339 in UTC."""
    return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


def workspace(row: Workspace) -> dict[str, Any]:
    """A workspace from `with_people`; people by their user name."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "owner": row.owner.get_username() if row.owner else None,
        "members": [{"user": one.user.get_username(), "role": one.role} for one in row.memberships.all()],
        "created_at": time(row.created_at),
    }


def task(row: Task, summary: dict[str, Any] | None) -> dict[str, Any]:
    """A task from `with_pending`. A summary of None was invalidated: `pending_action` is then all there is (I4).

    `status_summary_revision` says which stored summary that is about, so that a newer one is not dropped for it.
    """
    return {
        "id": str(row.pk),
        "workspace": str(row.workspace_id) if row.workspace_id else None,
        "title": row.title,
        "description": row.description,
        "state": row.state,
        "archived": row.archived_at is not None,
        "primary_session": str(row.primary_session_id) if row.primary_session_id else None,
        "pending_action": row.pending_kind or None,
        "primary_session_pending_action": row.primary_pending_kind or None,
        "status_summary": summary,
        "status_summary_revision": row.summary_revision,
        "created_at": time(row.created_at),
        "updated_at": time(row.updated_at),
    }


def session(row: Session) -> dict[str, Any]:
    """A session from `projected`: its state and, read in the same statement, projection and revision (I2, R31)."""
    return {
        "id": str(row.pk),
        "task_id": str(row.task_id),
        "state": row.state,
        "is_primary": row.is_primary,
        "input_capable": row.input_capable,
        "agent": row.agent,
        "pending_action": row.pending_kind or None,
        "pending_action_revision": revisions.wire(row),
        "created_at": time(row.created_at),
        "last_activity_at": time(row.last_activity_at),
    }


def projection(row: Session) -> dict[str, Any]:
    """A session as a socket's snapshot shows it (contract 7)."""
    return {
        "session_id": str(row.pk),
        "task_id": str(row.task_id),
        "state": row.state,
        "pending_action": row.pending_kind or None,
        "pending_action_revision": revisions.wire(row),
    }
