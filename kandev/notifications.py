"""Outbox rows as notifications. What a change does to a session's projection is read when it is told, not when it was
written, so that whoever hears it last has the truth (promises I1, I7, R31)."""

import logging
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import QuerySet

from tasks import envelopes, prepared, revisions, summaries
from tasks.hub import Notification
from tasks.models import Event, Session
from tasks.registry import Kinds, kinds

logger = logging.getLogger(__name__)

WITH_PROJECTION = "session.message."
WITHOUT_SUMMARY = ("task.summary.updated", "task.deleted")


def build(rows: Sequence[Event]) -> list[Notification]:
    """In row order. Message events get the projection of their session, read for all sessions in one statement."""
    told = {row.session_id for row in rows if row.session_id is not None and row.action.startswith(WITH_PROJECTION)}
    projections = _projections(told)
    return [_notification(row, projections) for row in rows]


def _notification(row: Event, projections: dict[uuid.UUID, dict[str, Any]]) -> Notification:
    payload = dict(row.payload)
    if row.action.startswith(WITH_PROJECTION) and row.session_id is not None:
        payload |= projections.get(row.session_id, {})
    text = envelopes.notification(row.action, payload, row.created_at)
    return Notification(text, row.task_id, row.workspace_id, row.session_id)


def _projections(ids: set[uuid.UUID]) -> dict[uuid.UUID, dict[str, Any]]:
    """By session; empty when it failed, and then both keys are absent and change no icon (R42)."""
    try:
        return {row.pk: _projection(row) for row in _projected(sorted(ids), kinds())} if ids else {}
    except Exception:
        logger.exception("the projection of %d sessions failed; their events go without it", len(ids))
        return {}


@prepared.rows
def _projected(ids: list[uuid.UUID], shaped_by: Kinds) -> QuerySet[Session]:
    return Session.objects.with_pending().filter(pk__in=ids)


def _projection(row: Any) -> dict[str, Any]:
    return {"pending_action": row.pending_kind or None, "pending_action_revision": revisions.wire(row)}


def refresh_summaries(rows: Iterable[Event]) -> None:
    """Mends the summary of every task that the rows may have changed; one statement when none is stale.

    A failure is logged: the next event or read mends it (promise I5).
    """
    ids = {row.task_id for row in rows if row.action not in WITHOUT_SUMMARY}
    try:
        for task in summaries.read(sorted(ids)):
            if summaries.is_stale(task):
                summaries.refresh(task.pk)
    except Exception:
        logger.exception("summaries of %d tasks could not be refreshed", len(ids))
