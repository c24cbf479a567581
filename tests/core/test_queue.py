"""The queue of a session: a person takes back what has not gone out yet, and nothing else."""

from typing import Any

import pytest

from tasks import ending
from tasks.models import SessionState
from tasks.principals import Principal
from tests.support import unguarded
from tests.support.climbing import Stage
from turns import background, draining, removing
from turns.models import Admission, Message


def queued(stage: Stage, content: str, key: str) -> str:
    body = stage.send(content, key).body
    assert body["admission"] == "queued"
    return str(body["message"]["id"])


def prompts(stage: Stage) -> list[str]:
    background.settle()
    return [frame["prompt"] for frame in stage.runner.got("dispatch")][1:]


def owner(stage: Stage) -> Principal:
    return Principal(user=stage.workspace.owner)


def states() -> list[str]:
    return list(Admission.objects.order_by("id").values_list("state", flat=True))[1:]


@pytest.mark.scenario("L7")
def test_a_deleted_message_of_the_queue_is_never_dispatched(running_session: Stage) -> None:
    first, _second = queued(running_session, "one", "k1"), queued(running_session, "two", "k2")
    removing.remove(owner(running_session), first)
    running_session.ready()
    assert prompts(running_session) == ["two"]
    assert states() == ["withdrawn", "sent"]
    assert not Message.objects.filter(pk=first).exists()


def test_a_repeat_of_the_post_puts_nothing_back(running_session: Stage) -> None:
    first = queued(running_session, "one", "k1")
    removing.remove(owner(running_session), first, only_queued=True)
    again = running_session.send("one", "k1")
    assert (again.status, again.body["message"]["id"]) == (200, first)
    running_session.ready()
    assert prompts(running_session) == []


def test_what_went_out_cannot_be_taken_back_but_its_row_can_be_deleted(running_session: Stage) -> None:
    first = queued(running_session, "one", "k1")
    running_session.ready()
    assert prompts(running_session) == ["one"]
    with pytest.raises(removing.NotQueued):
        removing.remove(owner(running_session), first, only_queued=True)
    assert Message.objects.filter(pk=first).exists()
    removing.remove(owner(running_session), first)
    assert states() == ["sent"]


def test_the_workflow_step_that_the_queue_held_back_is_made_up(running_session: Stage) -> None:
    running_session.runner.on_dispatch = running_session.runner.reject
    first = queued(running_session, "one", "k1")
    running_session.ready()
    background.settle()
    assert running_session.fresh().task.state == "in_progress"
    removing.remove(owner(running_session), first, only_queued=True)
    background.settle()
    assert running_session.fresh().task.state == "review"


def test_one_deleted_on_its_way_that_never_ran_does_not_come_back(running_session: Stage) -> None:
    stage = running_session
    first = queued(stage, "one", "k1")

    def delete_then_refuse(frame: dict[str, Any]) -> None:
        with pytest.raises(removing.NotQueued):
            removing.remove(owner(stage), first, only_queued=True)
        removing.remove(owner(stage), first)
        stage.runner.reject(frame)

    stage.runner.on_dispatch = delete_then_refuse
    stage.ready()
    background.settle()
    assert states() == ["withdrawn"]


def test_a_message_that_never_went_out_stays_in_the_transcript_of_an_ended_session(running_session: Stage) -> None:
    first = queued(running_session, "one", "k1")
    ending.end_session(running_session.session.pk, SessionState.CANCELLED)
    background.settle()
    assert Message.objects.get(pk=first).metadata["admission"] == "queued"


def test_taken_back_in_the_gap_of_the_pop_it_does_not_go_out(
    running_session: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any lock: the pop's condition on the state is what decides."""
    stage = running_session
    first = queued(stage, "one", "k1")
    stage.runner.on_dispatch = stage.runner.reject
    with unguarded.no_locks(monkeypatch) as patch:
        unguarded.first(patch, draining, "prompt_order", lambda: removing.remove(owner(stage), first))
        stage.ready()
        background.settle()
    assert prompts(stage) == []
    assert states() == ["withdrawn"]
