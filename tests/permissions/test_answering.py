"""A request is answered once, with one offered option, by somebody who may."""

import uuid
from typing import Any

import pytest
from pytest_django import Settings

from tests.permissions.conftest import Request
from tests.support.climbing import rest_of
from tests.tasks.racing import together
from turns import permitting
from turns.models import Message, RunnerFrame


def test_an_answer_is_stored_told_and_owed_to_the_runner_at_once(request_: Request) -> None:
    before = request_.stage.fresh()
    got = request_.answer("always")
    assert (got.status, got.body) == (200, {"success": True, "claimed": True, "option_id": "always"})
    assert (request_.row.metadata["status"], request_.row.metadata["option_id"]) == ("answered", "always")
    assert request_.stage.pending_action() is None
    assert request_.stage.fresh().revision_sequence > before.revision_sequence
    assert request_.stage.events("session.message.updated")[-1].payload["message"]["metadata"]["option_id"] == "always"
    frame = request_.stage.runner.expect("permission_answer")
    named = {key: request_.stage.dispatched[key] for key in ("session_id", "execution_id", "prompt_generation")}
    wanted = {"type": "permission_answer", **named, "request_id": request_.frame["request_id"], "option_id": "always"}
    assert frame == wanted


@pytest.mark.scenario("G2")
def test_whoever_comes_second_hears_the_first_choice_and_changes_nothing(request_: Request) -> None:
    assert request_.answer("no").short == (200, True)
    before = request_.row.metadata
    for option_id in ("yes", "no"):
        got = request_.answer(option_id, "owner")
        assert (got.status, got.body) == (200, {"success": True, "claimed": False, "option_id": "no"})
    assert request_.row.metadata == before
    assert request_.told() == ["no"]


def race(request: Request) -> list[Any]:
    """Two answers at the same moment that both reached the request while it was open."""
    row = request.row
    return together(*(lambda option=option: permitting.answer(row, option) for option in ("yes", "no")))


@pytest.mark.scenario("G1")
def test_two_answers_at_once_have_one_winner(request_: Request) -> None:
    results = race(request_)
    assert sorted(result["claimed"] for result in results) == [False, True]
    [chosen] = {result["option_id"] for result in results}
    assert request_.row.metadata["option_id"] == chosen
    assert request_.told() == [chosen]


@pytest.mark.scenario("G1")
def test_without_the_guard_two_answers_at_once_both_win(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: an update that restates nothing does the damage."""

    def unguarded(row: Message, now: Any, **marks: str) -> bool:
        row.metadata = {**row.metadata, **marks}
        return bool(Message.objects.filter(pk=row.pk).update(metadata=row.metadata))

    monkeypatch.setattr(permitting, "_set", unguarded)
    assert [result["claimed"] for result in race(request_)] == [True, True]
    assert sorted(map(str, request_.told())) == ["no", "yes"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"option_id": "maybe"}, "option_id"),
        ({"option_id": ""}, "option_id"),
        ({"option_id": None}, "option_id"),
        ({"option_id": ["yes"]}, "option_id"),
        ({"option_id": True}, "option_id"),
        ({"option_id": " yes"}, "option_id"),
        ({}, "option_id"),
        ({"option": "yes"}, "option_id"),
        (["yes"], "non_field_errors"),
        (b"{", "non_field_errors"),
    ],
)
def test_anything_but_one_offered_option_is_refused_and_named(request_: Request, body: Any, field: str) -> None:
    got = rest_of(request_.stage)("POST", f"/permissions/{request_.row.pk}/answer", body)
    assert (got.status, list(got.body["fields"])) == (400, [field])
    assert request_.status == "pending"


def test_a_wrong_option_is_refused_also_when_somebody_has_answered(request_: Request) -> None:
    assert request_.answer("yes").short == (200, True)
    assert request_.answer("maybe").status == 400


@pytest.mark.scenario("H2", "H3")
def test_only_those_who_may_answer_do(request_: Request) -> None:
    path, body = f"/permissions/{request_.row.pk}/answer", {"option_id": "yes"}
    foreign = rest_of(request_.stage, "stranger")("POST", path, body)
    unknown = rest_of(request_.stage)("POST", f"/permissions/{uuid.uuid4()}/answer", body)
    other = Message.objects.filter(session=request_.stage.session).exclude(type="permission_request").first()
    assert other is not None
    no_request = rest_of(request_.stage, "owner")("POST", f"/permissions/{other.pk}/answer", body)
    malformed = rest_of(request_.stage)("POST", "/permissions/nonsense/answer", body)
    assert (foreign.status, foreign.body) == (404, {"error": "not found", "code": "not_found"})
    assert foreign == unknown == no_request == malformed
    assert request_.answer("yes", "agent").short == (403, "forbidden")
    assert request_.status == "pending"


@pytest.mark.scenario("H8")
def test_answers_are_counted_before_they_are_looked_at(request_: Request, settings: Settings) -> None:
    settings.KANDEV_RATE_ANSWER = "1/m"
    person = rest_of(request_.stage)
    path = f"/permissions/{request_.row.pk}/answer"
    assert person("POST", path, {"option_id": "maybe"}).status == 400
    assert person("POST", path, {"option_id": "yes"}).short == (429, "rate_limited")
    assert request_.status == "pending"


def test_what_is_not_committed_is_not_sent(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> None:
        raise RuntimeError("the change cannot be told")

    monkeypatch.setattr(permitting, "_changed", fails)
    assert request_.answer("yes").status == 500
    assert request_.status == "pending"
    assert not RunnerFrame.objects.filter(kind="permission_answer").exists()
    monkeypatch.undo()
    assert request_.answer("yes").short == (200, True)


def test_an_imported_row_without_options_is_shown_and_refused_politely(request_: Request) -> None:
    row = request_.row
    for metadata in ({"status": "pending"}, {"options": [7]}):
        Message.objects.filter(pk=row.pk).update(metadata=metadata)
        got = rest_of(request_.stage)("POST", f"/permissions/{row.pk}/answer", {"option_id": "yes"})
        assert (got.status, list(got.body["fields"])) == (400, ["option_id"])
        assert request_.stage.pending_action() == "permission"
