"""Bundles that no ordinary ask makes: spread, foreign, half-terminal, of old data (A8, C7, C8, R35)."""

import time
import uuid
from typing import Any

import pytest

from clarifications import discovering, holding, leases
from tasks import ending
from tasks.models import SessionState
from tasks.principals import Principal
from tests.support.climbing import Question, Stage, add_row, add_session, add_turn, questions
from tests.support.waiting import until
from turns import removing
from turns.models import Message, Turn


def two_questions(stage: Stage, *spread: dict[str, Any]) -> Question:
    """A bundle of q1 and q2 by hand in the running turn; `spread` replaces fields of its rows."""
    pending_id = str(uuid.uuid4())
    given = [{}, *spread][-2:]
    for number, fields in enumerate(given, 1):
        asked = questions(2)[number - 1]
        named = {"pending_id": pending_id, "question_id": f"q{number}", "question": {**asked, "title": ""}}
        marks = {**named, **fields.pop("metadata", {})}
        session, turn = fields.pop("session", stage.session), fields.pop("turn", stage.turn.pk)
        add_row(session, turn, marks, **fields)
    return Question(stage, pending_id, 2)


@pytest.mark.scenario("A8", "C8", "G2")
@pytest.mark.parametrize("spread", ["two sessions", "two turns", "foreign type"])
@pytest.mark.parametrize("skip", [True, False])
def test_a_malformed_bundle_cannot_be_claimed_and_stays_as_it_was(
    running_session: Stage, spread: str, skip: bool
) -> None:
    other = add_session(running_session.task)
    kinds: dict[str, dict[str, Any]] = {
        "two sessions": {"session": other, "turn": add_turn(other).pk},
        "two turns": {"turn": Turn.objects.exclude(session=running_session.session).get().pk},
        "foreign type": {"type": "message"},
    }
    question = two_questions(running_session, kinds[spread])
    before = list(Message.objects.bundle(question.pending_id).values())
    got = question.respond({"rejected": True} if skip else None)
    assert got.short == (409, "not_active")
    assert list(Message.objects.bundle(question.pending_id).values()) == before
    assert not question.claims
    assert not question.state.startswith("active")
    assert question.pending_id not in running_session.listed()


@pytest.mark.scenario("C8")
def test_a_bundle_whose_rows_name_its_turn_or_none_is_answered_whole(running_session: Stage) -> None:
    question = two_questions(running_session, {"turn": None})
    assert question.pending_id in running_session.listed()
    running_session.ready()
    assert question.respond().short == (200, True)
    assert question.statuses == ["answered", "answered"]


@pytest.mark.scenario("C8", "F5", "F7")
def test_a_cancel_closes_the_whole_bundle_also_rows_that_name_no_turn(running_session: Stage) -> None:
    question = two_questions(running_session, {"turn": None})
    agent = question.waits()
    until(lambda: question.state == "active_live", what="the agent waits")
    assert question.cancel().status == 200
    assert (question.statuses, question.state) == (["cancelled", "cancelled"], "terminal")
    assert agent.ended().code == "cancelled"


@pytest.mark.scenario("C8", "F3", "F7")
@pytest.mark.parametrize("fellow", ["no turn", "another turn", "another bundle"])
def test_the_end_of_a_session_expires_the_whole_bundle_and_nothing_else(running_session: Stage, fellow: str) -> None:
    """Negative controls: a row of another turn makes it no bundle; one of another bundle has no fellow to follow."""
    fields: dict[str, dict[str, Any]] = {
        "no turn": {"turn": None},
        "another turn": {"turn": add_turn(add_session(running_session.task)).pk},
        "another bundle": {"turn": None, "metadata": {"pending_id": str(uuid.uuid4())}},
    }
    question = two_questions(running_session, fields[fellow])
    ending.end_session(running_session.session.pk, SessionState.CANCELLED)
    first, second = Message.objects.filter(session=running_session.session).questions().order_by("created_at")
    assert (first.status, second.status) == ("expired", "expired" if fellow == "no turn" else "pending")
    assert question.state == "terminal"
    told = {event.payload["message"]["id"] for event in running_session.events("session.message.updated")}
    assert (str(second.pk) in told) is (fellow == "no turn")


@pytest.mark.scenario("R40", "C8", "L6")
@pytest.mark.parametrize("deleted", ["the row that names the turn", "the row that names none"])
def test_deleting_the_last_row_that_names_a_turn_leaves_nothing_pending(running_session: Stage, deleted: str) -> None:
    question = two_questions(running_session, {"turn": None})
    named, unnamed = question.rows
    owner = Principal(user=running_session.workspace.owner)
    if deleted == "the row that names the turn":
        removing.remove(owner, named.pk)
        assert (question.statuses, question.state) == (["cancelled"], "terminal")
        assert running_session.pending_action() is None
        told = running_session.events("session.message.updated")
        assert [event.payload["message"]["id"] for event in told] == [str(unnamed.pk)]
    else:
        removing.remove(owner, unnamed.pk)
        assert (question.statuses, running_session.pending_action()) == (["pending"], "clarification")


@pytest.mark.scenario("A8")
def test_a_live_waiter_is_let_go_when_its_turn_is_gone(asked_: Question) -> None:
    agent = asked_.waits()
    Turn.objects.filter(session=asked_.stage.session).delete()
    assert agent.waits
    leases.release_stranded()
    holding.poll()
    ended = agent.ended()
    assert (ended.code, ended.response) == ("superseded", None)
    assert asked_.respond().short == (409, "not_active")


@pytest.mark.scenario("A8", "B6")
def test_a_live_waiter_is_let_go_when_its_rows_were_deleted_behind_our_back(
    asked_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = asked_.waits()
    Message.objects.filter(pending_id=asked_.pending_id).delete()
    monkeypatch.setattr(holding, "_stood_at", [time.monotonic()])
    holding.poll()
    assert agent.waits  # this is looked at once in a keepalive's time
    monkeypatch.setattr(holding, "_stood_at", [float("-inf")])
    holding.poll()
    assert agent.ended().code == "cancelled"


@pytest.mark.scenario("A8")
def test_nobody_begins_to_wait_on_a_row_whose_turn_is_gone(running_session: Stage) -> None:
    question = Question(running_session, add_row(running_session.session, uuid.uuid4()).metadata["pending_id"])
    assert question.waits().ended().code == "superseded"


@pytest.mark.scenario("C7", "R35")
@pytest.mark.parametrize("done", ["answered", "rejected", "cancelled", "expired"])
def test_only_the_pending_rows_of_a_half_terminal_bundle_are_claimed(running_session: Stage, done: str) -> None:
    stored = {"question_id": "q1", "selected_options": ["q1_b"], "custom_text": "before"}
    marks = {"status": done, **({"response": stored} if done == "answered" else {})}
    question = two_questions(running_session, {"metadata": marks}, {})
    before = question.rows[0].metadata
    running_session.ready()
    got = question.respond()
    assert got.short == (200, True)
    assert question.rows[0].metadata == before
    assert question.rows[1].status == "answered"
    assert question.claims[0].message_ids == [str(question.rows[1].pk)]
    said = got.body["response"]["answers"]
    if done == "answered":
        assert said[0] == stored
    if done in {"answered", "cancelled", "expired"}:
        assert said[-1]["question_id"] == "q2"


@pytest.mark.scenario("C7", "R35", "D3")
def test_only_the_claimed_rows_come_back_after_a_refusal(running_session: Stage) -> None:
    stored = {"question_id": "q1", "selected_options": ["q1_b"], "custom_text": ""}
    question = two_questions(running_session, {"metadata": {"status": "answered", "response": stored}}, {})
    before = question.rows[0].metadata
    running_session.ready()
    running_session.runner.on_dispatch = running_session.runner.reject
    assert question.respond().short == (503, "delivery_failed")
    assert question.rows[0].metadata == before
    assert question.statuses == ["answered", "pending"]


@pytest.mark.scenario("R35", "G4")
@pytest.mark.parametrize("entries", [["q1"], ["q2"], ["q1", "q1", "q2"], ["q1", "q2", "q3"]])
def test_a_half_terminal_bundle_wants_one_entry_for_each_question(running_session: Stage, entries: list[str]) -> None:
    question = two_questions(running_session, {"metadata": {"status": "answered"}}, {})
    got = question.respond({"answers": [{"question_id": name} for name in entries]})
    assert (got.status, bool(got.body["fields"])) == (400, True)
    assert question.statuses == ["answered", "pending"]


@pytest.mark.scenario("R35", "G3")
@pytest.mark.parametrize(
    ("first", "second"), [("answered", "rejected"), ("rejected", "answered"), ("expired", "answered")]
)
def test_a_replay_of_a_mixed_bundle_takes_the_first_settled_status(
    running_session: Stage, first: str, second: str
) -> None:
    spread = [{"metadata": {"status": status, **_response(n, status)}} for n, status in ((1, first), (2, second))]
    question = two_questions(running_session, *spread)
    got = question.respond()
    status = first if first in {"answered", "rejected"} else second
    assert (got.short, got.body["status"], got.body["delivery"]) == ((200, False), status, "delivered")
    expected = [f"q{n}" for n, row in ((1, first), (2, second)) if row == "answered"] if status == "answered" else []
    assert [entry["question_id"] for entry in got.body["response"]["answers"]] == expected


def _response(number: int, status: str) -> dict[str, Any]:
    return {"response": {"question_id": f"q{number}", "selected_options": []}} if status == "answered" else {}


@pytest.mark.scenario("G6")
@pytest.mark.parametrize("payload", [None, {"rejected": True}])
def test_a_bundle_with_a_row_without_question_id_is_listed_nowhere_and_refused_before_the_claim(
    running_session: Stage, payload: Any
) -> None:
    question = two_questions(running_session, {"metadata": {"question_id": None}})
    assert question.pending_id not in running_session.listed()
    got = question.respond(payload)
    assert (got.status, list(got.body["fields"])) == (400, ["pending_id"])
    assert not question.claims
    assert question.statuses == ["pending", "pending"]


@pytest.mark.scenario("G6")
def test_an_empty_question_id_is_none(running_session: Stage) -> None:
    question = two_questions(running_session, {"metadata": {"question_id": ""}})
    assert not discovering.list_pending(running_session.person)["bundles"]
    assert question.respond().status == 400
