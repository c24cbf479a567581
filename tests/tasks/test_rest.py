"""Shapes and behaviour of the REST resources of this layer (contract 3)."""

import json
import uuid
from typing import Any

import pytest
from django.db import DatabaseError
from django.db.models import Q

from tasks import points, registry
from tasks.errors import Unavailable
from tasks.models import Event, Role, Session, SessionState, Task, Workspace
from tests.tasks.conftest import Scene, add_question, add_session, add_task, advance
from turns.models import Message

TASK_KEYS = {
    "id", "workspace", "title", "description", "state", "archived", "primary_session", "pending_action",
    "primary_session_pending_action", "status_summary", "status_summary_revision", "created_at", "updated_at",
}  # fmt: skip
SESSION_KEYS = {
    "id", "task_id", "state", "is_primary", "input_capable", "agent", "pending_action", "pending_action_revision",
    "created_at", "last_activity_at",
}  # fmt: skip
CLEAN = {"revision": 0, "pending_action": None, "primary_session_pending_action": None}


def test_a_workspace_belongs_to_whom_its_creator_names(scene: Scene) -> None:
    post = scene["stranger"]
    assert post.ok("POST", "/workspaces", {"name": "theirs", "owner": "owner"})["owner"] == "owner"
    assert post.ok("POST", "/workspaces", {"name": "nobody's", "owner": None})["owner"] is None
    for wrong in (5, "nobody-of-that-name", ""):
        refused = post("POST", "/workspaces", {"name": "x", "owner": wrong})
        assert refused.status_code == 400
        assert "owner" in json.loads(refused.content)["fields"]


def test_a_workspace_belongs_to_its_creator(scene: Scene) -> None:
    made = scene["stranger"].ok("POST", "/workspaces", {"name": " mine ", "unknown": [1]})
    assert {**made, "id": "", "created_at": ""} == {
        "id": "",
        "name": "mine",
        "owner": "stranger",
        "members": [],
        "created_at": "",
    }
    assert str(uuid.UUID(made["id"])) == made["id"]
    assert made["created_at"].endswith("Z")
    assert scene["stranger"].ok("GET", f"/workspaces/{made['id']}") == made


def test_members_are_replaced_as_a_whole(scene: Scene) -> None:
    path, owner = f"/workspaces/{scene.workspace.pk}", scene["owner"]
    one, two = {"user": "stranger", "role": "viewer"}, {"user": "viewer", "role": "answerer"}
    assert owner.ok("PATCH", path, {"members": [one, two]})["members"] == [one, two]
    assert owner.ok("PATCH", path, {"name": "x"})["members"] == [one, two]
    assert scene["admin"]("GET", path).status_code == 404
    assert owner.ok("PATCH", path, {"members": []})["members"] == []


def test_an_owner_can_be_changed_and_taken_away(scene: Scene) -> None:
    path = f"/workspaces/{scene.workspace.pk}"
    assert scene["admin"].ok("PATCH", path, {"owner": "stranger"})["owner"] == "stranger"
    assert scene["stranger"].ok("PATCH", path, {"owner": None})["owner"] is None
    assert scene["owner"]("GET", path).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"name": "n" * 201}, "name"),
        ({"owner": "nobody at all"}, "owner"),
        ({"owner": 1}, "owner"),
        ({"members": {}}, "members"),
        ({"members": ["owner"]}, "members"),
        ({"members": [{"user": "owner"}]}, "members"),
        ({"members": [{"user": "owner", "role": "king"}]}, "members"),
        ({"members": [{"user": "owner", "role": ["admin"]}]}, "members"),
        ({"members": [{"user": "unknown", "role": "admin"}]}, "members"),
        ({"members": [{"user": "viewer", "role": "admin"}, {"user": "viewer", "role": "viewer"}]}, "members"),
    ],
)
def test_a_wrong_change_of_a_workspace_names_its_field_and_changes_nothing(scene: Scene, body: Any, field: str) -> None:
    path = f"/workspaces/{scene.workspace.pk}"
    before = scene["owner"].ok("GET", path)
    got = scene["owner"]("PATCH", path, body)
    assert got.status_code == 400
    assert list(got.json()["fields"]) == [field]  # type: ignore[attr-defined]
    assert got.json()["code"] == "invalid"  # type: ignore[attr-defined]
    assert scene["owner"].ok("GET", path) == before


def test_a_task_has_the_shape_of_the_contract(scene: Scene) -> None:
    body = {"workspace": str(scene.workspace.pk), "title": "Write", "description": " as it is ", "extra": 1}
    made = scene["owner"].ok("POST", "/tasks", body)
    assert set(made) == TASK_KEYS
    assert (made["workspace"], made["title"], made["description"]) == (body["workspace"], "Write", " as it is ")
    assert (made["state"], made["primary_session"], made["pending_action"]) == ("todo", None, None)
    assert made["status_summary"] == CLEAN
    assert scene["owner"].ok("GET", f"/tasks/{made['id']}") == made


@pytest.mark.scenario("M1")
def test_a_state_may_be_repeated_and_only_a_move_changes_it(scene: Scene) -> None:
    body = {"workspace": str(scene.workspace.pk), "title": "Write"}
    made = scene["owner"].ok("POST", "/tasks", {**body, "state": "todo"})
    path = f"/tasks/{made['id']}"
    scene["owner"].ok("POST", f"{path}/move", {"state": "review"})
    assert scene["owner"].ok("PATCH", path, {"state": "review", "title": "Read"})["title"] == "Read"
    count = Task.objects.count()
    for method, address, said in (("POST", "/tasks", body), ("PATCH", path, {"title": "Other"})):
        for state in ("done", "nowhere", "", 1, None, ["todo"]):
            got = scene["owner"](method, address, {**said, "state": state})
            assert (got.status_code, list(got.json()["fields"])) == (400, ["state"])  # type: ignore[attr-defined]
    kept = scene["owner"].ok("GET", path)
    assert (kept["state"], kept["title"], Task.objects.count()) == ("review", "Read", count)


@pytest.mark.parametrize("name", ["", " ", "\u200b", "\u2060\ufeff"])
def test_a_name_that_nobody_can_see_is_a_400(scene: Scene, name: str) -> None:
    workspace = str(scene.workspace.pk)
    for method, path, body, field in (
        ("POST", "/workspaces", {"name": name}, "name"),
        ("PATCH", f"/workspaces/{workspace}", {"name": name}, "name"),
        ("POST", "/tasks", {"workspace": workspace, "title": name}, "title"),
        ("PATCH", f"/tasks/{scene.task.pk}", {"title": name}, "title"),
        ("POST", f"/tasks/{scene.task.pk}/task-sessions", {"agent": name}, "agent"),
    ):
        got = scene["owner"](method, path, body)
        assert (got.status_code, list(got.json()["fields"])) == (400, [field])  # type: ignore[attr-defined]


def test_an_agent_makes_the_primary_session_and_a_prompt_starts_it(scene: Scene, monkeypatch: Any) -> None:
    given: list[tuple[Session, str, str]] = []
    points.prompt_given.connect(lambda session, prompt, by: given.append((session, prompt, by.pk)))
    body = {"workspace": str(scene.workspace.pk), "title": "t", "agent": "demo", "prompt": " go\n"}
    made = scene["admin"].ok("POST", "/tasks", body)
    session = Session.objects.get(task=made["id"])
    assert made["primary_session"] == str(session.pk)
    assert session.is_primary
    assert [(one.pk, text, by) for one, text, by in given] == [
        (session.pk, " go\n", f"user:{scene.people['admin'].pk}")
    ]


def test_a_task_is_kept_when_its_prompt_cannot_be_admitted(scene: Scene) -> None:
    def refuse(*_: Any) -> None:
        raise Unavailable

    points.prompt_given.connect(refuse)
    body = {"workspace": str(scene.workspace.pk), "title": "t", "agent": "demo", "prompt": "go"}
    made = scene["owner"].ok("POST", "/tasks", body)
    assert made["primary_session"]
    got = scene["owner"]("POST", f"/tasks/{made['id']}/task-sessions", {"agent": "demo", "prompt": "go"})
    assert (got.status_code, got.json()["code"]) == (503, "temporarily_unavailable")  # type: ignore[attr-defined]
    assert Session.objects.filter(task=made["id"]).count() == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "title"),
        ({"title": None}, "title"),
        ({"title": " "}, "title"),
        ({"title": True}, "title"),
        ({"title": 1}, "title"),
        ({"title": "t" * 501}, "title"),
        ({"title": "t", "workspace": None}, "workspace"),
        ({"title": "t", "workspace": 5}, "workspace"),
        ({"title": "t", "workspace": "urn:uuid:" + str(uuid.uuid4())}, "workspace"),
        ({"title": "t", "description": []}, "description"),
        ({"title": "t", "agent": {}}, "agent"),
        ({"title": "t", "agent": "a" * 201}, "agent"),
        ({"title": "t", "prompt": "go"}, "agent"),
        ({"title": "t", "agent": "demo", "prompt": 1}, "prompt"),
    ],
)
def test_a_wrong_new_task_names_its_field(scene: Scene, body: Any, field: str) -> None:
    got = scene["owner"]("POST", "/tasks", {"workspace": str(scene.workspace.pk), **body})
    assert got.status_code == 400
    assert list(got.json()["fields"]) == [field]  # type: ignore[attr-defined]
    assert Task.objects.count() == 1


@pytest.mark.parametrize("body", [[], "text", 1, None, True])
def test_a_body_that_is_no_object_is_a_400(scene: Scene, body: Any) -> None:
    raw = {None: b"null"}.get(body) if not isinstance(body, list) else None
    got = scene["owner"]("POST", "/tasks", raw or body)
    assert got.status_code == 400
    assert got.json()["fields"]  # type: ignore[attr-defined]


def test_a_task_is_edited_field_by_field(scene: Scene) -> None:
    path, owner = f"/tasks/{scene.task.pk}", scene["owner"]
    assert owner.ok("PATCH", path, {"title": "new", "pending_action": "permission"})["title"] == "new"
    assert owner.ok("PATCH", path, {"description": ""})["state"] == "todo"
    second = add_session(scene.task)
    assert owner.ok("PATCH", path, {"primary_session": str(second.pk)})["primary_session"] == str(second.pk)
    assert owner("PATCH", path, {"primary_session": str(uuid.uuid4())}).status_code == 400
    assert owner("PATCH", path, {"archived": "true"}).status_code == 400
    assert Session.objects.filter(task=scene.task, is_primary=True).count() == 1


def test_a_task_goes_to_another_workspace_only_where_its_mover_may_write(scene: Scene) -> None:
    mine = Workspace.objects.create(name="other", owner=scene.people["admin"])
    path, body = f"/tasks/{scene.task.pk}", {"workspace": str(mine.pk)}
    assert scene["owner"].refused("PATCH", path, body) == (404, "not_found")
    assert scene["admin"].ok("PATCH", path, body)["workspace"] == str(mine.pk)
    assert scene["viewer"]("GET", path).status_code == 404


def test_lists_filter_by_workspace_state_and_action(scene: Scene) -> None:
    other = Workspace.objects.create(name="other", owner=scene.people["owner"])
    elsewhere, done = add_task(other), add_task(scene.workspace)
    Task.objects.filter(pk=done.pk).update(state="done")
    add_question(scene.session)
    for query, expected in (
        (f"workspace={other.pk}", [elsewhere]),
        (f"workspace={uuid.uuid4()}", []),
        ("state=done", [done]),
        ("pending_action=clarification", [scene.task]),
        ("pending_action=permission", []),
        ("pending_action=none", [elsewhere, done]),
        ("archived=true", []),
        (f"state=todo&workspace={scene.workspace.pk}", [scene.task]),
    ):
        found = scene["owner"].ok("GET", f"/tasks?{query}")["results"]
        assert [one["id"] for one in found] == [str(task.pk) for task in expected], query


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("workspace=x", "workspace"),
        ("workspace=", "workspace"),
        ("workspace=%00", "workspace"),
        ("state=TODO", "state"),
        ("state=", "state"),
        ("pending_action=question", "pending_action"),
        ("archived=1", "archived"),
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=1e3", "limit"),
        ("limit=%D9%A3", "limit"),
    ],
)
def test_a_wrong_filter_is_a_400_that_names_it(scene: Scene, query: str, field: str) -> None:
    got = scene["owner"]("GET", f"/tasks?{query}")
    assert got.status_code == 400
    assert list(got.json()["fields"]) == [field]  # type: ignore[attr-defined]


def test_sessions_have_the_shape_of_the_contract(scene: Scene) -> None:
    path = f"/tasks/{scene.task.pk}/task-sessions"
    made = scene["owner"].ok("POST", path, {"agent": " demo "})
    assert set(made) == SESSION_KEYS
    assert (made["state"], made["is_primary"], made["agent"]) == ("created", False, "demo")
    assert made["pending_action_revision"] == {"epoch": "0", "sequence": 0}
    assert scene["viewer"].ok("GET", f"/task-sessions/{made['id']}") == made
    assert [one["id"] for one in scene["viewer"].ok("GET", path)["results"]] == [str(scene.session.pk), made["id"]]


def test_one_session_is_primary_at_a_time(scene: Scene) -> None:
    path, owner = f"/tasks/{scene.task.pk}/task-sessions", scene["owner"]
    second = owner.ok("POST", path, {"agent": "demo", "is_primary": True})
    assert [s.pk for s in Session.objects.filter(is_primary=True)] == [uuid.UUID(second["id"])]
    empty = owner.ok("POST", "/tasks", {"workspace": str(scene.workspace.pk), "title": "t"})["id"]
    first = owner.ok("POST", f"/tasks/{empty}/task-sessions", {"agent": "demo"})
    assert first["is_primary"]
    assert owner("POST", path, {"agent": "demo", "is_primary": "yes"}).status_code == 400
    assert owner("POST", path, {"prompt": "go"}).status_code == 400


@pytest.mark.scenario("R41")
@pytest.mark.parametrize("state", SessionState)
def test_a_session_takes_input_while_it_lives_and_a_registered_condition_holds(scene: Scene, state: str) -> None:
    path = f"/task-sessions/{scene.session.pk}"
    Session.objects.update(state=state)
    assert not scene["viewer"].ok("GET", path)["input_capable"]
    points.input_capable.connect(lambda: Q(agent__in=["demo"]))
    live = state in {"created", "running", "waiting_for_input"}
    assert scene["viewer"].ok("GET", path)["input_capable"] is live


@pytest.mark.scenario("R31")
def test_a_session_shows_projection_and_revision(scene: Scene, asked: Message) -> None:
    advance(scene.session)
    shown = scene["viewer"].ok("GET", f"/task-sessions/{scene.session.pk}")
    assert shown["pending_action"] == "clarification"
    assert shown["pending_action_revision"]["sequence"] == 1
    assert shown["pending_action_revision"]["epoch"].isdecimal()


@pytest.mark.scenario("I6")
@pytest.mark.parametrize("fault", [DatabaseError("broken"), KeyError("broken")])
def test_a_projection_that_fails_is_an_error_and_never_an_empty_owner(
    scene: Scene, monkeypatch: Any, fault: Exception
) -> None:
    def broken(_: Any) -> Any:
        raise fault

    kind = registry.PendingKind("clarification", 1, broken, "tasks:board", lambda _: {})
    monkeypatch.setattr(registry, "_kinds", {kind.name: kind})
    paths = (f"/tasks/{scene.task.pk}/task-sessions", f"/task-sessions/{scene.session.pk}", "/boot", "/tasks")
    for path in paths:
        got = scene["viewer"]("GET", path)
        assert got.status_code == 500, path
        assert got.json() == {  # type: ignore[attr-defined]
            "error": "the pending actions could not be read",
            "code": "projection_failed",
            "retryable": True,
        }


def test_the_board_has_every_column_and_boot_everything_to_start(scene: Scene, asked: Message) -> None:
    archived = add_task(scene.workspace)
    scene["owner"].ok("PATCH", f"/tasks/{archived.pk}", {"archived": True})
    board = scene["viewer"].ok("GET", f"/workspaces/{scene.workspace.pk}/board")
    assert [column["state"] for column in board["columns"]] == ["todo", "in_progress", "review", "done"]
    assert [[task["id"] for task in column["tasks"]] for column in board["columns"]] == [
        [str(scene.task.pk)],
        [],
        [],
        [],
    ]
    boot = scene["viewer"].ok("GET", "/boot")
    assert boot["workspaces"] == [board["workspace"]]
    assert boot["tasks"] == board["columns"][0]["tasks"]
    assert boot["tasks"][0]["pending_action"] == "clarification"
    assert [set(one) for one in boot["sessions"]] == [SESSION_KEYS]


def test_an_icon_comes_from_any_session_and_says_whether_it_is_the_primary_one(scene: Scene) -> None:
    question = add_session(scene.task)
    add_question(question)
    task = scene["viewer"].ok("GET", f"/tasks/{scene.task.pk}")
    assert (task["pending_action"], task["primary_session_pending_action"]) == ("clarification", None)


@pytest.mark.parametrize("state", [SessionState.WAITING, SessionState.COMPLETED])
def test_a_state_is_no_question(scene: Scene, state: str) -> None:
    if state == SessionState.COMPLETED:
        add_question(scene.session)
    Session.objects.update(state=state)
    assert scene["viewer"].ok("GET", f"/tasks/{scene.task.pk}")["pending_action"] is None


def test_addresses_that_lead_nowhere_and_wrong_methods_have_the_shape_of_an_error(scene: Scene) -> None:
    for path in ("/api/", "/api/v1/", "/api/v1/tasks/", "/api/v1/nothing", "/api/v2/tasks", "/api/v1/tasks/a/b/c"):
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            got = scene["owner"](method, path)
            assert (got.status_code, got.content) == (404, b'{"error":"not found","code":"not_found"}'), (method, path)
    got = scene["owner"]("PUT", "/tasks", {})
    assert (got.status_code, got.json()["code"]) == (405, "method_not_allowed")  # type: ignore[attr-defined]
    assert scene["owner"]("OPTIONS", "/tasks").status_code == 405
    got = scene["owner"]("POST", "/tasks", b"a=b", CONTENT_TYPE="application/x-www-form-urlencoded")
    assert set(got.json()) >= {"error", "code"}  # type: ignore[attr-defined]


def test_changes_of_a_task_are_told(scene: Scene) -> None:
    scene["owner"].ok("PATCH", f"/tasks/{scene.task.pk}", {"title": "new"})
    scene["owner"].ok("POST", f"/tasks/{scene.task.pk}/move", {"state": "done"})
    told = [(event.action, event.payload) for event in Event.objects.all()]
    assert told == [
        ("task.updated", {"task_id": str(scene.task.pk), "state": "todo"}),
        ("task.updated", {"task_id": str(scene.task.pk), "state": "done"}),
    ]


def test_the_roles_are_those_of_the_contract() -> None:
    assert list(Role.values) == ["viewer", "answerer", "admin"]
