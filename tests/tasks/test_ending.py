"""Sessions end once, and whatever hangs on them is told (A7, F3, B23)."""

import uuid
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from tasks import creating, deleting, ending, points
from tasks.errors import KandevError, NotFound, SessionEnded
from tasks.models import Event, Session, SessionState, Task, Workspace
from tests.tasks.conftest import Scene, add_question, add_session, add_task
from tests.tasks.racing import beside, together

ENDS = {"complete": "completed", "fail": "failed", "cancel": "cancelled"}


@pytest.mark.parametrize("verb", ENDS)
def test_a_session_ends_and_its_question_with_it(real_scene: Scene, verb: str) -> None:
    add_question(real_scene.session)
    path = f"/task-sessions/{real_scene.session.pk}"
    before = real_scene["owner"].ok("GET", path)
    assert before["pending_action"] == "clarification"
    shown = real_scene["owner"].ok("POST", f"{path}/{verb}")
    assert (shown["state"], shown["pending_action"], shown["input_capable"]) == (ENDS[verb], None, False)
    assert shown["pending_action_revision"]["sequence"] == before["pending_action_revision"]["sequence"] + 1
    assert shown["last_activity_at"] > before["last_activity_at"]
    assert real_scene["owner"].ok("GET", f"/tasks/{real_scene.task.pk}")["pending_action"] is None


def test_the_same_end_again_is_a_no_op_and_another_end_a_409(real_scene: Scene) -> None:
    path, owner = f"/task-sessions/{real_scene.session.pk}", real_scene["owner"]
    first = owner.ok("POST", f"{path}/complete", {})
    assert owner.ok("POST", f"{path}/complete", {}) == first
    assert owner.refused("POST", f"{path}/cancel", {}) == (409, "session_unavailable")
    assert owner.ok("GET", path) == first


def test_one_of_two_different_ends_at_once_wins(real_scene: Scene) -> None:
    pk = real_scene.session.pk
    results = together(
        lambda: ending.end_session(pk, SessionState.COMPLETED), lambda: ending.end_session(pk, SessionState.CANCELLED)
    )
    assert sorted(map(type, results), key=str) == sorted([bool, SessionEnded], key=str)
    assert Session.objects.get(pk=pk).revision_sequence == 1


def test_two_equal_ends_at_once_are_one(real_scene: Scene) -> None:
    pk = real_scene.session.pk
    assert sorted(together(*[lambda: ending.end_session(pk, SessionState.FAILED)] * 4)) == [False, False, False, True]


@pytest.mark.scenario("R30")
def test_the_turn_ends_inside_the_transaction_and_the_questions_after_it(real_scene: Scene) -> None:
    seen: list[tuple[str, bool, str]] = []

    def look(name: str) -> None:
        committed = beside(lambda: Session.objects.get(pk=real_scene.session.pk).state)
        seen.append((name, transaction.get_connection().in_atomic_block, committed))

    points.session_ending.connect(lambda session, now: look("ending"))
    points.session_ended.connect(lambda session_id, now: look("ended"))
    ending.end_session(real_scene.session.pk, SessionState.COMPLETED)
    assert seen == [("ending", True, "running"), ("ended", False, "completed")]


@pytest.mark.scenario("A7", "R30")
def test_an_expiry_that_fails_leaves_the_end_standing_and_no_active_question(real_scene: Scene) -> None:
    ran: list[uuid.UUID] = []

    def fail(*_: Any) -> None:
        raise RuntimeError("expiry failed")

    points.session_ended.connect(fail)
    points.session_ended.connect(lambda session_id, now: ran.append(session_id))
    add_question(real_scene.session)
    shown = real_scene["owner"].ok("POST", f"/task-sessions/{real_scene.session.pk}/cancel")
    assert (shown["state"], shown["pending_action"]) == ("cancelled", None)
    assert ran == [real_scene.session.pk]
    assert real_scene["owner"].ok("GET", "/boot")["tasks"][0]["pending_action"] is None


def test_an_end_whose_turn_cannot_be_ended_did_not_happen(real_scene: Scene) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("cannot")

    points.session_ending.connect(fail)
    got = real_scene["owner"]("POST", f"/task-sessions/{real_scene.session.pk}/cancel")
    assert got.status_code == 500
    assert Session.objects.get().state == SessionState.RUNNING


def ended() -> list[uuid.UUID]:
    told: list[uuid.UUID] = []
    points.session_ended.connect(lambda session_id, now: told.append(session_id))
    return told


def test_deleting_a_task_ends_its_sessions_and_tells_it(real_scene: Scene) -> None:
    told, task = ended(), real_scene.task
    over = add_session(task, state=SessionState.COMPLETED)
    add_question(real_scene.session)
    assert real_scene["owner"]("DELETE", f"/tasks/{task.pk}").status_code == 204
    assert told == [real_scene.session.pk]
    assert not Task.objects.exists()
    assert not Session.objects.filter(pk__in=[over.pk, real_scene.session.pk]).exists()
    told_last = Event.objects.latest("pk")
    assert (told_last.action, told_last.payload) == ("task.deleted", {"task_id": str(task.pk)})
    assert told_last.workspace_id == real_scene.workspace.pk
    assert real_scene["owner"].refused("DELETE", f"/tasks/{task.pk}") == (404, "not_found")


def test_archiving_a_task_cancels_its_sessions_and_takes_it_off_the_board(real_scene: Scene) -> None:
    told, path, owner = ended(), f"/tasks/{real_scene.task.pk}", real_scene["owner"]
    add_question(real_scene.session)
    shown = owner.ok("PATCH", path, {"archived": True})
    assert (shown["archived"], shown["pending_action"]) == (True, None)
    assert told == [real_scene.session.pk]
    assert owner.ok("GET", f"/task-sessions/{real_scene.session.pk}")["state"] == "cancelled"
    assert owner.ok("GET", "/tasks")["results"] == []
    assert [one["id"] for one in owner.ok("GET", "/tasks?archived=true")["results"]] == [str(real_scene.task.pk)]
    assert owner.refused("POST", f"{path}/task-sessions", {"agent": "demo"}) == (409, "task_archived")
    assert owner.ok("PATCH", path, {"archived": True}) == shown
    assert owner.ok("GET", "/boot")["sessions"] == []
    before = Event.objects.filter(action="task.updated").count()
    assert owner.ok("PATCH", path, {"archived": False})["archived"] is False
    assert Event.objects.filter(action="task.updated").count() == before + 1
    assert len(owner.ok("GET", "/boot")["sessions"]) == 1
    assert owner("POST", f"{path}/task-sessions", {"agent": "demo"}).status_code == 201


def test_deleting_a_workspace_deletes_its_tasks_and_no_others(real_scene: Scene) -> None:
    told = ended()
    other = Workspace.objects.create(name="other", owner=real_scene.people["owner"])
    kept = add_task(other)
    second = add_session(add_task(real_scene.workspace))
    assert real_scene["admin"]("DELETE", f"/workspaces/{real_scene.workspace.pk}").status_code == 204
    assert set(told) == {real_scene.session.pk, second.pk}
    assert [task.pk for task in Task.objects.all()] == [kept.pk]
    assert [one["id"] for one in real_scene["owner"].ok("GET", "/workspaces")["results"]] == [str(other.pk)]


def test_a_session_that_is_born_during_a_deletion_is_ended_as_well(real_scene: Scene) -> None:
    told, born = ended(), list[uuid.UUID]()

    def give_birth(*_: Any) -> None:
        if not born:
            born.append(beside(lambda: creating.create_session(None, real_scene.task.pk, "demo").pk))  # type: ignore[arg-type]

    points.session_ended.connect(give_birth)
    deleting.delete_task(real_scene.task.pk)
    assert told == [real_scene.session.pk, *born]
    assert not Session.objects.exists()


def test_creating_in_a_workspace_that_is_being_deleted_leaves_nothing_dangling(real_scene: Scene) -> None:
    pk, owner = real_scene.workspace.pk, real_scene["owner"]
    body = {"workspace": str(pk), "title": "t", "agent": "demo"}
    results = together(
        lambda: deleting.delete_workspace(pk), *[lambda: owner("POST", "/tasks", body).status_code for _ in range(6)]
    )
    assert results[0] is None
    assert set(results[1:]) <= {201, 404}
    assert not Task.objects.exists()


def test_many_ways_to_end_at_once_end_it_once_and_nothing_is_a_500(real_scene: Scene) -> None:
    told, task, owner = ended(), real_scene.task, real_scene["owner"]
    sessions = [real_scene.session, *(add_session(task) for _ in range(3))]
    calls: list[tuple[str, str, Any]] = [("POST", f"/task-sessions/{one.pk}/cancel", {}) for one in sessions]
    calls += [("PATCH", f"/tasks/{task.pk}", {"archived": True})] * 2
    calls += [("POST", f"/tasks/{task.pk}/move", {"state": "done"})]
    assert set(together(*(partial(lambda call: owner(*call).status_code, call) for call in calls))) == {200}
    assert sorted(told, key=str) == sorted((one.pk for one in sessions), key=str)


def test_what_is_gone_is_not_found(db: None) -> None:
    for call in (
        lambda: ending.end_session(uuid.uuid4(), SessionState.FAILED),
        lambda: deleting.delete_task(uuid.uuid4()),
        lambda: deleting.archive_task(uuid.uuid4()),
        lambda: deleting.delete_workspace(uuid.uuid4()),
    ):
        with pytest.raises(NotFound) as caught:
            call()
        assert isinstance(caught.value, KandevError)


def test_one_primary_session_stays_when_many_are_made_at_once(real_scene: Scene) -> None:
    path, body = f"/tasks/{real_scene.task.pk}/task-sessions", {"agent": "demo", "is_primary": True}
    results = together(*[lambda: real_scene["owner"]("POST", path, body).status_code] * 4)
    assert set(results) <= {201, 503}
    assert 201 in results
    assert Session.objects.filter(task=real_scene.task, is_primary=True).count() == 1
