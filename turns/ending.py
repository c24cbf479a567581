"""End a turn: by the agent's `ready`, a failure, an acknowledged cancel, a lost runner or the session's end.

Other writers: a second end (the guarded update on `completed_at` decides), a claim or confirm of this turn's questions
(the session lock decides; leases go in the same transaction, END_TAKES_LEASE).
"""

import datetime as dt
import uuid

from django.db import transaction

from tasks import events, hints, revisions
from tasks.models import Session, SessionState
from turns import background, completing, permitting, points, shapes
from turns.models import Dispatch, DispatchState, EndReason, Timer, Turn


def end_turn(session_id: uuid.UUID, turn_id: uuid.UUID, reason: EndReason, now: dt.datetime) -> bool:
    """Ends an open turn; False when it had ended already. The queue and the workflow follow after the commit."""
    with transaction.atomic():
        session = _session(session_id)
        if not end_locked(session, turn_id, reason, now):
            return False
        if reason == EndReason.READY:
            turn = Turn.objects.get(pk=turn_id)
            points.activity.run(turn, "ready", now)
        _announce(session, turn_id, now)
        from turns import draining

        background.after_commit(draining.follow_up, session_id)
    return True


def end_unheard(session_id: uuid.UUID, turn_id: uuid.UUID, now: dt.datetime) -> bool:
    """The runner's journal says that the prompt ran to its end, but the frame that said so was lost with a socket."""
    told = Turn.objects.filter(pk=turn_id, cancel_requested_at__isnull=False).exists()
    return end_turn(session_id, turn_id, EndReason.CANCELLED if told else EndReason.READY, now)


def _session(session_id: uuid.UUID) -> Session:
    revisions.lock_session(session_id)
    return Session.objects.select_related("task").get(pk=session_id)


def end_locked(session: Session, turn_id: uuid.UUID, reason: EndReason, now: dt.datetime) -> bool:
    """`end_turn` without its event, inside the caller's transaction; needs the session lock."""
    revisions.require_transaction()
    open_turn = Turn.objects.filter(pk=turn_id, session=session, completed_at__isnull=True)
    if not open_turn.update(completed_at=now, end_reason=reason):
        return False
    Timer.objects.filter(turn_id=turn_id).delete()
    running = Session.objects.filter(pk=session.pk, state=SessionState.RUNNING)
    running.update(state=SessionState.WAITING, last_activity_at=now)
    permitting.turn_over(session, turn_id, now)
    points.turn_ending.run(Turn.objects.get(pk=turn_id), reason, now)
    hints.after_commit(f"session:{session.pk}")
    return True


def _announce(session: Session, turn_id: uuid.UUID, now: dt.datetime) -> None:
    """`turn.completed`, unless the turn itself is not published yet: its publication then tells both (promise E4)."""
    turn = Turn.objects.get(pk=turn_id)
    waiting = Dispatch.objects.filter(
        turn_id=turn_id, state__in=(DispatchState.ATTEMPTED, DispatchState.ACCEPTED)
    ).exists()
    if not waiting:
        events.emit(events.event("turn.completed", session, {"turn": shapes.turn(turn)}, now))


def end_with_session(session: Session, now: dt.datetime) -> None:
    """The hook of a session's end: its open turn ends with it, its runner is told to stop; needs the session lock.

    The event waits for the expiry of the questions, which is a transaction of its own (R30).
    """
    from turns import outgoing
    from turns.models import FrameKind

    current = Turn.objects.current_of(session.pk)
    if current is not None and end_locked(session, current.pk, EndReason.SESSION_ENDED, now):
        Turn.objects.filter(pk=current.pk).update(completion_unpublished=True)
    if session.runner_id or (current is not None and current.runner_id):
        runner = session.runner_id or (current.runner_id if current else "")
        outgoing.owe(runner, FrameKind.STOP, session.pk, {"session_id": str(session.pk)}, now)
    background.after_commit(completing.judge, session.task_id)  # its question or its queue may have held the step back
    hints.after_commit(f"session:{session.pk}")


def announce_ended(session_id: uuid.UUID, now: dt.datetime) -> None:
    """After the expiry: the event of the turn that ended with its session. Call it again and nothing more happens."""
    with transaction.atomic():
        unpublished = Turn.objects.filter(session=session_id, completion_unpublished=True)
        if not unpublished.exists():
            return  # told already, or deleted together with its task
        session = _session(session_id)
        for turn in unpublished:
            if unpublished.filter(pk=turn.pk).update(completion_unpublished=False):
                _announce(session, turn.pk, now)
