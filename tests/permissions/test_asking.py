"""A request is stored once, shows everywhere, holds its task back, and ends with its turn."""

from typing import Any

import pytest
from django.utils import timezone

from tasks import ending, moving
from tasks.models import Session, SessionState, Task, TaskState
from tests.permissions.conftest import OPTIONS, Request, ask
from tests.support.climbing import Stage, add_row, add_turn, rest_of, sibling
from tests.support.waiting import until
from turns import background, pausing
from turns.ending import end_turn
from turns.models import EndReason, Message


def requests(stage: Stage) -> int:
    return Message.objects.filter(session=stage.session, type="permission_request").count()


@pytest.mark.scenario("I1", "I7")
def test_a_request_is_one_message_of_its_turn_with_event_and_projection(running_session: Stage) -> None:
    before = running_session.fresh()
    request = ask(running_session)
    row = request.row
    assert (row.turn_id, row.author_type, row.content) == (running_session.turn.pk, "agent", "Delete the old backups")
    assert row.metadata["options"] == OPTIONS
    assert (row.metadata["status"], row.metadata["tool"]) == ("pending", {"kind": "delete"})
    assert running_session.events("session.message.added")[-1].payload["message"]["id"] == str(row.pk)
    assert running_session.pending_action() == "permission"
    assert running_session.fresh().revision_sequence > before.revision_sequence
    owner = rest_of(running_session, "owner")
    task = owner("GET", f"/tasks/{running_session.task.pk}").body
    assert (task["pending_action"], task["primary_session_pending_action"]) == ("permission", "permission")
    shown = owner("GET", f"/tasks?pending_action=permission&workspace={running_session.workspace.pk}").body["results"]
    assert [one["id"] for one in shown] == [str(running_session.task.pk)]


@pytest.mark.scenario("I2")
def test_a_request_that_is_sent_again_is_stored_once_and_changes_nothing(request_: Request) -> None:
    before = Session.objects.filter(pk=request_.stage.session.pk).values().get()
    events = len(request_.stage.events())
    request_.say()
    assert requests(request_.stage) == 1
    assert Session.objects.filter(pk=request_.stage.session.pk).values().get() == before
    assert len(request_.stage.events()) == events
    assert request_.told() == []


def test_a_decided_request_that_is_sent_again_hears_the_decision_again(request_: Request) -> None:
    assert request_.answer("no").short == (200, True)
    request_.say()
    assert request_.told() == ["no", "no"]
    assert requests(request_.stage) == 1


def test_several_requests_of_one_turn_are_decided_one_by_one(request_: Request) -> None:
    second = ask(request_.stage)
    assert request_.answer("yes").short == (200, True)
    assert request_.stage.pending_action() == "permission"
    assert second.answer("no").short == (200, True)
    assert request_.stage.pending_action() is None
    assert (request_.told(), second.told()) == (["yes"], ["no"])


@pytest.mark.scenario("I1")
def test_a_question_goes_before_a_permission(request_: Request) -> None:
    asked = request_.stage.ask()
    assert request_.stage.pending_action() == "clarification"
    assert asked.respond({"rejected": True}).status in (200, 503)
    background.settle()
    until(lambda: request_.stage.pending_action() != "clarification", what="the question is over")


@pytest.mark.parametrize(
    "over",
    [
        {"options": []},
        {"options": "all"},
        {"options": [*OPTIONS, "more"]},
        {"options": [{"option_id": "", "name": "Yes", "kind": "allow_once"}]},
        {"options": [{"option_id": "yes", "name": 7, "kind": "allow_once"}]},
        {"options": OPTIONS * 20},
    ],
)
def test_a_request_without_usable_options_is_cancelled_at_once(running_session: Stage, over: dict[str, Any]) -> None:
    request = ask(running_session, **over)
    assert requests(running_session) == 0
    assert request.told() == [None]


@pytest.mark.parametrize("request_id", [None, "", 7, "x" * 201])
def test_a_request_without_an_id_is_ignored(running_session: Stage, request_id: Any) -> None:
    request = ask(running_session, request_id=request_id)
    assert requests(running_session) == 0
    assert request.told() == []


def test_odd_titles_and_tools_are_left_out_and_an_option_counts_once(running_session: Stage) -> None:
    request = ask(running_session, title=7, tool=["x"], options=[*OPTIONS, OPTIONS[0]])
    assert (request.row.content, request.row.metadata["tool"]) == ("", {})
    assert request.row.metadata["options"] == OPTIONS


@pytest.mark.scenario("H5", "K1")
def test_a_request_of_another_runner_or_generation_is_not_stored(running_session: Stage) -> None:
    late = {**running_session.dispatched, "prompt_generation": 99}
    running_session.runner.say("permission", late, request_id="late", title="t", tool={}, options=OPTIONS)
    assert requests(running_session) == 0
    running_session.runner.take()
    [told] = running_session.runner.got("permission_answer")
    assert (told["request_id"], told["option_id"], told["prompt_generation"]) == ("late", None, 99)


@pytest.mark.scenario("M1")
def test_an_open_request_holds_its_task_until_it_is_decided(request_: Request) -> None:
    task, owner = request_.stage.task, rest_of(request_.stage, "owner")
    refused = owner("POST", f"/tasks/{task.pk}/move", {"state": "done"})
    assert refused.short == (409, "pending_input")
    assert moving.is_blocked(task.pk)
    assert request_.answer("yes").short == (200, True)
    assert not moving.is_blocked(task.pk)
    assert owner("POST", f"/tasks/{task.pk}/move", {"state": "done"}).status == 200


@pytest.mark.scenario("M1", "M2")
def test_a_completion_that_a_request_held_back_is_made_up(request_: Request) -> None:
    other = sibling(request_.stage)
    other.ready()
    background.settle()
    assert Task.objects.get(pk=other.task.pk).state == TaskState.IN_PROGRESS
    assert request_.answer("no").short == (200, True)
    background.settle()
    assert Task.objects.get(pk=other.task.pk).state == TaskState.REVIEW


# --- over with its turn ---------------------------------------------------------------------------------------------


def assert_over(request: Request) -> None:
    assert request.status == "cancelled"
    assert request.stage.pending_action() is None
    assert request.stage.events("session.message.updated")[-1].payload["message"]["id"] == str(request.row.pk)
    late = request.answer("yes")
    assert late.short == (409, "not_active")
    assert "option_id" not in request.row.metadata


@pytest.mark.scenario("A2", "I1")
@pytest.mark.parametrize("reason", [EndReason.READY, EndReason.FAILED, EndReason.INTERRUPTED, EndReason.CANCELLED])
def test_it_ends_with_its_turn(request_: Request, reason: EndReason) -> None:
    before = request_.stage.fresh()
    assert end_turn(request_.stage.session.pk, request_.stage.turn.pk, reason, timezone.now())
    background.settle()
    assert request_.stage.fresh().revision_sequence > before.revision_sequence
    assert_over(request_)


@pytest.mark.scenario("A7", "F3")
@pytest.mark.parametrize("state", [SessionState.COMPLETED, SessionState.FAILED, SessionState.CANCELLED])
def test_it_ends_with_its_session_before_the_runner_says_a_word(request_: Request, state: SessionState) -> None:
    ending.end_session(request_.stage.session.pk, state)
    assert_over(request_)


@pytest.mark.scenario("K5")
def test_it_ends_when_its_turn_is_told_to_stop(request_: Request) -> None:
    request_.stage.runner.on_cancel = request_.stage.runner.ignore
    assert pausing.cancel_turn(request_.stage.session.pk, request_.stage.turn.pk, "test", timezone.now())
    assert_over(request_)
    late = ask(request_.stage)
    assert requests(request_.stage) == 1
    assert late.told() == [None]


def test_a_runner_that_was_taken_for_lost_hears_that_its_request_is_over(request_: Request) -> None:
    pausing.interrupt(request_.stage.session.pk, request_.stage.turn.pk, timezone.now())
    request_.say()
    assert request_.told() == [None]
    assert_over(request_)


def test_a_deleted_request_is_cancelled_at_the_agent(request_: Request) -> None:
    owner, row = rest_of(request_.stage, "owner"), request_.row
    before = request_.stage.fresh()
    assert owner("DELETE", f"/messages/{row.pk}").status == 204
    assert request_.told() == [None]
    assert request_.stage.pending_action() is None
    assert request_.stage.fresh().revision_sequence > before.revision_sequence
    person = rest_of(request_.stage)
    assert person("POST", f"/permissions/{row.pk}/answer", {"option_id": "yes"}).short == (404, "not_found")


def test_the_deletion_of_a_decided_request_tells_nobody(request_: Request) -> None:
    assert request_.answer("yes").short == (200, True)
    assert rest_of(request_.stage, "owner")("DELETE", f"/messages/{request_.row.pk}").status == 204
    request_.stage.runner.take()
    assert [frame["option_id"] for frame in request_.stage.runner.got("permission_answer")] == ["yes"]


@pytest.mark.scenario("A1", "A10")
@pytest.mark.django_db(transaction=True)
def test_the_rule_of_questions_is_the_rule_of_permissions(stage: Stage) -> None:
    old, new = add_turn(stage.session), add_turn(stage.session)
    kind = {"type": "permission_request"}
    for status, expected in (("pending", True), ("", True), (None, True), ("answered", False), ("odd", False)):
        historic = add_row(stage.session, old.pk, {"status": status}, **kind)
        row = add_row(stage.session, new.pk, {"status": status}, **kind)
        assert not Message.objects.filter(pk=historic.pk).active("permission_request").exists()
        assert Message.objects.filter(pk=row.pk).active("permission_request").exists() is expected
        assert not Message.objects.filter(session=stage.session).active().exists()
        assert (stage.pending_action() == "permission") is expected
        row.delete()
