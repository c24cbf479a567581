"""The cached summary follows the rule by compare-and-set (I1, I3, I4, I5)."""

from typing import Any

import pytest
from django.db import DatabaseError

from tasks import events, summaries
from tasks.models import Event, Task
from tests.tasks.conftest import Scene, add_question, add_task, close_question
from tests.tasks.racing import beside, together
from turns.models import Message

OPEN = {"pending_action": "clarification", "primary_session_pending_action": "clarification"}
CLEAN = {"pending_action": None, "primary_session_pending_action": None}


def shown(scene: Scene) -> Any:
    return scene["viewer"].ok("GET", "/tasks")["results"][0]


@pytest.mark.scenario("I3")
@pytest.mark.parametrize("path", ["/tasks", "/boot", "/workspaces/{workspace}/board"])
def test_reading_repairs_a_stale_summary_one_revision_up_and_leaves_the_rest(
    scene: Scene, asked: Message, path: str
) -> None:
    Task.objects.update(summary={"colour": "red", "pending_action": None}, summary_revision=7, description="d")
    before = Task.objects.values("title", "description", "state", "updated_at").get()
    scene["viewer"].ok("GET", path.format(workspace=scene.workspace.pk))
    task = shown(scene)
    assert task["status_summary"] == {"colour": "red", **OPEN, "revision": 8}
    assert Task.objects.values("title", "description", "state", "updated_at").get() == before
    told = [(event.action, event.payload) for event in Event.objects.all()]
    assert told == [
        ("task.summary.updated", {"task_id": str(scene.task.pk), "summary": task["status_summary"]}),
    ]


@pytest.mark.scenario("I3")
def test_no_change_takes_no_revision_and_no_query(scene: Scene, asked: Message, django_assert_num_queries: Any) -> None:
    assert [shown(scene)["status_summary"]["revision"] for _ in range(3)] == [1, 1, 1]
    tasks = list(Task.objects.with_pending())
    with django_assert_num_queries(0):
        summaries.repair(tasks)
    assert Event.objects.count() == 1


@pytest.mark.scenario("I1")
def test_an_event_only_causes_a_fresh_read(scene: Scene) -> None:
    row = add_question(scene.session)
    summaries.refresh(scene.task.pk)
    close_question(row)
    for _ in range(2):
        refreshed = summaries.refresh(scene.task.pk)
        assert refreshed is not None
        assert summaries.wire(refreshed) == {**CLEAN, "revision": 2}


@pytest.mark.scenario("I1", "I4")
def test_a_refresh_that_read_early_and_writes_late_does_not_leave_the_older_verdict(
    real_scene: Scene, monkeypatch: Any
) -> None:
    """It read "clarification"; before its write the question closes and another refresh finds nothing to change."""
    row, store = add_question(real_scene.session), summaries._store

    def late(task: Task) -> bool:
        monkeypatch.setattr(summaries, "_store", store)
        close_question(row)
        assert beside(lambda: summaries.refresh(task.pk)).summary_revision == 0
        return store(task)

    monkeypatch.setattr(summaries, "_store", late)
    summaries.refresh(real_scene.task.pk)
    assert summaries.wire(Task.objects.get()) == {**CLEAN, "revision": 2}


@pytest.mark.scenario("I4")
def test_a_lost_write_is_tried_again_with_what_is_true_then(real_scene: Scene, monkeypatch: Any) -> None:
    add_question(real_scene.session)
    store, lost = summaries._store, list[bool]()

    def losing(task: Task) -> bool:
        if len(lost) < 3:
            seen = task.summary_revision
            Task.objects.filter(pk=task.pk).update(summary={"colour": str(seen)}, summary_revision=seen + 1)
            lost.append(store(task))
            return False
        return store(task)

    monkeypatch.setattr(summaries, "_store", losing)
    task = summaries.refresh(real_scene.task.pk)
    assert lost == [False] * 3
    assert task is not None
    assert summaries.wire(task) == {"colour": "2", **OPEN, "revision": 4}


def test_without_the_guard_the_other_writers_fields_would_be_lost(real_scene: Scene) -> None:
    """The negative control: the same interleaving without the compare does the damage."""
    add_question(real_scene.session)
    task = Task.objects.with_pending().get()
    Task.objects.update(summary={"colour": "red"}, summary_revision=1)
    Task.objects.update(summary={**task.summary, **OPEN}, summary_revision=1)
    assert "colour" not in Task.objects.get().summary


@pytest.mark.scenario("I4")
def test_exhaustion_is_an_error_and_lists_show_the_coarse_action(
    real_scene: Scene, asked_late: Message, monkeypatch: Any
) -> None:
    monkeypatch.setattr(summaries, "_store", lambda task: False)
    with pytest.raises(summaries.SummaryConflict) as caught:
        summaries.refresh(real_scene.task.pk)
    assert caught.value.body() == {
        "error": "the task's summary could not be brought up to date, try again",
        "code": "convergence_failed",
        "retryable": True,
    }
    for task in (shown(real_scene), real_scene["viewer"].ok("GET", "/boot")["tasks"][0]):
        assert (task["status_summary"], task["pending_action"]) == (None, "clarification")
        assert task["status_summary_revision"] == 0


@pytest.fixture
def asked_late(real_scene: Scene) -> Message:
    return add_question(real_scene.session)


@pytest.mark.scenario("I4")
def test_one_summary_that_cannot_be_repaired_spoils_no_other(real_scene: Scene, monkeypatch: Any) -> None:
    add_question(real_scene.session)
    add_task(real_scene.workspace)

    def fail(*_: Any) -> None:
        raise DatabaseError("broken")

    monkeypatch.setattr(events, "emit", fail)
    first, second = real_scene["viewer"].ok("GET", "/tasks")["results"]
    assert first["status_summary"] is None
    assert second["status_summary"] == {**CLEAN, "revision": 0}
    assert Task.objects.filter(summary_revision=0).count() == 2


@pytest.mark.scenario("I5")
def test_a_publication_that_fails_leaves_the_corrected_summary_stored_and_answered(
    real_scene: Scene, monkeypatch: Any
) -> None:
    def fail() -> None:
        raise RuntimeError("no publisher")

    monkeypatch.setattr(events, "poke", fail)
    add_question(real_scene.session)
    assert shown(real_scene)["status_summary"] == {**OPEN, "revision": 1}
    assert Event.objects.get().payload["summary"] == {**OPEN, "revision": 1}


@pytest.mark.scenario("I4")
def test_many_refreshes_at_once_take_one_revision(real_scene: Scene) -> None:
    add_question(real_scene.session)
    results = together(*[lambda: summaries.refresh(real_scene.task.pk)] * 6)
    assert {task.summary_revision for task in results} == {1}
    assert Event.objects.count() == 1


def test_a_summary_that_is_no_object_is_mended(scene: Scene, asked: Message) -> None:
    Task.objects.update(summary=["odd"], summary_revision=3)
    assert shown(scene)["status_summary"] == {**OPEN, "revision": 4}


def test_a_task_that_is_gone_has_no_summary(scene: Scene) -> None:
    pk = scene.task.pk
    Task.objects.filter(pk=pk).delete()
    assert summaries.refresh(pk) is None
