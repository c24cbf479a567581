"""A first try won and its reply was lost (B21): the caller's own retry hears the same result, nothing happens twice."""

from typing import Any

import pytest

from tests.support.climbing import SKIP, Outcome, Question, add_session, answers, rest_of
from turns import background

pytestmark = pytest.mark.usefixtures("serving")


def twice(question: Question, payload: dict[str, Any]) -> tuple[Outcome, Outcome]:
    """The same caller sends the same again, without knowing what became of the first."""
    caller = rest_of(question.stage)
    path = f"/clarification/{question.pending_id}/respond"
    first = caller("POST", path, payload)
    background.settle()
    return first, caller("POST", path, payload)


@pytest.mark.scenario("G2", "G3", "R29")
def test_a_retry_of_a_detached_answer_is_success_with_the_same_result(detached_: Question) -> None:
    first, again = twice(detached_, answers(text="mine"))
    assert (first.short, again.short) == ((200, True), (200, False))
    assert again.body == {**first.body, "claimed": False}
    assert len(detached_.stage.runner.got("dispatch")) == 2
    assert detached_.stage.turns() == 2


@pytest.mark.scenario("G2", "C1")
def test_a_retry_of_a_live_answer_is_success_with_the_same_result(asked_: Question) -> None:
    agent = asked_.waits()
    first, again = twice(asked_, answers(text="mine"))
    assert again.body == {**first.body, "claimed": False}
    assert agent.ended().response == first.body["response"]
    assert (asked_.stage.turns(), len(asked_.claims)) == (1, 1)


@pytest.mark.scenario("G2", "G3", "D8")
def test_a_retry_of_a_skip_is_success_without_its_reason(detached_: Question) -> None:
    first, again = twice(detached_, SKIP)
    assert again.body["response"] == {**first.body["response"], "reject_reason": ""}
    assert len(detached_.stage.runner.got("dispatch")) == 1


@pytest.mark.scenario("G2")
def test_a_retry_long_after_the_new_turn_ended_still_hears_the_first(detached_: Question) -> None:
    """B65: another value later is not taken, and starts nothing."""
    first, _ = twice(detached_, answers(text="mine"))
    detached_.stage.ready()
    background.settle()
    later = detached_.respond(answers(pick="b", text="other"))
    assert (later.short, later.body["response"]) == ((200, False), first.body["response"])
    assert detached_.stage.turns() == 2


@pytest.mark.scenario("H2")
def test_access_is_judged_by_the_task_of_the_rows_whatever_the_caller_says(detached_: Question) -> None:
    """A stranger names a task and a session of his own; the question's own task decides."""
    stage = detached_.stage
    stranger = rest_of(stage, "stranger")
    own = stranger("POST", "/workspaces", {"name": "mine"}).body["id"]
    task = stranger("POST", "/tasks", {"workspace": own, "title": "mine", "agent": "demo"}).body
    named = {"task_id": task["id"], "session_id": task["primary_session"], "workspace_id": own}
    address = f"/clarification/{detached_.pending_id}"
    query = "&".join(f"{key}={value}" for key, value in named.items())
    for path, body in ((f"{address}/respond", answers()), (f"{address}/cancel", {}), (f"{address}/late-answer", {})):
        assert stranger("POST", f"{path}?{query}", {**body, **named}).short == (404, "not_found")
    assert stranger("GET", f"{address}?{query}").short == (404, "not_found")
    assert detached_.statuses == ["pending"]


@pytest.mark.scenario("H2", "H1")
def test_access_follows_the_task_when_it_moves(detached_: Question) -> None:
    """B69: the rows keep their session, the right is the one of the workspace that the task is in now."""
    stage = detached_.stage
    owner = rest_of(stage, "owner")
    other = owner("POST", "/workspaces", {"name": "elsewhere"}).body["id"]
    assert owner("PATCH", f"/tasks/{stage.task.pk}", {"workspace": other}).status == 200
    add_session(stage.task)
    assert detached_.respond().short == (404, "not_found")
    assert owner("POST", f"/clarification/{detached_.pending_id}/respond", answers()).short == (200, True)
    background.settle()
    assert detached_.stage.dispatched["session_id"] == str(stage.session.pk)


@pytest.mark.scenario("H5", "G1")
def test_an_agent_answers_neither_its_own_question_nor_late(detached_: Question) -> None:
    agent = rest_of(detached_.stage, "agent")
    for verb in ("respond", "late-answer"):
        got = agent("POST", f"/clarification/{detached_.pending_id}/{verb}", answers())
        assert got.short == (403, "forbidden")
