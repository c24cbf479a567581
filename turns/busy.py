"""The one answer to "is this session idle?" (rulings, Busy), for messages, queue, ready, guard, completion and
watchdog.
"""

import uuid

from turns import points
from turns.models import Admission, AdmissionState, Dispatch, Turn


def turn_open(session_id: uuid.UUID) -> bool:
    """Whether the session's current turn still runs."""
    current = Turn.objects.current_of(session_id)
    return current is not None and current.completed_at is None


def outstanding(session_id: uuid.UUID) -> bool:
    """A reservation, an unsettled dispatch, an owed answer or an open watchdog: nothing new may start
    (ADMISSION_WAITS).
    """
    return Dispatch.objects.unsettled().filter(session=session_id).exists() or any(points.outstanding.run(session_id))


def is_busy(session_id: uuid.UUID) -> bool:
    """Needs the session lock to be more than a hint."""
    return turn_open(session_id) or outstanding(session_id)


def has_queue(session_id: uuid.UUID) -> bool:
    return Admission.objects.filter(session=session_id, state=AdmissionState.QUEUED).exists()
