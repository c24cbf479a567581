"""The queue: prompts of people that came while the session was busy, dispatched once each in admission order (promise
L7).

Other writers: an answer (goes first, R4: the session is then busy), a second drain (the session lock and the constraint
`dispatch_one_unsettled` decide), a person who takes a prompt back (the guarded update of its state decides). If the
process dies after the pop, recovery puts the prompt back at the head (R17).
"""

import datetime as dt
import uuid

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from tasks import failpoints, revisions
from tasks.errors import NotFound
from tasks.models import TERMINAL, Session
from turns import background, busy, completing, dispatching, reserving, transcript
from turns.models import Admission, AdmissionState, Dispatch, DispatchKind, Message, Turn


def follow_up(session_id: uuid.UUID) -> None:
    """What a session is due once something that kept it busy is over: its queue, else the workflow step."""
    drain(session_id)
    task = Session.objects.filter(pk=session_id).values_list("task_id", flat=True).first()
    if task is not None:
        completing.judge(task)


def drain(session_id: uuid.UUID) -> bool:
    """Dispatches the head of an idle session's queue; True when a prompt went out."""
    try:
        dispatch = _pop(session_id)
    except NotFound:
        return False
    if dispatch is None:
        return False
    failpoints.reach("queue.after_pop")
    carried = dispatching.carry_out(dispatch.pk, dispatch.attended_until)
    if carried.result is dispatching.Result.AMBIGUOUS:
        keep_ambiguous(dispatch)
    return carried.result is dispatching.Result.PUBLISHED


def _pop(session_id: uuid.UUID) -> Dispatch | None:
    with transaction.atomic():
        session = revisions.lock_session(session_id)
        head = Admission.objects.filter(session=session, state=AdmissionState.QUEUED).order_by("id").first()
        now = timezone.now()
        if head is None or session.terminal or (head.retry_at and head.retry_at > now) or busy.is_busy(session_id):
            return None
        order = prompt_order(head, now)
        if not Admission.objects.filter(pk=head.pk, state=AdmissionState.QUEUED).update(
            state=AdmissionState.IN_PROGRESS
        ):
            return None
        return reserving.reserve(session, order, now)


def prompt_order(admission: Admission, now: dt.datetime) -> reserving.Order:
    until = now + dt.timedelta(seconds=settings.KANDEV_DELIVERY_TIMEOUT_S)
    return reserving.Order(DispatchKind.PROMPT, admission.content, until, admission_id=admission.pk)


def withdraw_queued(session: Session, message_id: uuid.UUID) -> bool:
    """Takes the prompt of a row out of the queue; False when it does not wait there. Needs the session lock.

    The record stays, so that a repeat of the POST puts nothing back.
    """
    revisions.require_transaction()
    waiting = Admission.objects.filter(session=session, message_id=message_id, state=AdmissionState.QUEUED)
    if not waiting.update(state=AdmissionState.WITHDRAWN):
        return False
    background.after_commit(follow_up, session.pk)
    return True


def keep_ambiguous(dispatch: Dispatch) -> None:
    """Nobody knows whether the runner has the prompt: its message stays, its client id hears so (R17)."""
    if dispatch.admission_id is None:
        return
    with transaction.atomic():
        revisions.lock_session(dispatch.session_id)
        session = Session.objects.select_related("task").get(pk=dispatch.session_id)
        rows = Admission.objects.filter(pk=dispatch.admission_id, state=AdmissionState.IN_PROGRESS)
        admission = rows.first()
        if admission is None:
            return
        message_id = admission.message_id
        if message_id is None or not Message.objects.filter(pk=message_id).exists():
            message_id = transcript.queue_prompt(session, admission, timezone.now()).pk
        rows.update(state=AdmissionState.AMBIGUOUS, message_id=message_id)


def due(now: dt.datetime) -> list[uuid.UUID]:
    """Sessions with a prompt in the queue whose next try is due. Those that are plainly busy are left out: what ends
    that drains them, and each try takes a lock.
    """
    rows = Admission.objects.filter(state=AdmissionState.QUEUED).filter(Q(retry_at__isnull=True) | Q(retry_at__lte=now))
    running = Turn.objects.filter(session=OuterRef("session"), completed_at__isnull=True)
    carried = Dispatch.objects.unsettled().filter(session=OuterRef("session"))
    idle = rows.exclude(Exists(running)).exclude(Exists(carried)).exclude(session__state__in=TERMINAL)
    return list(idle.values_list("session_id", flat=True).distinct()[:100])
