"""Asking: one bundle in the current turn, joined by the same questions, refused without a running turn (B1, B3, B7)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clarifications import asking
from clarifications.models import WaiterLease
from tasks import ending, tokens
from tasks.models import SessionState, Token
from tasks.principals import Principal
from tests.support.climbing import Question, Rest, Stage, questions, rest_of, sibling
from tests.support.waiting import at_once, until
from turns import incoming, pausing
from turns.admitting import SessionUnavailable
from turns.models import Message


@pytest.mark.scenario("B1")
@pytest.mark.parametrize("who", ["agent", "owner"])
def test_a_question_becomes_one_row_each_in_the_current_turn(running_session: Stage, who: str) -> None:
    raw = questions(4)
    body = {"session_id": str(running_session.session.pk), "questions": raw, "context": "why"}
    got = rest_of(running_session, who)("POST", "/clarification/request", body)
    assert (got.status, set(got.body)) == (201, {"pending_id"})
    rows = list(Message.objects.bundle(got.body["pending_id"]))
    assert [row.metadata["question_id"] for row in rows] == ["q1", "q2", "q3", "q4"]
    assert [row.metadata["question_index"] for row in rows] == [0, 1, 2, 3]
    assert {row.metadata["question_total"] for row in rows} == {4}
    assert {(row.turn_id, row.session_id) for row in rows} == {(running_session.turn.pk, running_session.session.pk)}
    assert {(row.author_type, row.type, row.status) for row in rows} == {("agent", "clarification_request", "pending")}
    assert {row.metadata["context"] for row in rows} == {"why"}


@pytest.mark.scenario("B1")
def test_the_rows_of_a_bundle_come_in_one_insert_with_one_event_each(running_session: Stage) -> None:
    with CaptureQueriesContext(connection) as seen:
        question = running_session.ask(3)
    inserts = [query["sql"] for query in seen if query["sql"].startswith('INSERT INTO "turns_message"')]
    assert len(inserts) == 1
    told = [event.payload["message"]["id"] for event in running_session.events("session.message.added")]
    assert told[-3:] == [str(row.pk) for row in question.rows]


@pytest.mark.scenario("B1", "B2")
def test_a_failure_after_the_rows_leaves_nothing(running_session: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("the disk is full")

    before, events = Message.objects.count(), len(running_session.events())
    monkeypatch.setattr("turns.transcript.tell", fail)
    with pytest.raises(RuntimeError):
        running_session.ask(2)
    assert (Message.objects.count(), len(running_session.events())) == (before, events)
    assert not WaiterLease.objects.exists()


@pytest.mark.scenario("B3")
def test_the_same_questions_join_the_active_bundle(running_session: Stage) -> None:
    rest, body = rest_of(running_session, "agent"), {"session_id": str(running_session.session.pk)}
    first = rest("POST", "/clarification/request", {**body, "questions": questions(2)})
    for _ in range(3):
        again = rest("POST", "/clarification/request", {**body, "questions": questions(2)})
        assert (again.status, again.body) == (200, first.body)
    assert Message.objects.questions().count() == 2
    assert running_session.listed() == [first.body["pending_id"]]


@pytest.mark.scenario("B3")
@pytest.mark.parametrize("change", ["prompt", "order", "label", "count"])
def test_other_questions_do_not_join(asked_: Question, change: str) -> None:
    raw = questions(2 if change == "count" else 1)
    if change == "prompt":
        raw[0]["prompt"] += "!"
    elif change == "order":
        raw[0]["options"].reverse()
    elif change == "label":
        raw[0]["options"][0]["label"] = "Straight on"
    assert asked_.stage.ask(raw=raw).pending_id != asked_.pending_id
    assert asked_.state == "active_live"


@pytest.mark.scenario("B3")
def test_eight_asks_at_once_are_one_bundle(running_session: Stage) -> None:
    found = at_once(*[lambda: running_session.ask(2).pending_id] * 8)
    assert len(set(map(str, found))) == 1
    assert Message.objects.questions().count() == 2


@pytest.mark.scenario("B3", "R28", "R19")
def test_asking_again_makes_a_detached_question_live_once(asked_: Question) -> None:
    stage = asked_.stage
    agent = asked_.waits()
    agent.hang_up()
    agent.ended()
    assert asked_.state == "active_detached"
    before = len(stage.events("session.message.updated"))
    assert stage.ask().pending_id == asked_.pending_id
    assert stage.ask().pending_id == asked_.pending_id
    assert asked_.state == "active_live"
    assert asked_.rows[0].metadata["agent_disconnected"] is False
    assert len(stage.events("session.message.updated")) == before + 1
    agent = asked_.waits()
    assert asked_.respond().short == (200, True)
    assert agent.ended().code == "answered"
    assert stage.turns() == 1


def _cancelled(stage: Stage) -> None:
    stage.runner.on_cancel = stage.runner.ignore
    assert pausing.cancel_turn(stage.session.pk, stage.turn.pk, "test", stage.turn.started_at)


UNAVAILABLE: dict[str, Callable[[Stage], object]] = {
    "no turn": lambda stage: None,
    "turn ended": Stage.ready,
    "session ended": lambda stage: ending.end_session(stage.session.pk, SessionState.COMPLETED),
    "turn is being cancelled": _cancelled,
}


@pytest.mark.scenario("B7", "R21")
@pytest.mark.parametrize("why", UNAVAILABLE)
def test_a_session_without_a_running_turn_takes_no_question(
    stage: Stage, why: str, request: pytest.FixtureRequest
) -> None:
    if why != "no turn":
        request.getfixturevalue("running_session")
    UNAVAILABLE[why](stage)
    before = Message.objects.count()
    body = {"session_id": str(stage.session.pk), "questions": questions()}
    got = rest_of(stage, "agent")("POST", "/clarification/request", body)
    assert got.short == (409, "session_unavailable")
    assert Message.objects.count() == before
    assert stage.pending_action() is None


@pytest.mark.scenario("R21", "B7", "D3")
def test_the_replaced_turn_s_agent_asks_in_vain_and_its_question_survives_the_rollback(detached_: Question) -> None:
    stage, runner = detached_.stage, detached_.stage.runner
    old = Principal(token=Token.objects.get(digest=tokens.digest(stage.dispatched["mcp"]["token"])))
    seen: list[str] = []

    def refuse(frame: dict[str, Any]) -> None:
        try:
            asking.ask(old, str(stage.session.pk), questions())
        except SessionUnavailable as refusal:
            seen.append(refusal.code)
        runner.reject(frame)

    runner.on_dispatch = refuse
    assert detached_.respond().short == (503, "delivery_failed")
    assert seen == ["session_unavailable"]
    assert Message.objects.questions().count() == 1
    assert detached_.state == "active_detached"


@pytest.mark.scenario("R26", "B7")
def test_the_token_of_an_earlier_turn_may_read_and_neither_ask_nor_join(answered_: Question) -> None:
    stage = answered_.stage
    first, second = stage.runner.got("dispatch")
    assert first["mcp"]["token"] != second["mcp"]["token"]
    old, new = (Principal(token=Token.objects.get(digest=tokens.digest(f["mcp"]["token"]))) for f in (first, second))
    with pytest.raises(SessionUnavailable):
        asking.ask(old, str(stage.session.pk), questions())
    asked = asking.ask(new, str(stage.session.pk), questions())
    with pytest.raises(SessionUnavailable):
        asking.ask(old, str(stage.session.pk), questions())
    question = Question(stage, asked.pending_id)
    stage.agent = old
    assert question.waits().ended().code == "detached"
    assert question.state == "active_live"
    assert Rest(first["mcp"]["token"])("GET", f"/clarification/{asked.pending_id}").status == 200


@pytest.mark.scenario("B1", "A3", "A4", "R31")
def test_the_first_row_of_an_unpublished_turn_is_evidence_that_outlives_it(stage: Stage) -> None:
    """The runner's frame comes before its `accepted`."""
    runner = stage.runner
    sent: list[int] = []

    def speak_first(frame: dict[str, object]) -> None:
        sent.append(stage.fresh().revision_sequence)
        incoming.handle(runner.runner_id, {**_named(frame), "type": "frame", "kind": "thinking", "content": "hm"})
        sent.append(stage.fresh().revision_sequence)
        Message.objects.all().delete()

    runner.on_dispatch = speak_first
    assert stage.send().status == 201
    until(lambda: len(sent) == 2)
    assert sent[0] < sent[1]
    assert stage.turn.completed_at is None
    assert stage.ask().state == "active_live"


def _named(frame: dict[str, object]) -> dict[str, object]:
    return {key: frame[key] for key in ("session_id", "execution_id", "prompt_generation")}


@pytest.mark.scenario("B1")
def test_a_viewer_and_an_answerer_do_not_ask(running_session: Stage) -> None:
    body = {"session_id": str(running_session.session.pk), "questions": questions()}
    assert rest_of(running_session)("POST", "/clarification/request", body).short == (403, "forbidden")
    assert rest_of(running_session, "stranger")("POST", "/clarification/request", body).short == (404, "not_found")
    assert not Message.objects.questions().exists()


@pytest.mark.scenario("B1")
def test_another_session_s_agent_asks_only_in_its_own(running_session: Stage) -> None:
    other = sibling(running_session)
    body = {"session_id": str(running_session.session.pk), "questions": questions()}
    assert rest_of(other, "agent")("POST", "/clarification/request", body).short == (404, "not_found")
    assert not Message.objects.questions().exists()
