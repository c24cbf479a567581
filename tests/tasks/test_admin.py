"""The admin shows what its person may see and changes state through this layer's functions alone (R43)."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tasks import points, tokens
from tasks.models import Event, Session, SessionState, Task, Token, TokenKind, Workspace
from tests.tasks.conftest import Scene, add_session, add_task, person

MODELS = ("workspace", "task", "session", "token", "instance", "event", "ratewindow")


def client_of(user: User, superuser: bool) -> Client:
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=superuser)
    if not superuser:
        user.user_permissions.set(Permission.objects.filter(content_type__app_label="tasks"))
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.get(pk=user.pk))
    return client


@pytest.fixture
def root(real_scene: Scene) -> Client:
    return client_of(person("root"), superuser=True)


def act(client: Client, model: str, action: str, *rows: Any) -> Any:
    data = {"action": action, "_selected_action": [str(row.pk) for row in rows]}
    return client.post(f"/admin/tasks/{model}/", data, follow=True)


@pytest.mark.parametrize("model", MODELS)
def test_every_list_and_page_opens(root: Client, real_scene: Scene, model: str) -> None:
    Event.objects.create(action="x", task_id=real_scene.task.pk, created_at=real_scene.task.created_at)
    assert root.get(f"/admin/tasks/{model}/").status_code == 200
    rows = {"workspace": real_scene.workspace, "task": real_scene.task, "session": real_scene.session}
    row = rows.get(model) or (Token.objects.first() if model == "token" else None)
    if row is not None:
        assert root.get(f"/admin/tasks/{model}/{row.pk}/change/").status_code == 200


@pytest.mark.parametrize("name", ["complete", "fail", "cancel"])
def test_an_action_ends_sessions_like_any_other_way(root: Client, real_scene: Scene, name: str) -> None:
    told: list[Any] = []
    points.session_ended.connect(lambda session_id, now: told.append(session_id))
    over = add_session(real_scene.task, state=SessionState.FAILED)
    act(root, "session", name, real_scene.session, over)
    assert told == [real_scene.session.pk]
    assert Session.objects.get(pk=over.pk).state == SessionState.FAILED
    assert Session.objects.get(pk=real_scene.session.pk).state.startswith(name)


def test_no_form_changes_or_deletes_a_session(root: Client, real_scene: Scene) -> None:
    url = f"/admin/tasks/session/{real_scene.session.pk}"
    assert root.post(f"{url}/change/", {"state": "completed"}).status_code == 403
    assert root.post(f"{url}/delete/", {"post": "yes"}).status_code == 403
    act(root, "session", "delete_selected", real_scene.session)
    assert Session.objects.get().state == SessionState.RUNNING


def test_a_form_changes_what_a_task_says_and_nothing_else(root: Client, real_scene: Scene) -> None:
    Task.objects.update(summary={"colour": "red"}, summary_revision=3)
    url = f"/admin/tasks/task/{real_scene.task.pk}/change/"
    assert root.post(url, {"title": "new", "description": "d", "state": "done"}).status_code == 302
    task = Task.objects.get()
    assert (task.title, task.state, task.summary, task.summary_revision) == ("new", "todo", {"colour": "red"}, 3)


@pytest.mark.parametrize("how", ["page", "action"])
@pytest.mark.parametrize("model", ["task", "workspace"])
def test_deleting_ends_the_sessions_first(root: Client, real_scene: Scene, model: str, how: str) -> None:
    told: list[Any] = []
    points.session_ended.connect(lambda session_id, now: told.append(session_id))
    row: Any = real_scene.task if model == "task" else real_scene.workspace
    if how == "page":
        assert root.post(f"/admin/tasks/{model}/{row.pk}/delete/", {"post": "yes"}).status_code == 302
    else:
        data = {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"}
        assert root.post(f"/admin/tasks/{model}/", data).status_code == 302
    assert told == [real_scene.session.pk]
    assert not Task.objects.exists()
    assert Workspace.objects.exists() is (model == "task")
    assert Event.objects.latest("pk").action == "task.deleted"


def test_archiving_is_an_action(root: Client, real_scene: Scene) -> None:
    act(root, "task", "archive", real_scene.task)
    assert Task.objects.get().archived_at is not None
    assert Session.objects.get().state == SessionState.CANCELLED


def test_a_token_can_be_revoked_and_its_hash_is_nowhere(root: Client, real_scene: Scene) -> None:
    text = tokens.mint(TokenKind.PERSONAL, user=real_scene.people["viewer"], name="laptop")
    row = Token.objects.get(digest=tokens.digest(text))
    for page in ("/admin/tasks/token/", f"/admin/tasks/token/{row.pk}/change/"):
        content = root.get(page).content.decode()
        assert "laptop" in content
        assert row.digest not in content
    act(root, "token", "revoke", row)
    assert tokens.find(text) is None


def test_staff_sees_and_changes_only_what_it_reaches(real_scene: Scene) -> None:
    other = Workspace.objects.create(name="secret", owner=real_scene.people["owner"])
    hidden = add_session(add_task(other, "covert"))
    client = client_of(real_scene.people["viewer"], superuser=False)
    for model in ("workspace", "task", "session"):
        content = client.get(f"/admin/tasks/{model}/").content.decode()
        assert "secret" not in content
        assert "covert" not in content
        assert str(hidden.pk) not in content
    shown = [client.get(f"/admin/tasks/task/{pk}/change/").status_code for pk in (real_scene.task.pk, hidden.task_id)]
    assert shown == [200, 302]
    assert client.post(f"/admin/tasks/task/{real_scene.task.pk}/change/", {"title": "x"}).status_code == 403
    act(client, "session", "cancel", real_scene.session, hidden)
    act(client, "task", "archive", real_scene.task)
    data = {"action": "delete_selected", "_selected_action": [str(real_scene.task.pk)], "post": "yes"}
    client.post("/admin/tasks/task/", data)
    assert Session.objects.filter(state=SessionState.RUNNING).count() == 2
    assert Task.objects.filter(archived_at=None).count() == 2
    assert client.get("/admin/tasks/event/").status_code == 403
    mine = Token.objects.filter(user=real_scene.people["viewer"])
    assert set(client.get("/admin/tasks/token/").context["cl"].queryset) == set(mine)
