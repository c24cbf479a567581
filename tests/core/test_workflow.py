"""What a question holds back (M1, M2, R3, R33)."""

from typing import Any

import pytest

from tasks import ending, moving
from tasks.errors import Unavailable
from tasks.models import SessionState, Task
from tests.support.climbing import SKIP, Question, Stage, rest_of, sibling
from turns import background, completing
from turns.models import Turn


def state(stage: Stage) -> str:
    background.settle()
    return Task.objects.values_list("state", flat=True).get(pk=stage.task.pk)


def move(stage: Stage, to: str) -> tuple[int, Any]:
    return rest_of(stage, "owner")("POST", f"/tasks/{stage.task.pk}/move", {"state": to}).short


@pytest.mark.scenario("M1")
@pytest.mark.parametrize("detached", [True, False])
@pytest.mark.parametrize("to", ["todo", "review", "done"])
def test_an_active_question_keeps_its_task_in_place(asked_: Question, detached: bool, to: str) -> None:
    if detached:
        asked_.detach()
    assert move(asked_.stage, to) == (409, "pending_input")
    assert state(asked_.stage) == "in_progress"


@pytest.mark.scenario("M1", "A2")
def test_a_question_that_is_history_holds_nothing(detached_: Question) -> None:
    stage = detached_.stage
    stage.send("newer")
    stage.ready()
    assert state(stage) == "review"
    assert rest_of(stage, "owner")("POST", f"/tasks/{stage.task.pk}/move", {"state": "done"}).status == 200


@pytest.mark.scenario("M1")
def test_a_question_of_any_session_of_the_task_blocks(asked_: Question) -> None:
    other = sibling(asked_.stage)
    other.ready()
    assert state(asked_.stage) == "in_progress"
    assert move(asked_.stage, "done") == (409, "pending_input")


@pytest.mark.scenario("M1")
def test_a_guard_that_cannot_read_says_no(running_session: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise RuntimeError("cannot read")

    monkeypatch.setattr("tasks.points.move_blocked.run", fail)
    with pytest.raises(Unavailable):
        moving.is_blocked(running_session.task.pk)
    assert move(running_session, "done") == (503, "temporarily_unavailable")


@pytest.mark.scenario("M2")
def test_a_turn_that_completes_without_a_question_moves_its_task_on(running_session: Stage) -> None:
    assert state(running_session) == "in_progress"
    running_session.ready()
    assert state(running_session) == "review"
    assert Turn.objects.get().completion_handled


@pytest.mark.scenario("M2", "R33")
@pytest.mark.parametrize("end", ["skip", "answer"])
def test_a_step_that_a_question_held_back_follows_its_end(detached_: Question, end: str) -> None:
    stage = detached_.stage
    assert state(stage) == "in_progress"
    detached_.respond(SKIP if end == "skip" else None)
    if end == "answer":
        assert state(stage) == "in_progress"
        stage.ready()
    assert state(stage) == "review"


@pytest.mark.scenario("M2", "R33")
def test_a_step_is_made_up_only_when_the_last_question_is_over(asked_: Question) -> None:
    from tests.core.test_apart import ask_another

    other = ask_another(asked_)
    asked_.detach()
    asked_.respond(SKIP)
    assert state(asked_.stage) == "in_progress"
    other.respond(SKIP)
    assert state(asked_.stage) == "review"


@pytest.mark.scenario("R33", "M2")
@pytest.mark.parametrize("kind", ["cancelled", "failed"])
def test_a_turn_that_did_not_end_well_never_moves_its_task(asked_: Question, kind: str) -> None:
    stage = asked_.stage
    stage.says(kind, error="oops", fatal=False)
    assert state(stage) == "in_progress"
    asked_.respond(SKIP)
    assert state(stage) == "in_progress"


@pytest.mark.scenario("R33", "F7")
@pytest.mark.parametrize(
    ("end", "expected"), [("completed", "review"), ("failed", "in_progress"), ("cancelled", "in_progress")]
)
def test_a_session_that_ends_makes_a_held_step_up_only_when_it_completed(
    detached_: Question, end: str, expected: str
) -> None:
    ending.end_session(detached_.stage.session.pk, SessionState(end))
    assert state(detached_.stage) == expected


@pytest.mark.scenario("R3", "M2", "L7")
def test_a_completed_turn_with_a_queue_behind_it_moves_nothing_yet(running_session: Stage) -> None:
    running_session.send("more", "k")
    running_session.ready()
    assert state(running_session) == "in_progress"
    running_session.ready()
    assert state(running_session) == "review"


@pytest.mark.scenario("R3", "M1")
def test_an_answer_under_way_keeps_the_task_where_it_is(detached_: Question) -> None:
    runner, seen = detached_.stage.runner, list[tuple[int, Any]]()

    def look(frame: dict[str, Any]) -> None:
        seen.append(move(detached_.stage, "done"))
        runner.accept(frame)

    runner.on_dispatch = look
    detached_.respond()
    assert seen == [(409, "pending_input")]


@pytest.mark.scenario("M2", "R33")
def test_judging_again_moves_nothing_twice(running_session: Stage) -> None:
    stage = running_session
    stage.ready()
    assert state(stage) == "review"
    Task.objects.update(state="in_progress")
    completing.judge(stage.task.pk)
    assert state(stage) == "in_progress"


@pytest.mark.scenario("M2", "F7", "R33")
@pytest.mark.parametrize("asks", [True, False])
def test_a_queue_that_an_ended_session_left_behind_holds_nothing_back(running_session: Stage, asks: bool) -> None:
    stage = running_session
    if asks:
        stage.ask()
    stage.send("left behind", "k")
    stage.runner.on_dispatch = stage.runner.reject
    stage.ready()
    assert state(stage) == "in_progress"
    ending.end_session(stage.session.pk, SessionState.COMPLETED)
    assert state(stage) == "review"


@pytest.mark.scenario("M1", "R3")
def test_an_answer_under_way_in_another_session_keeps_the_task_where_it_is(detached_: Question) -> None:
    other = sibling(detached_.stage)
    question, seen = other.ask().detach(), list[tuple[int, Any]]()
    detached_.respond(SKIP)

    def look(frame: dict[str, Any]) -> None:
        seen.append(move(other, "done"))
        other.runner.accept(frame)

    other.runner.on_dispatch = look
    question.respond()
    assert seen == [(409, "pending_input")]


@pytest.mark.scenario("M2", "R33")
def test_the_step_of_another_session_is_made_up_as_well(detached_: Question) -> None:
    """The primary session's question held the other one's step back; the primary itself never completes a turn."""
    stage, other = detached_.stage, sibling(detached_.stage)
    Turn.objects.filter(session=stage.session).update(end_reason="cancelled")
    other.ready()
    assert state(stage) == "in_progress"
    assert detached_.respond(SKIP).status == 200
    assert state(stage) == "review"
