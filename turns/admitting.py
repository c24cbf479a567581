"""Admit a person's prompt: sent as a new turn to an idle session, queued for a busy one, once per `client_message_id`.

Other writers: a twin with the same id (the constraint `admission_once` and the session lock decide), an answer, the
queue.
"""

import datetime as dt
import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from tasks import revisions
from tasks.errors import Conflict, ServerFault, Unavailable
from tasks.models import Session
from turns import busy, dispatching, draining, reserving, runners, shapes, transcript
from turns.models import Admission, AdmissionState, Dispatch


class SessionUnavailable(Conflict):
    code, message = "session_unavailable", "this session takes no more prompts"


class IdempotencyConflict(Conflict):
    code, message = "idempotency_conflict", "this client_message_id was used for another text"


class InProgress(Conflict):
    code, message = "in_progress", "the first request with this client_message_id is not through yet"


class DispatchFailed(Unavailable):
    code, message = "dispatch_failed", "no runner took the prompt; nothing was kept, try again"


class DispatchAmbiguous(ServerFault):
    code, message = "dispatch_ambiguous", "the runner did not say whether it took this; it will be settled without you"


class DispatchUnpublished(ServerFault):
    code, message = "dispatch_accepted_unpublished", "the agent took this, a later step failed; do not send it again"


@dataclass(frozen=True)
class Admitted:
    """`status` 201 for the first, 200 for a repeat; `body` is `{"message", "admission"}`."""

    status: int
    body: dict[str, Any]


Check = Callable[[Session], None]


def admit(
    session_id: uuid.UUID, content: str, client_message_id: str | None = None, check: Check | None = None
) -> Admitted:
    """Sends or queues `content` as one user message.

    `check` is judged under the session lock in the admitting transaction (R37). Raises SessionUnavailable,
    IdempotencyConflict, InProgress, DispatchFailed (nothing kept), DispatchAmbiguous (message kept).
    """
    key = client_message_id or str(uuid.uuid4())
    step = _enter(session_id, content, key, check)
    if isinstance(step, Admitted):
        return step
    return _send(step, key)


def enqueue(session_id: uuid.UUID, content: str) -> None:
    """Puts a session's first prompt into its queue and tries to send it; without a runner it stays there."""
    with transaction.atomic():
        revisions.lock_session(session_id)
        session = Session.objects.select_related("task").get(pk=session_id)
        _queue(
            session, _new(session, content, str(uuid.uuid4()), AdmissionState.QUEUED, timezone.now()), timezone.now()
        )
    draining.drain(session_id)


def fingerprint(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _enter(session_id: uuid.UUID, content: str, key: str, check: Check | None) -> Admitted | Dispatch:
    with transaction.atomic():
        revisions.lock_session(session_id)
        session = Session.objects.select_related("task").get(pk=session_id)
        known = Admission.objects.filter(session=session, client_message_id=key).first()
        if known is not None:
            return _replay(known, content)
        if check is not None:
            check(session)
        if session.terminal:
            raise SessionUnavailable
        now = timezone.now()
        if busy.is_busy(session_id) or busy.has_queue(session_id):
            return _queue(session, _new(session, content, key, AdmissionState.QUEUED, now), now)
        admission = _new(session, content, key, AdmissionState.IN_PROGRESS, now)
        return reserving.reserve(session, draining.prompt_order(admission, now), now)


def _replay(known: Admission, content: str) -> Admitted:
    """A repeat returns the record; a reused key with another text is refused."""
    if known.fingerprint != fingerprint(content):
        raise IdempotencyConflict
    if known.result is not None:
        return Admitted(200, known.result)
    raise DispatchAmbiguous if known.state == AdmissionState.AMBIGUOUS else InProgress


def _new(session: Session, content: str, key: str, state: AdmissionState, now: dt.datetime) -> Admission:
    return Admission.objects.create(
        session=session,
        client_message_id=key,
        content=content,
        fingerprint=fingerprint(content),
        state=state,
        was_queued=state == AdmissionState.QUEUED,
        created_at=now,
    )


def _queue(session: Session, admission: Admission, now: dt.datetime) -> Admitted:
    message = transcript.queue_prompt(session, admission, now)
    body = {"message": shapes.message(message, session), "admission": "queued"}
    Admission.objects.filter(pk=admission.pk).update(message_id=message.pk, result=body)
    return Admitted(201, body)


def _send(dispatch: Dispatch, key: str) -> Admitted:
    """Carries the reservation out; while the session is bound to no runner the next free one is tried under a new
    id.
    """
    refused_by: set[str] = set()
    while True:
        carried = dispatching.carry_out(dispatch.pk, dispatch.attended_until, frozenset(refused_by))
        if carried.result is not dispatching.Result.REFUSED:
            return _sent(dispatch, carried)
        refused_by |= set(Dispatch.objects.filter(pk=dispatch.pk).values_list("runner_id", flat=True)) - {""}
        if not _another(dispatch, refused_by):
            raise DispatchFailed(carried.reason or None)
        step = _enter(dispatch.session_id, dispatch.prompt, key, None)
        if isinstance(step, Admitted):
            return step
        dispatch = step


def _another(dispatch: Dispatch, refused_by: set[str]) -> bool:
    """Whether another runner may be tried: one has refused, the session is bound to none, and there is time left."""
    session = Session.objects.get(pk=dispatch.session_id)
    if not refused_by or session.runner_id or timezone.now() >= dispatch.attended_until:
        return False
    return runners.choose(session, refused_by)[0] is not None


def _sent(dispatch: Dispatch, carried: dispatching.Carried) -> Admitted:
    if carried.result is dispatching.Result.AMBIGUOUS:
        draining.keep_ambiguous(dispatch)
        raise DispatchAmbiguous
    admission = Admission.objects.filter(pk=dispatch.admission_id or 0).first()
    if carried.result is dispatching.Result.UNPUBLISHED or admission is None or admission.result is None:
        raise DispatchUnpublished
    return Admitted(201, admission.result)
