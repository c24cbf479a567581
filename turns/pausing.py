"""Pause: cancel a turn whose agent would go on without its answer (promise K5), and make up for a cancel nobody
acknowledges.

A pause names the turn that it was decided for; a turn that appears meanwhile is not cancelled.
"""

import datetime as dt
import uuid

from django.conf import settings
from django.db import transaction

from tasks import revisions
from turns import ending, outgoing, permitting, points
from turns.models import EndReason, FrameKind, Timer, TimerKind, Turn


def cancel_turn(session_id: uuid.UUID, turn_id: uuid.UUID, reason: str, now: dt.datetime) -> bool:
    """Sends the open current turn its cancel, once; False when it has ended, is not current or was told before."""
    with transaction.atomic():
        revisions.lock_session(session_id)
        return cancel_locked(session_id, turn_id, reason, now)


def cancel_locked(session_id: uuid.UUID, turn_id: uuid.UUID, reason: str, now: dt.datetime) -> bool:
    """`cancel_turn` inside the caller's transaction; needs the session lock."""
    revisions.require_transaction()
    current = Turn.objects.current_of(session_id)
    if current is None or current.pk != turn_id:
        return False
    open_turn = Turn.objects.filter(pk=turn_id, completed_at__isnull=True, cancel_requested_at__isnull=True)
    if not open_turn.update(cancel_requested_at=now):
        return False
    Timer.objects.filter(turn_id=turn_id, kind=TimerKind.PAUSE).delete()
    Timer.objects.create(
        kind=TimerKind.CANCEL_OVERDUE,
        session_id=session_id,
        turn_id=turn_id,
        due_at=now + dt.timedelta(seconds=settings.KANDEV_RUNNER_LEASE_S),
    )
    _tell_runner(current, reason, now)
    permitting.turn_over(current.session, turn_id, now)
    points.turn_cancelling.run(current, now)
    return True


def _tell_runner(turn: Turn, reason: str, now: dt.datetime) -> None:
    if not turn.runner_id:
        return
    payload = {
        "session_id": str(turn.session_id),
        "execution_id": str(turn.execution_id),
        "prompt_generation": turn.prompt_generation,
        "reason": reason,
    }
    outgoing.owe(turn.runner_id, FrameKind.CANCEL, turn.session_id, payload, now)


def schedule(session_id: uuid.UUID, turn_id: uuid.UUID, pending_id: str, due_at: dt.datetime) -> None:
    """A pause that is due unless the agent asks the same again before; needs the session lock."""
    revisions.require_transaction()
    Timer.objects.update_or_create(
        kind=TimerKind.PAUSE,
        turn_id=turn_id,
        pending_id=pending_id,
        defaults={"session_id": session_id, "due_at": due_at},
    )


def unschedule(turn_id: uuid.UUID, pending_id: str) -> None:
    Timer.objects.filter(kind=TimerKind.PAUSE, turn_id=turn_id, pending_id=pending_id).delete()


def interrupt(session_id: uuid.UUID, turn_id: uuid.UUID, now: dt.datetime) -> bool:
    """A cancel that nobody acknowledged, or a runner that is gone: the turn ends as interrupted (R5)."""
    return ending.end_turn(session_id, turn_id, EndReason.INTERRUPTED, now)
