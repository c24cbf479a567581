"""Settle a dispatch by the runner's word: it took it, or it never ran and never will. Whoever reads the word settles
it, also when nobody waits (LATE_FRAMES). Each is one guarded transaction under the session lock, so a late word
changes nothing.
"""

import datetime as dt
import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone

from tasks import failpoints, hints, instances, revisions
from tasks.errors import NotFound
from tasks.models import Session
from turns import background, points
from turns.models import Admission, AdmissionState, Dispatch, DispatchState, Message, Turn

QUEUE_RETRY = dt.timedelta(seconds=2)


def accept(dispatch_id: uuid.UUID, runner_id: str) -> bool:
    """The runner took the dispatch; True when this call settled it. The session stays with that runner from now on."""
    with transaction.atomic():
        dispatch = _locked(dispatch_id)
        now = timezone.now()
        if dispatch is None or not accept_locked(dispatch, runner_id, now):
            return False
        publish_if_unattended(dispatch)
    return True


def accept_locked(dispatch: Dispatch, runner_id: str, now: dt.datetime) -> bool:
    """`accept` inside the caller's transaction; needs the session lock. A frame of the execution is such a word as
    well.
    """
    revisions.require_transaction()
    taken = Dispatch.objects.filter(pk=dispatch.pk, state=DispatchState.ATTEMPTED, runner_id=runner_id)
    if not taken.update(state=DispatchState.ACCEPTED, settled_at=now):
        return False
    Session.objects.filter(pk=dispatch.session_id).update(runner_id=runner_id)
    points.dispatch_accepted.run(dispatch, now)
    hints.after_commit(f"dispatch:{dispatch.pk}")
    return True


def publish_if_unattended(dispatch: Dispatch) -> None:
    """Nobody waits for this word any more: publication follows the commit in this process."""
    from turns import publishing

    alive = dispatch.owner == 0 or instances.alive().filter(pk=dispatch.owner).exists()
    if dispatch.ambiguous or not alive:
        background.after_commit(publishing.publish, dispatch.pk)


def refuse(dispatch_id: uuid.UUID, runner_id: str, state: DispatchState, code: str = "", reason: str = "") -> bool:
    """`rejected` or `revoked` from the runner: undone in one transaction; True when this call settled it."""
    return undo(dispatch_id, DispatchState.ATTEMPTED, state, runner_id=runner_id, code=code, reason=reason)


def withdraw(dispatch_id: uuid.UUID, code: str = "", reason: str = "", now: dt.datetime | None = None) -> bool:
    """Undoes a reservation that was never attempted; True when this call did."""
    return undo(dispatch_id, DispatchState.RESERVED, DispatchState.UNDONE, code=code, reason=reason)


def undo(
    dispatch_id: uuid.UUID, expected: DispatchState, state: DispatchState, runner_id: str | None = None, **words: str
) -> bool:
    """Removes the empty successor, gives back what rode on it, and records why, in one transaction (R12).

    A message that references the successor proves that it ran, whatever the word says: then it counts as accepted (E5).
    """
    with transaction.atomic():
        dispatch = _locked(dispatch_id)
        if (
            dispatch is None
            or dispatch.state != expected
            or (runner_id is not None and dispatch.runner_id != runner_id)
        ):
            return False
        now = timezone.now()
        if Message.objects.filter(turn_id=dispatch.turn_id).exists():
            return _ran_after_all(dispatch, now)
        _remove(dispatch, expected, state, now, words)
        failpoints.reach("restore.before_commit")
    return True


def _locked(dispatch_id: uuid.UUID) -> Dispatch | None:
    """The dispatch with its session locked and loaded; None when either is gone."""
    row = Dispatch.objects.filter(pk=dispatch_id).first()
    if row is None:
        return None
    try:
        revisions.lock_session(row.session_id)
    except NotFound:
        return None
    return Dispatch.objects.select_related("session__task").filter(pk=dispatch_id).first()


def _ran_after_all(dispatch: Dispatch, now: dt.datetime) -> bool:
    Dispatch.objects.filter(pk=dispatch.pk).update(state=DispatchState.ACCEPTED, settled_at=now, ambiguous=True)
    points.dispatch_accepted.run(dispatch, now)
    hints.after_commit(f"dispatch:{dispatch.pk}")
    publish_if_unattended(Dispatch.objects.get(pk=dispatch.pk))
    return True


def _remove(
    dispatch: Dispatch, expected: DispatchState, state: DispatchState, now: dt.datetime, words: dict[str, str]
) -> None:
    Dispatch.objects.filter(pk=dispatch.pk, state=expected).update(state=state, settled_at=now, **words)
    Turn.objects.filter(pk=dispatch.turn_id, dispatch_pending=True).delete()
    revisions.advance(dispatch.session_id)
    _give_back_admission(dispatch, now)
    points.dispatch_undone.run(dispatch, dispatch.session, now)
    hints.after_commit(f"dispatch:{dispatch.pk}", f"session:{dispatch.session_id}")
    from turns import draining

    background.after_commit(draining.follow_up, dispatch.session_id)
    transaction.on_commit(lambda: _tell_undone(dispatch), robust=True)


def _tell_undone(dispatch: Dispatch) -> None:
    points.dispatch_undone_after.run(dispatch)


def _give_back_admission(dispatch: Dispatch, now: dt.datetime) -> None:
    """Back to the head of the queue; or forgotten with its client id when its POST never ended (R17); or withdrawn when
    somebody deleted its row while it was on its way.
    """
    if dispatch.admission_id is None:
        return
    rows = Admission.objects.filter(pk=dispatch.admission_id)
    rows.filter(was_queued=False, state=AdmissionState.IN_PROGRESS).delete()
    on_its_way = (AdmissionState.IN_PROGRESS, AdmissionState.AMBIGUOUS)
    deleted = rows.filter(message_id__isnull=False, state__in=on_its_way)
    deleted.exclude(message_id__in=Message.objects.values("pk")).update(state=AdmissionState.WITHDRAWN)
    back: dict[str, Any] = {"state": AdmissionState.QUEUED, "was_queued": True, "retry_at": now + QUEUE_RETRY}
    rows.filter(state__in=on_its_way).update(**back)
