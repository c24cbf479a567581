"""The watchdog of a live answer: silence after the hand-over gives one fallback prompt (K3, K4, K6, R19, R23, R24).

It is a row, so any living process carries it out. States: armed → fallback → closed. Activity of the confirmed
generation closes it once the return was recorded as written; a fallback that is under way then stops at its next step.
A fallback has an owner, which each step restates: when its process is dead, any other arms the row again at once, and
one that was only frozen finds its next step refused (E10).
Other writers: the frames of the agent, a newer turn, the session's end. The session lock and guarded updates decide.
"""

import datetime as dt
import logging
import uuid
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from clarifications import leases, wording
from clarifications.models import Claim, WaiterLease, Watchdog, WatchdogState
from tasks import hints, instances, revisions
from tasks.errors import NotFound
from tasks.models import Session
from turns import background, dispatching, draining, pausing, reserving
from turns.models import Dispatch, DispatchKind, EndReason, Message, Turn

logger = logging.getLogger(__name__)
OPEN = (WatchdogState.ARMED, WatchdogState.FALLBACK)
ALREADY = "already_received"


def silence() -> dt.timedelta:
    return dt.timedelta(seconds=settings.KANDEV_WATCHDOG_S)


def arm(claim: Claim, now: dt.datetime) -> None:
    """Stored in the confirming transaction, so it is observable before the waiter returns (K3)."""
    Watchdog.objects.create(claim=claim, session_id=claim.session_id, turn_id=claim.turn_id, due_at=now + silence())


def is_open(session_id: uuid.UUID) -> bool:
    return Watchdog.objects.filter(session=session_id, state__in=OPEN).exists()


def returned(claim_id: uuid.UUID, written_at: dt.datetime) -> None:
    """The answer was written to a connected client at `written_at`; activity since then closes the watchdog at once."""
    rows = Watchdog.objects.filter(claim=claim_id, state__in=OPEN)
    rows.filter(returned_at__isnull=True).update(returned_at=written_at, due_at=written_at + silence())
    _close(rows.filter(activity_at__gte=written_at), "activity")


def activity(turn: Turn, kind: str, now: dt.datetime) -> None:
    """A frame of the confirmed generation (the hook of this turn's frames); needs the session lock."""
    rows = Watchdog.objects.filter(turn_id=turn.pk, state__in=OPEN)
    rows.filter(returned_at__isnull=True).update(activity_at=now)
    _close(rows.filter(returned_at__lte=now), "activity")
    if kind == "message":
        Claim.objects.filter(turn_id=turn.pk, replayable=True).update(replayable=False)


def turn_over(turn: Turn, reason: str, now: dt.datetime) -> None:
    """The turn ended: a normal end is activity; any other makes the watchdog due at once (R19). Needs the session
    lock.
    """
    rows = Watchdog.objects.filter(turn_id=turn.pk, state__in=OPEN)
    if reason == EndReason.SESSION_ENDED:
        _close(rows, "session_ended")
    elif reason != EndReason.READY:
        rows.filter(state=WatchdogState.ARMED).update(due_at=now)


def _close(rows: "QuerySet[Watchdog]", because: str) -> None:
    for session_id in set(rows.values_list("session_id", flat=True)):
        if rows.filter(session=session_id).update(state=WatchdogState.CLOSED, closed_because=because):
            hints.after_commit(f"session:{session_id}")
            background.after_commit(draining.follow_up, session_id)


def run_due() -> None:
    """Starts the fallback of every watchdog whose silence is over. Whoever moves the row carries it out."""
    now = timezone.now()
    for row in Watchdog.objects.filter(state=WatchdogState.ARMED, due_at__lte=now)[:100]:
        if _begin(row.pk, now):
            background.submit(carry_out, row.pk)


def _begin(claim_id: uuid.UUID, now: dt.datetime) -> bool:
    """armed → fallback, with the cancel of the silent turn; False when it is stale, postponed or somebody else's."""
    try:
        with transaction.atomic():
            row = Watchdog.objects.get(pk=claim_id)
            session = revisions.lock_session(row.session_id)
            mine = Watchdog.objects.filter(pk=claim_id, state=WatchdogState.ARMED, due_at__lte=now)
            current = Turn.objects.current_of(session.pk)
            if session.terminal or current is None or current.pk != row.turn_id:
                _close(mine, "stale")
                return False
            if WaiterLease.objects.live(now).filter(turn_id=row.turn_id).exists():
                mine.update(due_at=now + silence())
                return False
            if Dispatch.objects.unsettled().filter(session=session).exists() or not mine.update(
                state=WatchdogState.FALLBACK, owner=instances.generation(), due_at=now + leases.budget()
            ):
                return False
            pausing.cancel_locked(session.pk, current.pk, "nothing was heard since the answer was handed over", now)
    except (NotFound, Watchdog.DoesNotExist):
        return False
    return True


def carry_out(claim_id: uuid.UUID) -> None:
    """The fallback: the end of the silent turn, then one dispatch; each step restates that the watchdog still wants
    it, of this process.
    """
    deadline = timezone.now() + leases.budget()
    row = Watchdog.objects.select_related("claim").get(pk=claim_id)
    if row.owner != instances.generation():
        return
    try:
        dispatch = reserving.when_free(
            row.session_id, partial(_may_reserve, row), partial(_order, row, deadline), deadline
        )
    except NotFound:
        return
    if dispatch is not None:
        dispatching.carry_out(dispatch.pk, deadline)
    else:
        rearm(claim_id, row.owner, timezone.now())


def _fallback(claim_id: uuid.UUID | None, owner: int) -> "QuerySet[Watchdog]":
    """The row while this owner carries its fallback out, as a queryset."""
    return Watchdog.objects.filter(pk=claim_id, state=WatchdogState.FALLBACK, owner=owner)


def _may_reserve(row: Watchdog, session: Session) -> bool | None:
    """True now, False not yet, None not any more. Needs the session lock."""
    wanted = row.owner == instances.generation() and _fallback(row.pk, row.owner).exists()
    current = Turn.objects.current_of(session.pk)
    if not wanted or session.terminal or current is None or current.pk != row.turn_id:
        return None
    return current.completed_at is not None and not Dispatch.objects.unsettled().filter(session=session).exists()


def _order(row: Watchdog, deadline: dt.datetime) -> reserving.Order:
    claim = row.claim
    rows = list(Message.objects.bundle(claim.pending_id))
    silent = Turn.objects.get(pk=row.turn_id)
    return reserving.Order(
        kind=DispatchKind.FALLBACK,
        prompt=wording.fallback(claim.pending_id, rows, claim.response["answers"]),
        attended_until=deadline,
        source_turn_id=row.turn_id,
        pending_id=claim.pending_id,
        claim_id=claim.pk,
        replaces={"execution_id": str(silent.execution_id), "prompt_generation": silent.prompt_generation},
    )


def may_attempt(dispatch: Dispatch) -> bool:
    """The second check, inside the attempt: silence still stands (K3), and the fallback is still this owner's (E10)."""
    return _fallback(dispatch.claim_id, dispatch.owner).exists()


def published(dispatch: Dispatch) -> None:
    _close(Watchdog.objects.filter(pk=dispatch.claim_id, state__in=OPEN), "fallback")


def undone(dispatch: Dispatch, now: dt.datetime) -> None:
    """Refused: for good when the runner says that the answer was received, else tried again later. Needs the session
    lock.
    """
    code = Dispatch.objects.values_list("code", flat=True).get(pk=dispatch.pk)
    if code == ALREADY:
        _close(Watchdog.objects.filter(pk=dispatch.claim_id, state__in=OPEN), ALREADY)
    elif dispatch.claim_id is not None:
        rearm(dispatch.claim_id, dispatch.owner, now)


def rearm(claim_id: uuid.UUID, owner: int, now: dt.datetime) -> None:
    """fallback → armed, for its owner; retried while the turn is current, shown as stuck meanwhile (R24)."""
    rows = _fallback(claim_id, owner)
    rows.update(state=WatchdogState.ARMED, due_at=now + min(silence(), dt.timedelta(seconds=5)))


def take_over() -> None:
    """A fallback without a dispatch whose process is dead is armed again at once (K6), and so is one that this
    process' own task left behind; one with a dispatch is that dispatch's. A living peer's is never touched.

    `due_at` of a fallback is the end of the budget that its task has; a task that lives gives up before that.
    """
    now = timezone.now()
    riding = Dispatch.objects.unsettled().filter(kind=DispatchKind.FALLBACK).values("claim_id")
    mine = Q(owner=instances.generation(), due_at__lt=now)
    left = Watchdog.objects.filter(~Q(owner__in=instances.alive_ids()) | mine, state=WatchdogState.FALLBACK)
    rows = left.exclude(pk__in=riding)
    if rows.exists():  # on SQLite a write takes the one lock even when it finds nothing
        rows.update(state=WatchdogState.ARMED, due_at=now)
