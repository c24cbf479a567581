"""What runners say of running prompts: frames, permission requests, ready, failed, cancelled. A frame counts only for
the open turn of exactly its session, execution and generation on exactly this runner; everything else is late and
changes nothing (promises H5, K1).
"""

import datetime as dt
import logging
import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone

from tasks import ending as session_ending
from tasks import revisions
from tasks.errors import KandevError, NotFound
from tasks.models import Session, SessionState
from turns import ending, permitting, points, settling, transcript
from turns.models import Author, Dispatch, DispatchState, EndReason, MessageType, Turn

logger = logging.getLogger(__name__)
KINDS = {
    "message": MessageType.MESSAGE,
    "thinking": MessageType.THINKING,
    "tool": MessageType.TOOL,
    "status": MessageType.STATUS,
}
MAX_GENERATION = 2**63 - 1  # of the column
ACTIVE_KINDS = ("message", "thinking", "tool")


def handle(runner_id: str, frame: dict[str, Any]) -> None:
    """One frame of the runner, stored. Never raises for a frame that refers to nothing."""
    handlers = {
        "frame": _frame,
        "permission": _permission,
        "ready": _ready,
        "failed": _failed,
        "cancelled": _cancelled,
    }
    try:
        handlers[str(frame["type"])](runner_id, frame)
    except NotFound:
        logger.info("runner %s: a %s frame of a session that is gone", runner_id, frame.get("type"))


def _turn_of(runner_id: str, frame: dict[str, Any]) -> Turn | None:
    """The open turn that the frame names exactly, or None."""
    named = _named(frame)
    if named is None:
        return None
    return Turn.objects.filter(**named, runner_id=runner_id, completed_at__isnull=True).first()


def _named(frame: dict[str, Any]) -> dict[str, Any] | None:
    """The prompt that the frame names, or None when it names none."""
    try:
        session, execution = uuid.UUID(str(frame.get("session_id"))), uuid.UUID(str(frame.get("execution_id")))
        generation = frame["prompt_generation"]
        if type(generation) is not int or not 0 <= generation <= MAX_GENERATION:
            return None  # neither "1" nor 1.9 nor true names one
    except (ValueError, TypeError, KeyError):
        return None
    return {"session_id": session, "execution_id": execution, "prompt_generation": generation}


def _frame(runner_id: str, frame: dict[str, Any]) -> None:
    kind = str(frame.get("kind"))
    if kind not in KINDS:
        return
    with transaction.atomic():
        found = _locked(runner_id, frame)
        if found is None:
            return
        session, turn = found
        now = timezone.now()
        evidence(turn, now)
        data = frame.get("data")
        metadata = {"data": data} if data else {}
        content = str(frame.get("content") or "")
        transcript.add(
            session, now, author=Author.AGENT, kind=KINDS[kind], content=content, turn_id=turn.pk, metadata=metadata
        )
        Session.objects.filter(pk=session.pk).update(last_activity_at=now)
        if kind in ACTIVE_KINDS:
            points.activity.run(turn, kind, now)


def _permission(runner_id: str, frame: dict[str, Any]) -> None:
    """A permission request, stored once. One of a turn that is over is cancelled at once, or the agent would wait for
    ever: its runner may have been taken for lost meanwhile.
    """
    asked, named = permitting.read(frame), _named(frame)
    if asked is None or named is None:
        return
    with transaction.atomic():
        found, now = _locked(runner_id, frame), timezone.now()
        if found is None:
            _refuse(runner_id, named, asked.request_id, now)
            return
        session, turn = found
        evidence(turn, now)
        if permitting.store(session, turn, asked, now):
            points.activity.run(turn, "tool", now)


def _refuse(runner_id: str, named: dict[str, Any], request_id: str, now: dt.datetime) -> None:
    execution = {"execution_id": str(named["execution_id"]), "prompt_generation": named["prompt_generation"]}
    payload = {**execution, "request_id": request_id, "option_id": None}
    permitting.tell_runner(runner_id, named["session_id"], payload, now)


def _locked(runner_id: str, frame: dict[str, Any]) -> tuple[Session, Turn] | None:
    turn = _turn_of(runner_id, frame)
    if turn is None:
        return None
    revisions.lock_session(turn.session_id)
    turn = Turn.objects.filter(pk=turn.pk, completed_at__isnull=True).first()
    if turn is None:
        return None
    return Session.objects.select_related("task").get(pk=turn.session_id), turn


def evidence(turn: Turn, now: dt.datetime) -> None:
    """The first row of an unpublished turn proves that the runner took it; the marker outlives the row (Evidence, A3).

    Needs the session lock.
    """
    if not turn.dispatch_pending:
        return
    dispatch = Dispatch.objects.filter(turn_id=turn.pk, state=DispatchState.ATTEMPTED).first()
    if dispatch is not None and settling.accept_locked(dispatch, dispatch.runner_id, now):
        settling.publish_if_unattended(dispatch)
    if not turn.dispatch_attempted:
        Turn.objects.filter(pk=turn.pk).update(metadata={**turn.metadata, "prompt_dispatch_attempted": True})
    revisions.advance(turn.session_id)


def _ready(runner_id: str, frame: dict[str, Any]) -> None:
    if frame.get("prompt_generation") is None:
        _generationless(runner_id, frame)
        return
    _end(runner_id, frame, EndReason.READY)


def _generationless(runner_id: str, frame: dict[str, Any]) -> None:
    """Counts only when nothing overlapped that could make its owner unclear: no cancel, no reservation, no answer
    (K2).
    """
    try:
        session, execution = uuid.UUID(str(frame.get("session_id"))), uuid.UUID(str(frame.get("execution_id")))
    except ValueError:
        return
    turn = Turn.objects.current_of(session)
    if turn is None or turn.execution_id != execution or turn.runner_id != runner_id or turn.cancel_requested_at:
        return
    from turns import busy

    if not busy.outstanding(session):
        ending.end_turn(session, turn.pk, EndReason.READY, timezone.now())


def _failed(runner_id: str, frame: dict[str, Any]) -> None:
    turn = _end(runner_id, frame, EndReason.FAILED)
    if turn is None:
        return
    _note(turn, str(frame.get("error") or "the agent failed"))
    if frame.get("fatal") is True:
        try:
            session_ending.end_session(turn.session_id, SessionState.FAILED)
        except KandevError as refusal:
            logger.info("session %s was not failed: %s", turn.session_id, refusal)


def _note(turn: Turn, text: str) -> None:
    with transaction.atomic():
        revisions.lock_session(turn.session_id)
        session = Session.objects.select_related("task").get(pk=turn.session_id)
        metadata = {"level": "error"}
        transcript.add(
            session,
            timezone.now(),
            author=Author.SYSTEM,
            kind=MessageType.STATUS,
            content=text,
            turn_id=turn.pk,
            metadata=metadata,
        )


def _cancelled(runner_id: str, frame: dict[str, Any]) -> None:
    _end(runner_id, frame, EndReason.CANCELLED)


def _end(runner_id: str, frame: dict[str, Any], reason: EndReason) -> Turn | None:
    """The turn that this frame ended, or None. An end is also the word that the runner took the dispatch."""
    turn = _turn_of(runner_id, frame)
    if turn is None:
        return None
    dispatch = Dispatch.objects.filter(turn_id=turn.pk, state=DispatchState.ATTEMPTED).first()
    if dispatch is not None:
        settling.accept(dispatch.pk, runner_id)
    return turn if ending.end_turn(turn.session_id, turn.pk, reason, timezone.now()) else None
