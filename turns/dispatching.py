"""Carry out a reservation: attempt, call the runner, wait for its word, publish. One way for answers, prompts and
fallbacks.

The caller's thread waits (no database connection while it does); the word itself is settled in the database by
whichever process reads it. If this process dies, recovery or another process' sweep goes on from the stored state.
"""

import datetime as dt
import enum
import logging
import uuid
from dataclasses import dataclass

from django.db import DatabaseError, transaction
from django.utils import timezone

from tasks import failpoints, hints
from tasks.models import Session
from turns import attempting, outgoing, publishing, runners, settling
from turns.models import Dispatch, DispatchState, FrameKind, Runner

logger = logging.getLogger(__name__)
UNDONE = (DispatchState.REJECTED, DispatchState.REVOKED, DispatchState.UNDONE)


class Result(enum.Enum):
    """What became of a dispatch, as its caller can know it."""

    PUBLISHED = "published"
    REFUSED = "refused"  # known never to have run; everything is as before
    UNPUBLISHED = "unpublished"  # it runs, but a later step failed; recovery publishes
    AMBIGUOUS = "ambiguous"  # nobody knows yet; the runner's word will tell


@dataclass(frozen=True)
class Carried:
    result: Result
    code: str = ""
    reason: str = ""


def carry_out(dispatch_id: uuid.UUID, deadline: dt.datetime, exclude: frozenset[str] = frozenset()) -> Carried:
    """Brings a stored reservation to its end by `deadline`; never raises for what it can classify.

    A sixth of the whole budget is kept for the revoke and its reply (R6).
    """
    started = timezone.now()
    refusal = _try_attempt(dispatch_id, exclude)
    if refusal is not None and not _was_attempted(dispatch_id):
        return _withdraw(dispatch_id, *refusal)
    try:
        failpoints.reach("dispatch.after_attempt")
        revoke_at = deadline - (deadline - started) / 6
        if _await_word(dispatch_id, revoke_at) == DispatchState.ATTEMPTED:
            revoke(dispatch_id, timezone.now())
            _await_word(dispatch_id, deadline)
    except Exception:
        logger.exception("dispatch %s: waiting for the runner failed", dispatch_id)
    return _conclude(dispatch_id)


def _try_attempt(dispatch_id: uuid.UUID, exclude: frozenset[str]) -> tuple[str, str] | None:
    """None when the attempt is stored, else the code and reason why not."""
    try:
        failpoints.reach("dispatch.after_reserve")
        runner, reason = _choose(dispatch_id, exclude)
        if runner is None:
            return "no_runner", reason
        if attempting.attempt(dispatch_id, runner, timezone.now()):
            return None
        return "not_current", "the session has moved on"
    except Exception:
        logger.exception("dispatch %s could not be attempted", dispatch_id)
        return "attempt_failed", "the attempt could not be stored"


def _was_attempted(dispatch_id: uuid.UUID) -> bool:
    """A commit whose reply was lost: the marker counts, so the runner's word is awaited after all."""
    try:
        return Dispatch.objects.filter(pk=dispatch_id, state=DispatchState.ATTEMPTED).exists()
    except DatabaseError:
        return False


def _choose(dispatch_id: uuid.UUID, exclude: frozenset[str]) -> tuple[Runner | None, str]:
    session = Session.objects.get(dispatches=dispatch_id)
    return runners.choose(session, set(exclude))


def _withdraw(dispatch_id: uuid.UUID, code: str, reason: str) -> Carried:
    """Nothing went out: the reservation goes, in a transaction of its own that the failed attempt cannot disturb
    (D4).
    """
    try:
        if settling.withdraw(dispatch_id, code=code, reason=reason):
            return Carried(Result.REFUSED, code, reason)
    except Exception:
        logger.exception("dispatch %s: the rollback failed, recovery will do it", dispatch_id)
        return Carried(Result.AMBIGUOUS, "rollback_failed", reason)
    return _conclude(dispatch_id)


def _await_word(dispatch_id: uuid.UUID, until: dt.datetime) -> str:
    """The dispatch's state, once it is no longer `attempted` or at `until`."""
    with hints.Waiting(f"dispatch:{dispatch_id}") as waiting:
        while True:
            state = Dispatch.objects.values_list("state", flat=True).get(pk=dispatch_id)
            left = (until - timezone.now()).total_seconds()
            if state != DispatchState.ATTEMPTED or left <= 0:
                return state
            waiting.wait(left)


def revoke(dispatch_id: uuid.UUID, now: dt.datetime) -> None:
    """Owes the runner a `revoke`, on whatever connection it has then (R13)."""
    with transaction.atomic():
        dispatch = Dispatch.objects.get(pk=dispatch_id)
        payload = {"dispatch_id": str(dispatch.pk)}
        outgoing.owe(dispatch.runner_id, FrameKind.REVOKE, dispatch.session_id, payload, now)


def _conclude(dispatch_id: uuid.UUID) -> Carried:
    dispatch = Dispatch.objects.get(pk=dispatch_id)
    if dispatch.state == DispatchState.ATTEMPTED:
        if _give_up(dispatch):
            return Carried(Result.AMBIGUOUS, "no_word", "the runner did not say whether it took the prompt")
        dispatch.refresh_from_db()
    if dispatch.state in UNDONE:
        return Carried(Result.REFUSED, dispatch.code, dispatch.reason)
    if dispatch.state == DispatchState.PUBLISHED:
        return Carried(Result.PUBLISHED)
    return _publish(dispatch)


def _give_up(dispatch: Dispatch) -> bool:
    """From now on the word is settled by whoever reads it; False when it came in this very moment."""
    return bool(Dispatch.objects.filter(pk=dispatch.pk, state=DispatchState.ATTEMPTED).update(ambiguous=True))


def _publish(dispatch: Dispatch) -> Carried:
    try:
        published = publishing.publish(dispatch.pk)
    except Exception:
        logger.exception("dispatch %s was accepted but could not be published", dispatch.pk)
        Dispatch.objects.filter(pk=dispatch.pk).update(ambiguous=True)
        return Carried(Result.UNPUBLISHED, "unpublished", "the agent took the prompt, a later step failed")
    if published or Dispatch.objects.filter(pk=dispatch.pk, state=DispatchState.PUBLISHED).exists():
        return Carried(Result.PUBLISHED)
    return Carried(Result.UNPUBLISHED, "unpublished", "the agent took the prompt, a later step failed")
