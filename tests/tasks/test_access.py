"""Who may do what over REST: roles, tokens, and refusals that tell nothing (group H)."""

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from tasks import tokens
from tasks.models import Membership, Task, Token, TokenKind, TokenScope
from tests.tasks.conftest import Caller, Scene, add_session, add_task

ROLE_OF = {"owner": "write", "admin": "write", "answerer": "read", "viewer": "read", "stranger": "none"}
READS = ("/workspaces/{workspace}", "/workspaces/{workspace}/board", "/tasks/{task}", "/tasks/{task}/task-sessions")
WRITES: tuple[tuple[str, str, Any], ...] = (
    ("PATCH", "/workspaces/{workspace}", {"name": "new"}),
    ("PATCH", "/tasks/{task}", {"title": "new"}),
    ("POST", "/tasks/{task}/move", {"state": "in_progress"}),
    ("POST", "/tasks/{task}/task-sessions", {"agent": "demo"}),
    ("POST", "/tasks", {"workspace": "{workspace}", "title": "more"}),
    ("POST", "/task-sessions/{session}/complete", {}),
    ("DELETE", "/tasks/{task}", None),
    ("DELETE", "/workspaces/{workspace}", None),
)


def place(text: Any, scene: Scene) -> Any:
    ids = {"workspace": scene.workspace.pk, "task": scene.task.pk, "session": scene.session.pk}
    if isinstance(text, dict):
        return {key: place(value, scene) for key, value in text.items()}
    return text.format(**ids) if isinstance(text, str) else text


@pytest.mark.scenario("H3")
@pytest.mark.parametrize("name", ROLE_OF)
def test_lists_and_single_reads_agree_for_each_role(scene: Scene, name: str) -> None:
    may = ROLE_OF[name] != "none"
    for path in (*READS, "/task-sessions/{session}"):
        assert scene[name]("GET", place(path, scene)).status_code == (200 if may else 404), path
    boot = scene[name].ok("GET", "/boot")
    assert [len(boot[key]) for key in ("workspaces", "tasks", "sessions")] == [int(may)] * 3
    for path in ("/workspaces", "/tasks", f"/tasks?workspace={scene.workspace.pk}"):
        assert len(scene[name].ok("GET", path)["results"]) == int(may), path


@pytest.mark.scenario("H3", "R43")
@pytest.mark.parametrize("name", ROLE_OF)
@pytest.mark.parametrize(("method", "path", "body"), WRITES, ids=lambda value: str(value)[:30])
def test_only_owner_and_admins_write(scene: Scene, name: str, method: str, path: str, body: Any) -> None:
    got = scene[name](method, place(path, scene), place(body, scene))
    expected = {"none": 404, "read": 403}.get(ROLE_OF[name], 200)
    assert (got.status_code if got.status_code >= 300 else 200) == expected, got.content
    if expected == 403:
        assert got.json()["code"] == "forbidden"  # type: ignore[attr-defined]


@pytest.mark.scenario("H3")
@pytest.mark.parametrize("workspace", ["none", "dangling"])
def test_a_task_without_a_workspace_is_seen_by_the_superuser_alone(scene: Scene, workspace: str) -> None:
    task = add_task(None)
    if workspace == "dangling":
        Task.objects.filter(pk=task.pk).update(workspace_id=uuid.uuid4())
    session = add_session(task)
    for name in ROLE_OF:
        assert scene[name]("GET", f"/tasks/{task.pk}").status_code == 404
        assert scene[name]("GET", f"/task-sessions/{session.pk}").status_code == 404
        assert str(task.pk) not in scene[name]("GET", "/tasks").content.decode()
    scene.people["stranger"].is_superuser = True
    scene.people["stranger"].save()
    assert scene["stranger"].ok("GET", f"/tasks/{task.pk}")["id"] == str(task.pk)
    assert str(task.pk) in scene["stranger"]("GET", "/tasks").content.decode()


@pytest.mark.parametrize("path", [*READS, "/task-sessions/{session}"])
def test_foreign_unknown_and_malformed_ids_are_the_same_bytes(scene: Scene, path: str) -> None:
    shapes = ("x", "%00", "%ED%A0%80", "9" * 40, "-1", "null", "{" + "0" * 34 + "}", str(uuid.uuid4()))
    texts = [path.replace("{workspace}", s).replace("{task}", s).replace("{session}", s) for s in shapes]
    answers = {answer(scene["stranger"], text) for text in (place(path, scene), *texts)}
    assert len(answers) == 1
    assert answers.pop()[:2] == (404, b'{"error":"not found","code":"not_found"}')


def answer(caller: Caller, path: str) -> tuple[int, bytes, str]:
    got = caller("GET", path)
    return got.status_code, got.content, str(sorted(got.headers.items()))


def test_an_id_is_found_in_either_spelling_and_no_other(scene: Scene) -> None:
    pk = scene.task.pk
    for text in (str(pk), str(pk).upper(), pk.hex):
        assert scene["viewer"]("GET", f"/tasks/{text}").status_code == 200
    for text in (pk.hex[:4] + "-" + pk.hex[4:8] + "-" + pk.hex[8:12] + "--" + pk.hex[12:], f"{{{pk.hex}}}"):
        assert scene["viewer"]("GET", f"/tasks/{text}").status_code == 404


def test_a_foreign_and_an_unknown_workspace_in_a_body_are_the_same_bytes(scene: Scene) -> None:
    bodies = [{"workspace": str(pk), "title": "t"} for pk in (scene.workspace.pk, uuid.uuid4())]
    answers = {scene["stranger"]("POST", "/tasks", body).content for body in bodies}
    assert answers == {b'{"error":"not found","code":"not_found"}'}
    got = scene["stranger"]("POST", "/tasks", {"workspace": "x", "title": "t"})
    assert got.status_code == 400
    assert list(got.json()["fields"]) == ["workspace"]  # type: ignore[attr-defined]


@pytest.mark.scenario("H5")
def test_a_session_token_reads_its_own_session_and_writes_nothing(scene: Scene) -> None:
    agent = scene["agent"]
    sibling = add_session(scene.task)
    assert agent("GET", f"/task-sessions/{scene.session.pk}").status_code == 200
    assert agent("GET", f"/task-sessions/{sibling.pk}").status_code == 404
    listed = agent.ok("GET", f"/tasks/{scene.task.pk}/task-sessions")["results"]
    assert [one["id"] for one in listed] == [str(scene.session.pk)]
    assert agent.refused("POST", f"/task-sessions/{scene.session.pk}/complete", {}) == (403, "forbidden")
    assert agent.refused("POST", f"/task-sessions/{sibling.pk}/complete", {}) == (404, "not_found")
    assert agent.refused("POST", "/workspaces", {"name": "mine"}) == (403, "forbidden")
    assert agent.ok("GET", "/workspaces")["results"] == []
    assert agent("GET", f"/workspaces/{scene.workspace.pk}").status_code == 404


@pytest.mark.scenario("H5")
def test_a_runner_token_reaches_nothing_over_rest(scene: Scene) -> None:
    for path in (*READS, "/task-sessions/{session}"):
        assert scene["runner"]("GET", place(path, scene)).status_code == 404
    assert scene["runner"].ok("GET", "/tasks")["results"] == []
    assert scene["runner"].ok("GET", "/boot") == {"workspaces": [], "tasks": [], "sessions": []}


@pytest.mark.scenario("H5")
@pytest.mark.parametrize("name", ["owner", "agent", "runner"])
@pytest.mark.parametrize("fault", ["revoked_at", "expires_at"])
def test_a_revoked_or_expired_token_is_a_401(scene: Scene, name: str, fault: str) -> None:
    assert scene[name]("GET", "/tasks").status_code == 200
    mine = Token.objects.filter(digest=tokens.digest(scene[name].token or ""))
    mine.update(**{fault: timezone.now()})
    assert scene[name].refused("GET", "/tasks") == (401, "unauthorized")


@pytest.mark.parametrize("token", [None, "", "x", "kdv_pat_", "kdv_pat_unknown", "kdv_ses_\u00e9"])
def test_no_or_unknown_credentials_are_a_401_on_every_kind_of_route(scene: Scene, token: str | None) -> None:
    for method, path in (("GET", "/tasks"), ("GET", "/tasks/x"), ("POST", "/workspaces"), ("GET", "/boot")):
        got = Caller(token)(method, path, {} if method == "POST" else None)
        assert got.status_code == 401
        assert got.json() == {"error": "valid credentials are needed", "code": "unauthorized"}  # type: ignore[attr-defined]
        assert got.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_of_a_person_who_was_deactivated_is_a_401(scene: Scene) -> None:
    User.objects.filter(username="owner").update(is_active=False)
    assert scene["owner"].refused("GET", "/tasks") == (401, "unauthorized")
    assert scene["viewer"]("GET", "/tasks").status_code == 200


@pytest.mark.parametrize("scope", [TokenScope.READ, TokenScope.ANSWER])
def test_a_token_of_a_smaller_scope_reads_and_does_not_write(scene: Scene, scope: str) -> None:
    caller = Caller(tokens.mint(TokenKind.PERSONAL, user=scene.people["owner"], scope=scope))
    assert caller("GET", f"/tasks/{scene.task.pk}").status_code == 200
    assert caller.refused("PATCH", f"/tasks/{scene.task.pk}", {"title": "x"}) == (403, "forbidden")
    assert caller.refused("POST", "/workspaces", {"name": "x"}) == (403, "forbidden")
    assert caller.refused("POST", "/tasks", {"workspace": str(scene.workspace.pk), "title": "x"}) == (403, "forbidden")


def test_what_was_taken_away_is_gone_at_once(scene: Scene) -> None:
    Membership.objects.filter(user=scene.people["viewer"]).delete()
    assert scene["viewer"]("GET", f"/tasks/{scene.task.pk}").status_code == 404
    assert scene["viewer"].ok("GET", "/boot")["tasks"] == []


def test_a_cookie_needs_the_csrf_header_for_writing(scene: Scene) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(scene.people["owner"])
    assert client.get("/api/v1/tasks").status_code == 200
    url, body = f"/api/v1/tasks/{scene.task.pk}", {"title": "x"}
    got = client.patch(url, body, content_type="application/json")
    assert (got.status_code, got.json()["code"]) == (403, "csrf_failed")
    client.cookies["csrftoken"] = "a" * 32
    got = client.patch(url, body, content_type="application/json", headers={"X-CSRFToken": "a" * 32})
    assert got.status_code == 200


@pytest.mark.scenario("H4")
@pytest.mark.parametrize("name", ["nobody", "stranger", "viewer", "agent", "runner"])
def test_with_authentication_off_nobody_is_denied(scene: Scene, settings: Any, name: str) -> None:
    settings.KANDEV_AUTH = "off"
    for path in (*READS, "/task-sessions/{session}", "/boot"):
        assert scene[name]("GET", place(path, scene)).status_code == 200, path
    for method, path, body in WRITES:
        got = scene[name](method, place(path, scene), place(body, scene))
        assert got.status_code < 300, (method, path, got.content)


@pytest.mark.scenario("H4")
def test_with_authentication_off_a_dead_token_is_anybody_and_the_rest_is_the_same(scene: Scene, settings: Any) -> None:
    settings.KANDEV_AUTH = "off"
    settings.KANDEV_RATE_TOKEN = "1/m"
    for _ in range(3):
        assert Caller("kdv_pat_dead")("GET", f"/tasks/{scene.task.pk}").status_code == 200
    assert Caller().refused("GET", f"/tasks/{uuid.uuid4()}") == (404, "not_found")
    assert Caller().ok("POST", "/workspaces", {"name": "open"})["owner"] is None


def test_no_answer_holds_an_address_or_a_number_of_a_person(scene: Scene) -> None:
    for path in ("/boot", f"/workspaces/{scene.workspace.pk}", f"/workspaces/{scene.workspace.pk}/board"):
        text = scene["viewer"]("GET", path).content.decode()
        assert "@" not in text
        assert "user_id" not in text
