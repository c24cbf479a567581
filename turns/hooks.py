"""What this layer does inside the lower layer's changes (connected in `kandev.wiring`)."""

import datetime as dt
import uuid

from django.db.models import Q

from tasks.models import Session
from tasks.principals import Principal
from turns import admitting, busy, ending, runners


def session_ending(session: Session, now: dt.datetime) -> None:
    ending.end_with_session(session, now)


def prompt_given(session: Session, prompt: str, principal: Principal) -> None:
    """A session's first prompt goes through its queue, so that it is kept until a runner takes it."""
    admitting.enqueue(session.pk, prompt)


def move_blocked(task_id: uuid.UUID) -> bool:
    """An answer's hand-over or a fallback under way keeps the task where it is (R3)."""
    return any(busy.outstanding(pk) for pk in Session.objects.filter(task=task_id).values_list("pk", flat=True))


def input_capable() -> Q:
    """Sessions whose agent a connected runner offers (R41)."""
    return Q(agent__in=runners.offered_agents())
