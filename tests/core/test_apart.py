"""Two bundles of a session do not touch each other (A9, R40), and what ends one ends it for good (F5, F7)."""

from collections.abc import Callable

import pytest

from clarifications.models import WaiterLease
from tasks.models import TaskState
from tests.support.climbing import SKIP, Question, Stage, questions
from turns import background, removing
from turns.models import Message


def ask_another(question: Question) -> Question:
    raw = questions(2)
    raw[0]["prompt"] = "Something else?"
    return question.stage.ask(2, raw)


def delete(question: Question, *numbers: int) -> None:
    from tasks.principals import Principal

    owner = question.stage.workspace.owner
    for row in [question.rows[number] for number in numbers or range(len(question.rows))]:
        removing.remove(Principal(user=owner), str(row.pk))


ENDINGS: dict[str, Callable[[Question], object]] = {
    "answer": lambda question: question.respond(),
    "skip": lambda question: question.respond(SKIP),
    "cancel": Question.cancel,
    "delete": delete,
}


@pytest.mark.scenario("A9", "F5", "F7")
@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.parametrize("newer", [True, False])
def test_what_ends_one_bundle_leaves_the_other_as_it_was(asked_: Question, end: str, newer: bool) -> None:
    asked_.stage.runner.on_cancel = asked_.stage.runner.ignore
    one, other = (asked_, ask_another(asked_)) if not newer else (ask_another(asked_), asked_)
    waiters = {question.pending_id: question.waits() for question in (one, other)}
    before = list(Message.objects.bundle(other.pending_id).values())
    ENDINGS[end](one)
    assert one.pending_id not in asked_.stage.listed()
    waiters[one.pending_id].ended()
    assert list(Message.objects.bundle(other.pending_id).values()) == before
    assert other.state == "active_live"
    assert waiters[other.pending_id].waits
    assert asked_.stage.pending_action() == "clarification"
    assert other.respond().short == (200, True)
    assert waiters[other.pending_id].ended().code == "answered"


@pytest.mark.scenario("A9", "F6")
def test_neither_a_skipped_nor_its_older_sibling_comes_back_with_the_turn_s_end(asked_: Question) -> None:
    newer = ask_another(asked_)
    agent = newer.waits()
    assert newer.respond(SKIP).short == (200, True)
    agent.ended()
    asked_.detach()
    assert newer.statuses == ["rejected", "rejected"]
    assert asked_.stage.listed() == [asked_.pending_id]
    asked_.respond(SKIP)
    assert asked_.stage.listed() == []
    assert asked_.stage.pending_action() is None


@pytest.mark.scenario("R40", "F7", "L6")
def test_deleting_the_last_pending_row_ends_its_bundle(running_session: Stage) -> None:
    question = running_session.ask(2)
    agent = question.waits()
    delete(question, 0)
    assert agent.waits
    assert (question.state, running_session.pending_action()) == ("active_live", "clarification")
    delete(question, 0)
    assert (agent.ended().code, running_session.pending_action()) == ("cancelled", None)
    assert not running_session.listed()


@pytest.mark.scenario("R40")
def test_the_questions_left_after_a_deletion_are_answered_alone(running_session: Stage) -> None:
    question = running_session.ask(2)
    agent = question.waits()
    delete(question, 0)
    got = question.respond({"answers": [{"question_id": "q2", "selected_options": ["q2_a"]}]})
    assert got.short == (200, True)
    assert agent.ended().response == got.body["response"]


@pytest.mark.scenario("R40", "A9")
def test_deleting_a_settled_row_ends_nothing(running_session: Stage) -> None:
    question = running_session.ask(2)
    Message.objects.filter(pk=question.rows[0].pk).update(metadata={**question.rows[0].metadata, "status": "answered"})
    agent = question.waits()
    delete(question, 0)
    assert agent.waits
    assert question.state == "active_live"


@pytest.mark.scenario("F5", "F7", "R11")
def test_cancel_needs_a_waiter_and_an_active_bundle(asked_: Question) -> None:
    agent = asked_.waits()
    assert asked_.cancel().status == 200
    assert (agent.ended().code, asked_.statuses, asked_.stage.pending_action()) == ("cancelled", ["cancelled"], None)
    unknown = Question(asked_.stage, "unknown").cancel()
    assert asked_.cancel() == unknown
    assert unknown.short == (404, "not_found")
    assert asked_.respond().short == (409, "not_active")


@pytest.mark.scenario("F5")
def test_cancelling_a_detached_question_is_a_404_and_changes_nothing(detached_: Question) -> None:
    assert detached_.cancel().short == (404, "not_found")
    assert detached_.state == "active_detached"


@pytest.mark.scenario("F5", "R11", "C5")
def test_cancel_after_an_answer_is_a_409_and_changes_nothing(asked_: Question) -> None:
    agent = asked_.waits()
    asked_.respond()
    said = agent.ended().response
    before = list(Message.objects.bundle(asked_.pending_id).values())
    assert asked_.cancel().short == (409, "not_active")
    assert list(Message.objects.bundle(asked_.pending_id).values()) == before
    assert asked_.respond().body["response"] == said


@pytest.mark.scenario("F7", "R33", "M2")
@pytest.mark.parametrize("end", ["skip", "delete"])
def test_the_step_that_a_question_held_back_is_made_up_when_it_ends(detached_: Question, end: str) -> None:
    task = detached_.stage.task
    task.refresh_from_db()
    assert task.state == TaskState.IN_PROGRESS
    ENDINGS[end](detached_)
    background.settle()
    task.refresh_from_db()
    assert task.state == TaskState.REVIEW
    assert not WaiterLease.objects.exists()
