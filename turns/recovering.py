"""What a dead process left in this layer, taken over in the order of promise E8: reservations, (answers: next layer),
outbox.

Works from the turn row alone when nothing else is left (R45). Each piece is one guarded transaction under the session
lock, so two sweepers cannot both act; a living peer's work is never touched (E9).
"""

import datetime as dt
import uuid
from functools import partial

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from tasks import breaks, instances, revisions
from tasks.backoff import Backoff
from tasks.models import TERMINAL, Session
from turns import background, dispatching, draining, ending, points, publishing, runners, settling
from turns.models import Dispatch, DispatchState, EndReason, FrameKind, Message, Runner, RunnerFrame, Turn

_backoff = Backoff("dispatch")


SLACK = dt.timedelta(seconds=5)
COMMAND = 0


class MalformedReservation(Exception):
    """A reservation whose claimed-message list cannot be read: recovery fails closed and touches nothing (E6)."""


def unattended(now: dt.datetime) -> QuerySet[Dispatch]:
    """Unsettled dispatches whose owner is dead, or which their owner's own task has left behind (R14).

    Another living process' dispatch is never in it, nor one that a management command (owner 0) still attends.
    """
    left = Q(attended_until__lt=now - SLACK) | Q(ambiguous=True)
    living = {COMMAND, *instances.alive_ids()}
    mine = Q(owner__in={COMMAND, instances.generation()}) & left
    return Dispatch.objects.unsettled().filter(~Q(owner__in=living) | mine)


def recover_reservations() -> None:
    """Every unattended reservation: never attempted → undone; attempted → asked for; accepted → published. Raises on
    failure.
    """
    check_markers()
    for dispatch in unattended(timezone.now()).order_by("reserved_at"):
        recover_dispatch(dispatch)
    for turn in _orphans():
        _recover_orphan(turn)


def recover_dispatch(dispatch: Dispatch) -> None:
    """One unattended dispatch brought forward; call it again and nothing more happens."""
    if dispatch.state == DispatchState.RESERVED:
        settling.withdraw(dispatch.pk, code="owner_gone", reason="the server process that sent it has died")
        return
    if dispatch.state == DispatchState.ATTEMPTED and breaks.broken("proof_before_undo"):
        settling.undo(dispatch.pk, DispatchState.ATTEMPTED, DispatchState.UNDONE)
        return
    if dispatch.state == DispatchState.ATTEMPTED:
        Dispatch.objects.filter(pk=dispatch.pk, state=DispatchState.ATTEMPTED).update(ambiguous=True)
        if dispatch.admission_id is not None:
            draining.keep_ambiguous(dispatch)
        ask(dispatch)
        return
    publishing.publish(dispatch.pk)


def ask(dispatch: Dispatch) -> None:
    """Sends `revoke` once for each connection the runner has had since the attempt became unattended
    (SWEEP_REVOKES).
    """
    runner = Runner.objects.filter(pk=dispatch.runner_id).first()
    asked = RunnerFrame.objects.filter(kind=FrameKind.REVOKE, payload={"dispatch_id": str(dispatch.pk)})
    if runner is None or asked.filter(sent_at__isnull=True).exists():
        return
    if not asked.filter(sent_at__gte=runner.connected_at).exists():
        dispatching.revoke(dispatch.pk, timezone.now())


def check_markers() -> None:
    """MalformedReservation when a marked turn's claimed-message list is not a list of non-empty strings (E6)."""
    for turn in Turn.objects.filter(dispatch_pending=True):
        claimed = turn.metadata.get("claimed_message_ids", [])
        if not isinstance(claimed, list) or not all(isinstance(item, str) and item for item in claimed):
            raise MalformedReservation(f"turn {turn.pk} has a malformed claimed_message_ids; repair it and start again")


def _orphans() -> QuerySet[Turn]:
    """Marked turns without an unsettled dispatch record: imported, or left by a version that kept none (R45)."""
    known = Dispatch.objects.unsettled().values("turn_id")
    return Turn.objects.filter(Q(dispatch_pending=True) | Q(start_outbox=True)).exclude(pk__in=known)


def _recover_orphan(turn: Turn) -> None:
    owner = turn.metadata.get("owner_instance")
    if owner in instances.alive_ids() and owner != instances.generation():
        return
    with transaction.atomic():
        revisions.lock_session(turn.session_id)
        fresh = Turn.objects.filter(pk=turn.pk).first()
        if fresh is None:
            return
        proof = fresh.dispatch_attempted or fresh.start_outbox or Message.objects.filter(turn_id=turn.pk).exists()
        if proof:
            _publish_orphan(fresh)
        else:
            _delete_orphan(fresh)


def _publish_orphan(turn: Turn) -> None:
    from tasks import events
    from turns import shapes

    session = Session.objects.select_related("task").get(pk=turn.session_id)
    now = timezone.now()
    rows = [events.event("turn.started", session, {"turn": shapes.turn(turn)}, now)]
    if turn.completed_at is not None:
        rows.append(events.event("turn.completed", session, {"turn": shapes.turn(turn)}, now))
    events.emit(*rows)
    clean = {key: value for key, value in turn.metadata.items() if key not in publishing.PRIVATE}
    Turn.objects.filter(pk=turn.pk).update(metadata=clean)


def _delete_orphan(turn: Turn) -> None:
    session = Session.objects.select_related("task").get(pk=turn.session_id)
    Turn.objects.filter(pk=turn.pk, dispatch_pending=True).delete()
    revisions.advance(session.pk)
    points.orphan_undone.run(turn, session, timezone.now())


def interrupt_lost(ready_since: dt.datetime) -> None:
    """Open turns of runners whose lease is over end as interrupted. `ready_since`: this server's own start counts
    (R25).
    """
    if timezone.now() - ready_since < runners.lease():
        return
    gone = Turn.objects.filter(completed_at__isnull=True, runner_id__in=runners.silent().values("pk"))
    settled = gone.exclude(pk__in=Dispatch.objects.filter(state=DispatchState.ATTEMPTED).values("turn_id"))
    for turn in settled.exclude(runner_id=""):
        ending.end_turn(turn.session_id, turn.pk, EndReason.INTERRUPTED, timezone.now())


def ends_unpublished() -> list[uuid.UUID]:
    """Sessions whose end committed but whose turn's event did not (R30)."""
    rows = Turn.objects.filter(completion_unpublished=True, session__state__in=TERMINAL)
    return list(rows.values_list("session_id", flat=True).distinct()[:100])


def sweep_dispatches() -> None:
    """The running process' sweep: like the start's, but one failure does not keep the others from their turn (R15)."""
    for dispatch in unattended(timezone.now()).order_by("reserved_at"):
        _backoff.run(dispatch.pk, partial(recover_dispatch, dispatch))
    for session_id in draining.due(timezone.now()):
        background.submit(draining.drain, session_id)


def forget_dead_sockets() -> None:
    """A runner whose server process died is not connected any more; its lease runs from then."""
    dead = Runner.objects.filter(connection_id__isnull=False).exclude(owner__in=instances.alive_ids())
    if dead.exists():  # on SQLite a write takes the one lock even when it finds nothing
        dead.update(connection_id=None, last_seen_at=Now())
