"""Cancel, expire, delete: a bundle ends without an answer (promises F3, F5, F7, R11, R40). Each is guarded under the
session lock.
"""

import datetime as dt
import uuid
from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from clarifications import bundles, leases, rows
from clarifications.errors import NotActive, UnknownClarification
from clarifications.models import WaiterLease
from tasks import failpoints, hints, revisions
from tasks.errors import NotFound
from tasks.models import Session
from tasks.principals import Need, Principal
from turns import background, completing
from turns.models import Message


def cancel(principal: Principal, pending_id: str) -> None:
    """Ends a live request. UnknownClarification without a waiter, NotActive when an answer won first."""
    bundle = bundles.reach(principal, pending_id, Need.ANSWER)
    with transaction.atomic():
        revisions.lock_session(bundle.session.pk)
        now = timezone.now()
        active = rows.locked(_whole(Message.objects.bundle(pending_id).active()))
        if not active:
            raise NotActive if _answer_won(pending_id) else UnknownClarification
        if not leases.is_live(pending_id, now):
            raise UnknownClarification
        _close(bundle.session, active, "cancelled", now)


def _answer_won(pending_id: str) -> bool:
    return bundles.newest_claim(pending_id) is not None


def _whole(found: Iterable[Message]) -> list[Message]:
    """These open rows with those of their bundles that name no turn, as imported rows may: a claim takes them along,
    and so does whatever else ends the bundle (C8, F7).
    """
    whole = {row.pk: row for row in found}
    for pending_id in {row.pending_id for row in whole.values()} - {""}:
        fellows = list(Message.objects.bundle(pending_id))
        if bundles.well_formed(fellows):
            named_nothing = (row for row in fellows if row.turn_id is None and row.says_pending)
            whole |= {row.pk: row for row in named_nothing}
    return list(whole.values())


def _close(session: Session, found: list[Message], status: str, now: dt.datetime) -> None:
    """Sets the rows' end, releases their waiters and clears the projection; needs the session lock."""
    revisions.require_transaction()
    changed = rows.write(found, rows.with_status(status), now)
    for pending_id in {row.pending_id for row in found}:
        leases.drop_bundle(pending_id)
    revisions.advance(session.pk)
    rows.tell(session, changed, now)
    hints.after_commit(f"session:{session.pk}")
    background.after_commit(completing.judge, session.task_id)


def session_ending(session: Session, now: dt.datetime) -> None:
    """Inside the end of a session: no waiter is left that could still confirm (END_TAKES_LEASE)."""
    mine = WaiterLease.objects.filter(session=session, claim_id__isnull=True)
    for pending_id in set(mine.values_list("pending_id", flat=True)):
        hints.after_commit(leases.topic(pending_id))
    mine.delete()


def expire_session(session_id: uuid.UUID, now: dt.datetime) -> None:
    """Expires the current turn's open questions of an ended session, before its event is told (F3). Again is a
    no-op.
    """
    try:
        with transaction.atomic():
            session = revisions.lock_session(session_id)
            if not session.terminal:
                return
            session = Session.objects.select_related("task").get(pk=session_id)
            found = rows.locked(_whole(Message.objects.filter(session=session_id).open_in_current_turn()))
            if found:
                _close(session, found, "expired", now)
            failpoints.reach("expire.before_commit")
    except NotFound:
        return


def message_deleted(row: Message, session: Session, now: dt.datetime) -> None:
    """Inside the deletion of a question row: the last pending one ends its bundle, the others stay answerable (R40).
    Fellows that name no turn cannot be left pending: with the last row that named one nothing could ever end them.
    """
    if not row.pending_id:
        return
    left = list(Message.objects.bundle(row.pending_id).with_active())
    if not any(fellow.is_active for fellow in left):
        leases.drop_bundle(row.pending_id)
        background.after_commit(completing.judge, session.task_id)
    revisions.advance(session.pk)
    if row.turn_id is not None and all(fellow.turn_id is None for fellow in left):
        _close(session, [fellow for fellow in left if fellow.says_pending], "cancelled", now)
