"""Due timers, taken by whichever process sees them first: deleting the row under the session lock decides.

A grace that was set before this server became ready starts again when it did (R25): an outage is not the agent's
silence. One that was set later ends later as well, so the server judges none before its own readiness is a grace old.
"""

import datetime as dt
import logging

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from tasks import revisions
from tasks.errors import NotFound
from tasks.hooks import Hook
from turns import ending, pausing
from turns.models import Timer, TimerKind

logger = logging.getLogger(__name__)
# A `first_wait` timer is due: no wait came within the hand-over budget counted from the request (contract 3).
first_wait_due: Hook[Timer, dt.datetime] = Hook("first_wait_due")


def run_due(ready_since: dt.datetime) -> int:
    """Carries out what is due and returns how many it took. `ready_since`: when this server became ready (R25)."""
    now = timezone.now()
    due = Timer.objects.filter(due_at__lte=now)
    if now - ready_since < dt.timedelta(seconds=settings.KANDEV_PAUSE_GRACE_S):
        due = due.exclude(kind=TimerKind.PAUSE)
    return sum(_run(row, now) for row in due.order_by("due_at")[:200])


def _run(timer: Timer, now: dt.datetime) -> bool:
    try:
        with transaction.atomic():
            revisions.lock_session(timer.session_id)
            if not Timer.objects.filter(pk=timer.pk, due_at__lte=now).delete()[0]:
                return False
            if timer.kind == TimerKind.PAUSE:
                pausing.cancel_locked(timer.session_id, timer.turn_id, "the agent stopped waiting for its answer", now)
            elif timer.kind == TimerKind.FIRST_WAIT:
                first_wait_due.run(timer, now)
            elif timer.kind == TimerKind.CANCEL_OVERDUE:
                pausing.interrupt(timer.session_id, timer.turn_id, now)
            elif timer.kind == TimerKind.UNHEARD_END:
                ending.end_unheard(timer.session_id, timer.turn_id, now)
    except NotFound:
        return False
    return True
