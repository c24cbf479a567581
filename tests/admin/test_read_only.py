"""Nothing of turns, messages and bundles is changed by a form of the admin, whoever sends it."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from clarifications.models import ClaimState, Draft, Watchdog
from clarifications.overview import Bundle
from tests.admin.conftest import APPS, Desk, visitor
from turns.models import (
    Admission,
    AdmissionState,
    FrameKind,
    Message,
    Runner,
    RunnerFrame,
    Timer,
    TimerKind,
)

# A draft is shown to its person alone, so the admin has no page of it.
MODELS = [model for app in APPS for model in apps.get_app_config(app).get_models() if model is not Draft]


def url(model: Any, *parts: object) -> str:
    return "/".join(["/admin", model._meta.app_label, model._meta.model_name, *map(str, parts), ""])


@pytest.fixture
def full(desk: Desk) -> Desk:
    """One row of every model."""
    session, now = desk.session(), timezone.now()
    turn = desk.turns[session.pk].pk
    pending_id = desk.ask(session)
    desk.wait(session, pending_id)
    claim = desk.claim(session, pending_id, ClaimState.CLAIMED, ambiguous=True)
    Watchdog.objects.create(claim=claim, session=session, turn_id=turn, due_at=now)
    Admission.objects.create(
        session=session, client_message_id="c", content="x", fingerprint="f", state=AdmissionState.SENT, created_at=now
    )
    Timer.objects.create(kind=TimerKind.PAUSE, session=session, turn_id=turn, due_at=now)
    Runner.objects.create(runner_id="r", connected_at=now, last_seen_at=now)
    RunnerFrame.objects.create(runner_id="r", kind=FrameKind.STOP, session_id=session.pk, created_at=now)
    return desk


def test_every_model_is_registered() -> None:
    """A proxy stands for the bundles; the model that it is a view of is there as well."""
    assert [model.__name__ for model in MODELS if model not in admin.site._registry] == []
    assert Draft not in admin.site._registry


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_lists_and_pages_open_and_no_form_writes(full: Desk, root: Client, model: Any) -> None:
    row = model.objects.first()
    before = list(model.objects.values())
    assert root.get(url(model)).status_code == 200
    assert root.get(url(model), {"q": "x"}).status_code == 200
    page = root.get(url(model, row.pk, "change"))
    assert page.status_code == 200
    assert not page.context["adminform"].form.fields
    data = {"status": "answered", "state": "finalized", "metadata": "{}", "post": "yes", "_save": "1"}
    for address in (url(model, row.pk, "change"), url(model, row.pk, "delete"), url(model, "add")):
        assert root.post(address, data).status_code == 403, address
    root.post(url(model), {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"})
    root.post(url(model), {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-id": str(row.pk), "_save": "1"})
    assert list(model.objects.values()) == before


@pytest.mark.scenario("H3", "R43")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_staff_sees_rows_of_its_own_workspaces_only(full: Desk, model: Any) -> None:
    row = model.objects.first()
    shown = {name: _sees(visitor(getattr(full, name), "*"), model, row) for name in ("owner", "viewer", "stranger")}
    if model.__name__ == "Runner":  # names no task
        assert shown == dict.fromkeys(shown, True)
    elif model.__name__ == "RunnerFrame":
        assert shown == dict.fromkeys(shown, False)
    else:
        assert shown == {"owner": True, "viewer": True, "stranger": False}


def _sees(client: Client, model: Any, row: Any) -> bool:
    """Whether both the list and the single page show the row; they must agree."""
    listed = client.get(url(model))
    in_list = listed.status_code == 200 and row.pk in [one.pk for one in listed.context["cl"].result_list]
    assert in_list is (client.get(url(model, row.pk, "change")).status_code == 200)
    return in_list


def test_staff_needs_the_permission_to_view(full: Desk) -> None:
    client = visitor(full.owner, "turns.view_message")
    row = Message.objects.get()
    assert client.get(url(Message, row.pk, "change")).status_code == 200
    assert client.get(url(Bundle)).status_code == 403
    assert client.get(url(Bundle, row.pk, "change")).status_code == 403


def test_who_is_not_staff_gets_nowhere(full: Desk) -> None:
    client = Client()
    client.force_login(User.objects.get(username="owner"))
    for model in MODELS:
        assert client.get(url(model)).status_code == 302
