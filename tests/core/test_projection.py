"""The projection and its revision (I1, I2, I7, I8, R31)."""

import json
from typing import Any

import pytest

from clarifications import restoring
from kandev import notifications
from tasks import ending, instances
from tasks.models import Event, SessionState
from tests.support.climbing import SKIP, Question, Stage, questions, rest_of
from tests.support.threads import beside
from turns import background
from turns.models import Turn


def revision(stage: Stage) -> tuple[int, int]:
    fresh = stage.fresh()
    return fresh.revision_epoch, fresh.revision_sequence


def told(stage: Stage, action: str) -> list[dict[str, Any]]:
    rows = list(Event.objects.filter(task_id=stage.task.pk, action=action).order_by("id"))
    return [json.loads(made.text)["payload"] for made in notifications.build(rows)]


@pytest.mark.scenario("I2", "R31")
def test_every_change_of_the_projection_takes_a_greater_revision(running_session: Stage) -> None:
    seen = [revision(running_session)]

    def grows(change: Any) -> None:
        change()
        background.settle()
        seen.append(revision(running_session))
        assert seen[-1] > seen[-2], change

    question = running_session.ask()
    seen.append(revision(running_session))
    assert seen[-1] > seen[-2]
    running_session.runner.on_dispatch = running_session.runner.reject
    question.detach()
    grows(question.respond)  # claimed, reserved, refused: pending again
    running_session.runner.on_dispatch = running_session.runner.accept
    grows(lambda: question.respond(SKIP))
    grows(lambda: running_session.send("again"))
    cancelled, deleted = running_session.ask(), running_session.ask(raw=questions(title="Other"))
    seen.append(revision(running_session))
    grows(cancelled.cancel)
    grows(lambda: rest_of(running_session, "owner")("DELETE", f"/messages/{deleted.rows[0].pk}"))
    grows(lambda: ending.end_session(running_session.session.pk, SessionState.COMPLETED))
    assert len(set(seen)) == len(seen)


@pytest.mark.scenario("I2")
def test_a_starting_process_raises_the_epoch_and_the_sequence_goes_on(running_session: Stage) -> None:
    before = revision(running_session)
    instances.register()
    instances.mark_ready()
    running_session.ask()
    after = revision(running_session)
    assert (after[0], after[1]) == (before[0] + 1, before[1] + 1)


@pytest.mark.scenario("I2", "G2")
def test_a_loser_takes_no_revision(answered_: Question) -> None:
    before = revision(answered_.stage)
    assert answered_.respond().short == (200, False)
    assert revision(answered_.stage) == before


@pytest.mark.scenario("I7", "I1")
def test_a_new_questions_own_event_carries_the_projection_of_now(asked_: Question) -> None:
    stage = asked_.stage
    (added,) = [event for event in told(stage, "session.message.added") if _is_question(event)]
    assert added["pending_action"] == "clarification"
    assert added["pending_action_revision"] == {"epoch": str(revision(stage)[0]), "sequence": revision(stage)[1]}
    assert asked_.cancel().short[0] == 200
    later = [event for event in told(stage, "session.message.added") if _is_question(event)]
    assert [event["pending_action"] for event in later] == [None]


def _is_question(event: dict[str, Any]) -> bool:
    return bool(event["message"]["type"] == "clarification_request")


@pytest.mark.scenario("I8", "A4")
def test_an_attempted_successor_is_hidden_while_the_older_question_is_inert(detached_: Question) -> None:
    stage = detached_.stage
    stage.runner.on_dispatch = stage.runner.ignore
    answer = beside(detached_.respond)
    frame = stage.runner.expect("dispatch", 2)
    shown = Turn.objects.filter(session=stage.session).published().values_list("pk", flat=True)
    assert frame["turn_id"] not in map(str, shown)
    assert frame["turn_id"] not in _turns_over_rest(stage)
    assert (stage.pending_action(), detached_.state, stage.listed()) == (None, "delivery_claimed", [])
    assert stage.runner.accept(frame)
    assert answer.result(10).short == (200, True)
    assert frame["turn_id"] in map(str, shown.all())
    assert frame["turn_id"] in _turns_over_rest(stage)


def _turns_over_rest(stage: Stage) -> list[str]:
    return [turn["id"] for turn in rest_of(stage)("GET", f"/task-sessions/{stage.session.pk}/turns").body["results"]]


@pytest.mark.scenario("I2", "R31", "D3")
def test_a_question_that_comes_back_takes_a_greater_revision_than_while_it_was_gone(detached_: Question) -> None:
    """Who was told in between that nothing is pending must not take that for newer than what is true again."""
    stage, between = detached_.stage, list[tuple[int, int]]()

    def refuse(frame: dict[str, Any]) -> None:
        between.append(revision(stage))
        stage.runner.reject(frame)

    stage.runner.on_dispatch = refuse
    assert detached_.respond().status == 503
    assert detached_.state == "active_detached"
    assert between
    assert revision(stage) > max(between)


@pytest.mark.scenario("I2", "R31", "D3")
def test_so_it_does_when_no_runner_was_there_at_all(detached_: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    stage, between, restore = detached_.stage, list[tuple[int, int]](), restoring.restore

    def look(claim_id: Any) -> bool:
        between.append(revision(stage))
        assert stage.pending_action() is None
        return restore(claim_id)

    monkeypatch.setattr(restoring, "restore", look)
    stage.runner.disconnect()
    assert detached_.respond().status == 503
    assert detached_.state == "active_detached"
    assert revision(stage) > max(between)
