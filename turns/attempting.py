"""Attempt: the at-most-once boundary. One transaction stores the marker, the runner, its token and the frame it is
owed.

Other writers: the session's end, a newer turn, a sweep that took the reservation over. All are restated under the
session lock; the first lock wins (R7). After this commit only the runner's word undoes the dispatch.
"""

import datetime as dt
import uuid

from django.db import transaction

from tasks import hints, instances, revisions, tokens
from turns import outgoing, points
from turns.models import Dispatch, DispatchState, FrameKind, Runner, Turn


def attempt(dispatch_id: uuid.UUID, runner: Runner, now: dt.datetime) -> bool:
    """Marks the dispatch attempted and owes `runner` its frame; False when it may not go out any more."""
    with transaction.atomic():
        dispatch = Dispatch.objects.get(pk=dispatch_id)
        session = revisions.lock_session(dispatch.session_id)
        if session.terminal or not _source_is_current(dispatch) or not all(points.may_attempt.run(dispatch)):
            return False
        if not _mark(dispatch, runner, now):
            return False
        tokens.mint_for_dispatch(dispatch.pk, session.pk, dispatch.turn_id)
        outgoing.owe(runner.runner_id, FrameKind.DISPATCH, session.pk, {}, now, dispatch=dispatch)
        revisions.advance(session.pk)
        hints.after_commit(f"session:{session.pk}")
    return True


def _mark(dispatch: Dispatch, runner: Runner, now: dt.datetime) -> bool:
    mine = Dispatch.objects.filter(pk=dispatch.pk, state=DispatchState.RESERVED, owner=instances.generation())
    if not mine.update(state=DispatchState.ATTEMPTED, attempted_at=now, runner_id=runner.runner_id):
        return False
    turn = Turn.objects.get(pk=dispatch.turn_id)
    return bool(
        Turn.objects.filter(pk=turn.pk, dispatch_pending=True).update(
            metadata={**turn.metadata, "prompt_dispatch_attempted": True},
            execution_id=dispatch.execution_id,
            prompt_generation=dispatch.prompt_generation,
            runner_id=runner.runner_id,
        )
    )


def _source_is_current(dispatch: Dispatch) -> bool:
    """The turn before the reservation is still the one it was made after, and it has ended."""
    current = Turn.objects.exclude(pk=dispatch.turn_id).current_of(dispatch.session_id)
    if current is None:
        return True
    reserved = Turn.objects.get(pk=dispatch.turn_id)
    source = reserved.metadata.get("source_turn_id")
    return current.completed_at is not None and (source is None or source == str(current.pk))
