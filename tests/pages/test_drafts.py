"""Drafts on the server: a person's own, for one bundle and question, until the answer is through."""

import datetime as dt
import html
import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from clarifications.models import Draft
from kandev import housekeeping
from tasks.models import SessionState
from tests.pages.conftest import Signed, World, question

FIRST = {"question_id": "q1", "selected_options": ["o2"], "custom_text": " half a thou"}


def put(client: Client, pending_id: str, **body: Any) -> int:
    headers = {"Accept": "application/json"}
    return client.put(f"/questions/{pending_id}/draft", body, "application/json", headers=headers).status_code


def draft_of(client: Client, path: str) -> Any:
    """What the form of the page starts with."""
    found = re.search(r'data-server-draft="([^"]*)"', client.get(path).content.decode())
    return json.loads(html.unescape(found.group(1))) if found else None


def test_a_draft_is_there_on_another_device_and_nobody_else_s(world: World, signed: Signed) -> None:
    session = world.session()
    pending_id = world.ask(session)
    panel = f"/sessions/{session.pk}/questions"
    assert put(signed("owner"), pending_id, answers=[FIRST]) == 204
    for path in (panel, "/questions"):
        assert draft_of(signed("owner"), path) == {"q1": [["o2"], " half a thou"]}
        assert draft_of(signed("answerer"), path) == {}
    assert draft_of(signed("viewer"), panel) is None


def test_each_question_is_saved_by_itself_and_an_emptied_one_is_forgotten(world: World, signed: Signed) -> None:
    session, owner = world.session(), signed("owner")
    pending_id = world.ask(session, question(), question(question_id="q2"))
    panel = f"/sessions/{session.pk}/questions"
    assert put(owner, pending_id, answers=[FIRST]) == 204
    assert put(owner, pending_id, answers=[{"question_id": "q2", "custom_text": "x"}], reject_reason="no") == 204
    assert draft_of(owner, panel) == {"q1": [["o2"], " half a thou"], "q2": [[], "x"], "": [[], "no"]}
    assert put(owner, pending_id, answers=[{"question_id": "q1", "selected_options": [], "custom_text": ""}]) == 204
    assert draft_of(owner, panel) == {"q2": [[], "x"], "": [[], "no"]}
    assert owner.delete(f"/questions/{pending_id}/draft").status_code == 204
    assert draft_of(owner, panel) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"question_id": "other"},
        {"selected_options": ["none"]},
        {"selected_options": "o1"},
        {"custom_text": "x" * 2001},
        {"custom_text": "\u0000"},
        {"custom_text": 7},
    ],
)
def test_the_limits_are_those_of_an_answer(world: World, signed: Signed, wrong: dict[str, Any]) -> None:
    pending_id = world.ask(world.session())
    assert put(signed("owner"), pending_id, answers=[{**FIRST, **wrong}]) == 400
    assert put(signed("owner"), pending_id, answers="x", reject_reason="y") == 400
    assert not Draft.objects.exists()
    assert put(signed("owner"), pending_id, answers=[{**FIRST, "custom_text": "😀" * 2000}]) == 204


@pytest.mark.scenario("H3")
def test_only_those_who_may_answer_keep_drafts(world: World, signed: Signed) -> None:
    pending_id = world.ask(world.session())
    statuses = {name: put(signed(name), pending_id, answers=[FIRST]) for name in ("answerer", "viewer", "stranger")}
    assert statuses == {"answerer": 204, "viewer": 403, "stranger": 404}
    assert put(Client(), pending_id, answers=[FIRST]) == 401
    assert put(signed("owner"), "unknown", answers=[FIRST]) == 404
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="owner"))
    assert put(strict, pending_id, answers=[FIRST]) == 403


@pytest.mark.scenario("H4")
def test_without_people_the_browser_alone_keeps_them(world: World, settings: Settings) -> None:
    settings.KANDEV_AUTH = "off"
    session = world.session()
    pending_id = world.ask(session)
    assert put(Client(), pending_id, answers=[FIRST]) == 404
    assert draft_of(Client(), f"/sessions/{session.pk}/questions") is None


def test_a_late_form_has_the_same_draft(world: World, signed: Signed) -> None:
    session = world.session(state=SessionState.WAITING)
    pending_id = world.ask(session)
    world.turn(session)
    assert put(signed("owner"), pending_id, answers=[FIRST]) == 204
    assert draft_of(signed("owner"), f"/questions/{pending_id}/late") == {"q1": [["o2"], " half a thou"]}


def test_an_abandoned_draft_is_tidied_away_and_a_deleted_task_takes_its_own_along(world: World, signed: Signed) -> None:
    pending_id = world.ask(world.session())
    assert put(signed("owner"), pending_id, answers=[FIRST]) == 204
    housekeeping.tidy()
    assert Draft.objects.count() == 1
    Draft.objects.update(updated_at=timezone.now() - dt.timedelta(days=91))
    housekeeping.tidy()
    assert not Draft.objects.exists()
    assert put(signed("owner"), pending_id, answers=[FIRST]) == 204
    world.task.delete()
    assert not Draft.objects.exists()
