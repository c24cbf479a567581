"""Bundles in the admin: one row each, with the state that every other surface shows."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clarifications import bundles
from clarifications.models import Claim, ClaimState, WaiterLease
from clarifications.overview import Bundle
from tasks.models import Session, SessionState
from tasks.principals import Principal
from tests.admin.conftest import Desk, visitor
from turns.models import Message, MessageType

LIST = "/admin/clarifications/bundle/"
Case = Callable[[Desk, Session], str]


def live(desk: Desk, session: Session) -> str:
    made = desk.ask(session, "One?", "Two?")
    desk.wait(session, made)
    return made


def detached(desk: Desk, session: Session) -> str:
    return desk.ask(session)


def partly_open(desk: Desk, session: Session) -> str:
    made = desk.ask(session, "One?", "Two?")
    first = Message.objects.filter(pending_id=made).order_by("created_at")[0]
    Message.objects.filter(pk=first.pk).update(metadata={**first.metadata, "status": "answered"})
    return made


def claimed(desk: Desk, session: Session) -> str:
    made = desk.ask(session, status="answered")
    desk.claim(session, made, ClaimState.CLAIMED)
    return made


def unknown_outcome(desk: Desk, session: Session) -> str:
    made = desk.ask(session, status="answered")
    desk.claim(session, made, ClaimState.CLAIMED, ambiguous=True)
    return made


def finalized(desk: Desk, session: Session) -> str:
    made = desk.ask(session, status="answered")
    desk.claim(session, made, ClaimState.FINALIZED)
    return made


def restored_then_superseded(desk: Desk, session: Session) -> str:
    made = desk.ask(session)
    desk.claim(session, made, ClaimState.RESTORED)
    desk.turn(session)
    return made


def finalized_after_restored(desk: Desk, session: Session) -> str:
    made = desk.ask(session, status="answered")
    for state in (ClaimState.RESTORED, ClaimState.FINALIZED):
        desk.claim(session, made, state)
    return made


def superseded(desk: Desk, session: Session) -> str:
    made = live(desk, session)
    desk.turn(session)
    return made


def session_over(desk: Desk, session: Session) -> str:
    made = desk.ask(session)
    Session.objects.filter(pk=session.pk).update(state=SessionState.FAILED)
    return made


def two_turns(desk: Desk, session: Session) -> str:
    old = desk.turns[session.pk].pk
    desk.turn(session)
    return desk.ask(session, "One?", "Two?", turn_id=old)


def two_sessions(desk: Desk, session: Session) -> str:
    return desk.ask(session, "One?", "Two?", session=desk.session())


def foreign_type(desk: Desk, session: Session) -> str:
    return desk.ask(session, "One?", "Two?", type=MessageType.PERMISSION)


def empty_turn_beside_a_named_one(desk: Desk, session: Session) -> str:
    return desk.ask(session, "One?", "Two?", turn_id=None)


def expired(desk: Desk, session: Session) -> str:
    return desk.ask(session, status="expired")


def unknown_status(desk: Desk, session: Session) -> str:
    return desk.ask(session, status="odd")


CASES: list[tuple[Case, str]] = [
    (live, "active_live"),
    (detached, "active_detached"),
    (partly_open, "active_detached"),
    (claimed, "delivery_claimed"),
    (unknown_outcome, "terminal"),
    (finalized, "terminal"),
    (restored_then_superseded, "superseded_history"),
    (finalized_after_restored, "terminal"),
    (superseded, "superseded_history"),
    (session_over, "terminal"),
    (two_turns, "superseded_history"),
    (two_sessions, "superseded_history"),
    (foreign_type, "superseded_history"),
    (empty_turn_beside_a_named_one, "active_detached"),
    (expired, "terminal"),
    (unknown_status, "terminal"),
]


@pytest.mark.parametrize(("case", "state"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_the_list_shows_the_state_of_contract_3(desk: Desk, root: Client, case: Case, state: str) -> None:
    pending_id = case(desk, desk.session())
    told = bundles.state_of(bundles.reach(Principal(unscoped=True), pending_id))
    shown = root.get(LIST).context["cl"].result_list
    assert [(row.pending_id, row.state) for row in shown] == [(pending_id, state)]
    assert told == state


def test_a_bundle_is_one_row_however_many_questions_and_equal_times(desk: Desk, root: Client) -> None:
    made = {desk.ask(desk.session(), *["What?"] * count) for count in (1, 2, 4)}
    Message.objects.update(created_at=timezone.now())
    listed = [row.pending_id for row in root.get(LIST).context["cl"].result_list]
    assert sorted(listed) == sorted(made)


def test_the_list_takes_as_many_queries_for_thirty_bundles_as_for_one(desk: Desk, root: Client) -> None:
    live(desk, desk.session())
    with CaptureQueriesContext(
        connection,
    ) as few:
        root.get(LIST)
    for number in range(29):
        CASES[number % 8][0](desk, desk.session(f"task {number}"))
    with CaptureQueriesContext(connection) as many:
        assert len(root.get(LIST).context["cl"].result_list) == 30
    assert len(many) <= len(few)


def test_the_page_shows_every_question_and_its_answer(desk: Desk, root: Client) -> None:
    session = desk.session()
    pending_id = desk.ask(session, "One?", "Two?", status="answered")
    desk.claim(session, pending_id, ClaimState.FINALIZED)
    page = root.get(f"{LIST}{Bundle.objects.heads().get().pk}/change/")
    text = page.content.decode()
    for part in (pending_id, "the task", "One?", "Two?", "o1: label 1, about 1", "Chosen: o2; text: because"):
        assert part in text, part
    assert "terminal" in text
    assert not page.context["adminform"].form.fields


def test_search_finds_by_pending_id_task_title_and_any_question(desk: Desk, root: Client) -> None:
    one = desk.ask(desk.session("Paint the shed"), "Which colour?", "How many coats?")
    other = desk.ask(desk.session("Water the plants"), "When?")

    def found(text: str) -> list[str]:
        return [row.pending_id for row in root.get(LIST, {"q": text}).context["cl"].result_list]

    assert found(other) == [other]
    assert found("SHED") == [one]
    assert found("coats") == [one]
    assert found("shed colour") == [one]
    assert found("shed plants") == []
    assert found("100%_") == []


@pytest.mark.scenario("R43")
def test_what_people_and_agents_typed_is_escaped(desk: Desk, root: Client) -> None:
    hostile = "<script>alert(1)</script>"
    session = desk.session(hostile)
    desk.ask(session, hostile, status="answered")
    row = Message.objects.get()
    evil = {"question_id": "q1", "selected_options": [hostile], "custom_text": hostile}
    option = {"option_id": hostile, "label": hostile, "description": hostile}
    marks = {"response": evil, "context": hostile, "question_id": hostile}
    marks["question"] = {**row.metadata["question"], "title": hostile, "options": [option]}
    Message.objects.update(metadata={**row.metadata, **marks})
    for page in (LIST, f"{LIST}{row.pk}/change/", "/admin/turns/message/", f"/admin/turns/message/{row.pk}/change/"):
        text = root.get(page).content.decode()
        assert hostile not in text, page
        assert "&lt;script&gt;" in text or page == "/admin/turns/message/"


def cancel(client: Client) -> None:
    data = {"action": "cancel", "_selected_action": [str(row.pk) for row in Bundle.objects.heads()]}
    client.post(LIST, data, follow=True)


@pytest.mark.scenario("H3", "R43")
def test_cancelling_is_the_products_own_cancel(desk: Desk, root: Client) -> None:
    waited, alone = live(desk, desk.session()), detached(desk, desk.session("another"))
    cancel(visitor(desk.viewer, "*"))
    assert {row.status for row in Message.objects.all()} == {"pending"}
    cancel(root)
    assert {row.status for row in Message.objects.filter(pending_id=waited)} == {"cancelled"}
    assert {row.status for row in Message.objects.filter(pending_id=alone)} == {"pending"}
    assert not WaiterLease.objects.exists()
    assert not Claim.objects.exists()


def test_a_person_without_the_permission_has_no_action(desk: Desk) -> None:
    live(desk, desk.session())
    client = visitor(desk.owner, "clarifications.view_bundle")
    assert client.get(LIST).status_code == 200
    cancel(client)
    assert {row.status for row in Message.objects.all()} == {"pending"}
