"""The columns of the workflow and the guard before them (M1)."""

from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from tasks import moving, points, registry, revisions
from tasks.models import Event, Task, TaskState, Workspace
from tests.tasks.conftest import Scene, add_question, add_session, close_question
from tests.tasks.racing import together
from turns.models import Message, Turn


def move(scene: Scene, state: str) -> tuple[int, str]:
    got = scene["owner"]("POST", f"/tasks/{scene.task.pk}/move", {"state": state})
    body = got.json()  # type: ignore[attr-defined]
    return got.status_code, body.get("code") or body["state"]


@pytest.mark.parametrize("state", TaskState.values)
def test_a_task_without_a_question_moves_anywhere(scene: Scene, state: str) -> None:
    assert move(scene, state) == (200, state)
    assert Task.objects.get().state == state


@pytest.mark.scenario("M1")
@pytest.mark.parametrize("primary", [True, False])
def test_an_active_question_of_any_session_keeps_the_task(scene: Scene, primary: bool) -> None:
    row = add_question(scene.session if primary else add_session(scene.task))
    assert move(scene, "done") == (409, "pending_input")
    assert move(scene, "todo") == (200, "todo")
    close_question(row)
    assert move(scene, "done") == (200, "done")


@pytest.mark.scenario("M1")
def test_a_question_of_an_older_turn_keeps_nothing(scene: Scene, asked: Message) -> None:
    now = timezone.now()
    Turn.objects.create(session=scene.session, started_at=now, created_at=now)
    assert move(scene, "done") == (200, "done")


@pytest.mark.scenario("M1", "R3")
def test_something_outstanding_keeps_the_task_too(scene: Scene) -> None:
    points.move_blocked.connect(lambda task_id: task_id == scene.task.pk)
    assert move(scene, "done") == (409, "pending_input")


@pytest.mark.scenario("M1")
@pytest.mark.parametrize("where", ["kind", "hook"])
def test_a_guard_that_cannot_be_read_says_no(scene: Scene, monkeypatch: Any, where: str) -> None:
    def broken(*_: Any) -> Any:
        raise DatabaseError("broken")

    if where == "hook":
        points.move_blocked.connect(broken)
    else:
        kind = registry.PendingKind("clarification", 1, broken, "tasks:board", lambda _: {})
        monkeypatch.setattr(registry, "_kinds", {kind.name: kind})
    assert move(scene, "done") == (503, "temporarily_unavailable")
    assert Task.objects.get().state == TaskState.TODO


@pytest.mark.parametrize("state", [None, "", "DONE", "archived", 1, ["done"], {"a": 1}, "done\0"])
def test_a_state_that_is_none_is_a_400(scene: Scene, state: Any) -> None:
    got = scene["owner"]("POST", f"/tasks/{scene.task.pk}/move", {"state": state})
    assert (got.status_code, list(got.json()["fields"])) == (400, ["state"])  # type: ignore[attr-defined]


def test_advancing_happens_from_the_expected_state_alone(scene: Scene) -> None:
    pk, now = scene.task.pk, timezone.now()
    assert not moving.advance(pk, TaskState.IN_PROGRESS, TaskState.REVIEW, now)
    assert moving.advance(pk, TaskState.TODO, TaskState.IN_PROGRESS, now)
    assert not moving.advance(pk, TaskState.TODO, TaskState.IN_PROGRESS, now)
    assert Task.objects.get().state == TaskState.IN_PROGRESS


@pytest.mark.scenario("M1")
def test_a_question_that_appears_at_the_same_moment_either_stops_the_move_or_comes_after_it(real_scene: Scene) -> None:
    order: list[str] = []

    def ask() -> None:
        with transaction.atomic():
            revisions.lock_session(real_scene.session.pk)
            order.append(Task.objects.get().state)
            add_question(real_scene.session)

    result, _ = together(lambda: move(real_scene, "done"), ask)
    assert (result, order) in [((409, "pending_input"), ["todo"]), ((200, "done"), ["done"])]


def test_a_task_that_changes_its_workspace_is_told_to_both(scene: Scene) -> None:
    """Who follows the old one sees it go."""
    other = Workspace.objects.create(name="other", owner=scene.people["owner"])
    scene["owner"].ok("PATCH", f"/tasks/{scene.task.pk}", {"workspace": str(other.pk)})
    told = Event.objects.filter(action="task.updated", task_id=scene.task.pk).order_by("pk")
    assert list(told.values_list("workspace_id", flat=True)) == [scene.workspace.pk, other.pk]
