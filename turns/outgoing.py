"""Frames that runners are owed. They are rows, written with the change that owes them; the runner's socket, in
whichever process it lives, sends them in order. A frame that dies with its socket is asked again by `revoke` or made
up by a timer."""

import datetime as dt
import uuid
from typing import Any

from django.conf import settings
from django.db import transaction

from tasks import hints, tokens
from turns.models import Dispatch, DispatchState, FrameKind, Runner, RunnerFrame


def owe(
    runner_id: str,
    kind: FrameKind,
    session_id: uuid.UUID,
    payload: dict[str, Any],
    now: dt.datetime,
    dispatch: Dispatch | None = None,
) -> None:
    """Stores a frame in the open transaction and hints at the runner's socket after its commit."""
    RunnerFrame.objects.create(
        runner_id=runner_id, kind=kind, session_id=session_id, payload=payload, created_at=now, dispatch=dispatch
    )
    hints.after_commit(f"runner:{runner_id}")


def take(runner_id: str, connection_id: uuid.UUID, now: dt.datetime) -> list[dict[str, Any]]:
    """The unsent frames as they go on the wire, marked as sent by this connection; [] when it speaks for the runner
    no more.

    The runner's row is locked, so a replaced connection and its successor cannot both take a frame.
    """
    if not RunnerFrame.objects.filter(runner_id=runner_id, sent_at__isnull=True).exists():
        return []
    with transaction.atomic():
        runner = Runner.objects.select_for_update().filter(pk=runner_id, connection_id=connection_id).first()
        if runner is None:
            return []
        rows = list(
            RunnerFrame.objects.filter(runner_id=runner_id, sent_at__isnull=True)
            .select_related("dispatch__session")
            .order_by("id")
        )
        RunnerFrame.objects.filter(pk__in=[row.pk for row in rows]).update(sent_at=now)
    return [frame for frame in map(_wire, rows) if frame is not None]


def _wire(row: RunnerFrame) -> dict[str, Any] | None:
    if row.kind == FrameKind.DISPATCH:
        return _dispatch(row.dispatch) if row.dispatch and row.dispatch.state == DispatchState.ATTEMPTED else None
    return {"type": row.kind, **row.payload}


def _dispatch(dispatch: Dispatch) -> dict[str, Any]:
    frame = {
        "type": "dispatch",
        "dispatch_id": str(dispatch.pk),
        "task_id": str(dispatch.session.task_id),
        "session_id": str(dispatch.session_id),
        "turn_id": str(dispatch.turn_id),
        "execution_id": str(dispatch.execution_id),
        "prompt_generation": dispatch.prompt_generation,
        "agent": dispatch.agent,
        "prompt": dispatch.prompt,
        "mcp": {
            "url": f"{settings.KANDEV_PUBLIC_URL}/mcp/session",
            "token": tokens.session_token_text(dispatch.pk),
        },
    }
    return frame | ({"replaces": dispatch.replaces} if dispatch.replaces else {})
