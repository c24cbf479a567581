"""Django's admin: the five pages of every model, for staff and a superuser; everybody else is sent to sign in."""

import uuid
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.utils import timezone

from clarifications.models import Claim, ClaimState, Watchdog
from tasks.models import Event, RateWindow
from tests.access.cast import Cast
from turns.models import (
    Admission,
    AdmissionState,
    Dispatch,
    DispatchKind,
    DispatchState,
    FrameKind,
    Runner,
    RunnerFrame,
    Timer,
    TimerKind,
    Turn,
)

PAGES = {"list": "", "add": "add/", "change": "{pk}/change/", "delete": "{pk}/delete/", "history": "{pk}/history/"}
OTHERS = {"plain": "{pk}/", "password": "{pk}/password/"}


def models() -> dict[str, Any]:
    """`tasks/task` to the model, for everything that is registered."""
    return {f"{model._meta.app_label}/{model._meta.model_name}": model for model in admin.site._registry}


def fill(cast: Cast) -> None:
    """At least one row of every model."""
    now, session = timezone.now(), cast.stage.session
    turn = Turn.objects.current_of(session.pk)
    assert turn is not None
    about = {"session": session, "turn_id": turn.pk}
    claim = Claim.objects.create(
        **about,
        pending_id=cast.ids["open"],
        message_ids=[],
        status="answered",
        response={},
        responded_at=now,
        state=ClaimState.FINALIZED,
        attended_until=now,
    )
    Watchdog.objects.create(claim=claim, **about, due_at=now)
    Admission.objects.create(
        session=session, client_message_id="c", content="x", fingerprint="f", state=AdmissionState.SENT, created_at=now
    )
    Timer.objects.create(kind=TimerKind.PAUSE, **about, due_at=now)
    Runner.objects.create(runner_id="r", connected_at=now, last_seen_at=now)
    RunnerFrame.objects.create(runner_id="r", kind=FrameKind.STOP, session_id=session.pk, created_at=now)
    RateWindow.objects.create(key="k", started_at=now)
    Event.objects.create(action="a", task_id=cast.stage.task.pk, created_at=now)
    Group.objects.create(name="g")
    Dispatch.objects.create(
        **about,
        kind=DispatchKind.PROMPT,
        prompt="",
        agent="demo",
        execution_id=uuid.uuid4(),
        prompt_generation=1,
        state=DispatchState.PUBLISHED,
        attended_until=now,
        reserved_at=now,
    )
