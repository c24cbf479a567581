"""Who comes second, or too late (G2, G3, G5, G7, G8, R29, R38)."""

import json
import logging
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError

from clarifications import claiming
from clarifications.models import Claim
from tasks.models import Event
from tests.support.climbing import SKIP, Question, Stage, answers, rest_of
from turns import background
from turns.models import Dispatch, Message, RunnerFrame, Turn


def everything() -> list[Any]:
    """All rows, but for when the runner's own thread took its frames."""
    background.settle()
    tables = (Message, Turn, Claim, Dispatch, Event, RunnerFrame)
    rows = [list(table.objects.order_by("pk").values()) for table in tables]
    return [[{**row, "sent_at": None} for row in found] for found in rows]


@pytest.mark.scenario("G2", "R29", "R31")
@pytest.mark.parametrize("payload", [answers(2, pick="b", text="mine"), SKIP, answers(2)])
def test_a_loser_with_a_winner_hears_it_and_changes_nothing(running_session: Stage, payload: Any) -> None:
    question = running_session.ask(2)
    running_session.ready()
    won = question.respond(answers(2, pick="a", text="theirs"))
    revision, before = running_session.fresh().revision_sequence, everything()
    got = question.respond(payload)
    assert (got.short, got.body["success"], got.body["status"]) == ((200, False), True, "answered")
    assert got.body["response"] == won.body["response"]
    assert (everything(), running_session.fresh().revision_sequence) == (before, revision)


@pytest.mark.scenario("G2", "G7", "R31")
@pytest.mark.parametrize("payload", [answers(), SKIP])
@pytest.mark.parametrize("end", ["newer turn", "cancelled", "session ended", "expired"])
def test_a_loser_without_a_winner_is_a_409_and_changes_nothing(asked_: Question, end: str, payload: Any) -> None:
    from tasks import ending
    from tasks.models import SessionState

    stage = asked_.stage
    if end == "newer turn":
        stage.ready()
        stage.send("newer")
    elif end == "cancelled":
        asked_.cancel()
    else:
        ending.end_session(stage.session.pk, SessionState.COMPLETED if end == "expired" else SessionState.CANCELLED)
    current, before = stage.turn.pk, everything()
    got = asked_.respond(payload)
    assert (got.status, got.body) == (409, {"error": "clarification request is no longer active", "code": "not_active"})
    assert (everything(), stage.turn.pk) == (before, current)


@pytest.mark.scenario("G3", "G5")
def test_every_reader_gets_the_same_bytes_of_a_response(running_session: Stage) -> None:
    question = running_session.ask(3)
    agent = question.waits()
    shuffled = {"answers": [*reversed(answers(3, text=" spaced ")["answers"])]}
    won = question.respond(shuffled).body["response"]
    waited = agent.ended().response
    replayed = question.respond(answers(3)).body["response"]
    assert json.dumps(won) == json.dumps(waited) == json.dumps(replayed)
    assert list(won) == ["pending_id", "answers", "rejected", "reject_reason", "responded_at"]
    assert [entry["question_id"] for entry in won["answers"]] == ["q1", "q2", "q3"]
    assert {tuple(entry) for entry in won["answers"]} == {("question_id", "selected_options", "custom_text")}
    assert {entry["custom_text"] for entry in won["answers"]} == {"spaced"}
    shown = rest_of(running_session)("GET", f"/clarification/{question.pending_id}").body
    assert [row["response"] for row in shown["questions"]] == won["answers"]


@pytest.mark.scenario("G3", "R34")
def test_a_replayed_rejection_has_neither_answers_nor_reason(detached_: Question) -> None:
    won = detached_.respond(SKIP).body["response"]
    got = detached_.respond(answers()).body
    assert (got["status"], got["claimed"], got["delivery"]) == ("rejected", False, "delivered")
    assert got["response"] == {**won, "reject_reason": ""}
    assert got["response"]["answers"] == []


@pytest.mark.scenario("G5")
def test_two_submissions_that_mean_the_same_are_stored_as_the_same_bytes(running_session: Stage) -> None:
    first, second = running_session.ask(2), running_session.ask(2, raw=_others())
    stored = []
    for question, payload in (
        (first, answers(2)),
        (
            second,
            {
                "answers": [
                    {**entry, "selected_options": entry["selected_options"] * 2, "custom_text": " \n"}
                    for entry in reversed(answers(2)["answers"])
                ]
            },
        ),
    ):
        agent = question.waits()
        question.respond(payload)
        agent.ended()
        stored.append(json.dumps([row.metadata["response"] for row in question.rows]))
    assert stored[0] == stored[1]


def _others() -> list[dict[str, Any]]:
    from tests.support.climbing import questions

    return questions(2, title="other")


@pytest.mark.scenario("G7", "A2")
def test_an_answer_to_an_older_turn_moves_no_ownership_though_the_newer_one_asks_the_same(answered_: Question) -> None:
    stage = answered_.stage
    newer = stage.ask()
    agent = newer.waits()
    before = len(stage.runner.frames)
    Message.objects.filter(pk=answered_.rows[0].pk).update(metadata={**answered_.rows[0].metadata, "status": "pending"})
    assert answered_.respond().short == (409, "not_active")
    assert (newer.state, agent.waits, len(stage.runner.frames)) == ("active_live", True, before)
    assert newer.respond().short == (200, True)


@pytest.mark.scenario("G8")
def test_a_database_error_in_the_claim_is_a_500_with_the_id_logged(
    detached_: Question, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: Any) -> None:
        raise DatabaseError("index corrupted")

    with monkeypatch.context() as broken, caplog.at_level(logging.ERROR):
        broken.setattr(claiming, "_store", fail)
        got = rest_of(detached_.stage)("POST", f"/clarification/{detached_.pending_id}/respond", answers())
    assert (got.status, got.body["retryable"]) == (500, False)
    assert "index corrupted" not in json.dumps(got.body)
    assert any(detached_.pending_id in record.getMessage() for record in caplog.records), caplog.text
    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):  # not the path of a request, as over MCP
        caplog.clear()
        broken.setattr(claiming, "_store", fail)
        assert detached_.respond().status == 500
    assert any(detached_.pending_id in record.getMessage() for record in caplog.records), caplog.text
    assert detached_.state == "active_detached"


@pytest.mark.scenario("G8")
def test_a_lock_that_is_not_granted_in_time_is_a_retryable_503(
    detached_: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*args: Any) -> None:
        raise OperationalError("database is locked")

    with monkeypatch.context() as broken:
        broken.setattr(claiming, "_store", locked)
        got = detached_.respond()
    assert (got.short, got.body["retryable"]) == ((503, "temporarily_unavailable"), True)
    assert detached_.respond().short == (200, True)


@pytest.mark.scenario("R38", "G4")
def test_the_rate_is_counted_before_validation_and_a_429_changes_nothing(detached_: Question, settings: Any) -> None:
    settings.KANDEV_RATE_ANSWER = "2/m"
    assert detached_.respond({"answers": 1}).status == 400
    assert detached_.respond({"answers": 1}).status == 400
    before = everything()
    assert detached_.respond().status == 429
    assert detached_.respond({"answers": 1}).status == 429
    assert everything() == before
    settings.KANDEV_RATE_ANSWER = "1000/m"
    assert detached_.respond().short == (200, True)


@pytest.mark.scenario("G2")
def test_only_one_answer_is_ever_handed_over(detached_: Question) -> None:
    for n in range(4):
        detached_.respond(answers(text=str(n)))
    background.settle()
    assert len(detached_.stage.runner.got("dispatch")) == 2
    assert detached_.rows[0].metadata["response"]["custom_text"] == "0"
