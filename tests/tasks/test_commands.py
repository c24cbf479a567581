"""`manage.py user` and `manage.py token` (contract 1)."""

import io
import re
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from tasks import tokens
from tasks.models import Token
from tests.tasks.conftest import Caller, Scene, person

TOKEN = re.compile(r"kdv_(pat|run|ses)_[\w-]{40,}\n")


def run(*words: str) -> str:
    output = io.StringIO()
    call_command(*words, stdout=output, stderr=io.StringIO())
    return output.getvalue()


def test_a_user_is_made_with_the_password_of_the_environment(db: None, monkeypatch: Any) -> None:
    monkeypatch.setenv("KANDEV_USER_PASSWORD", "pw-kim-Zq7!x")
    assert run("user", "kim") == ""
    user = User.objects.get(username="kim")
    assert user.check_password("pw-kim-Zq7!x")
    assert not user.is_staff


def test_a_password_is_read_from_standard_input_otherwise(db: None, monkeypatch: Any) -> None:
    monkeypatch.delenv("KANDEV_USER_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("from stdin \n"))
    run("user", "kim")
    assert User.objects.get(username="kim").check_password("from stdin ")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(CommandError, match="empty"):
        run("user", "lou")


def test_an_existing_user_is_changed_only_on_demand(db: None, monkeypatch: Any) -> None:
    person("kim")
    monkeypatch.setenv("KANDEV_USER_PASSWORD", "another one")
    with pytest.raises(CommandError, match="--update"):
        run("user", "kim")
    run("user", "kim", "--update")
    assert User.objects.get(username="kim").check_password("another one")
    with pytest.raises(CommandError, match="no user"):
        run("user", "lou", "--update")


@pytest.mark.parametrize("name", ["", "a b", "x" * 151, "n\0l", "\udcff"])
def test_a_name_that_cannot_be_is_refused(db: None, monkeypatch: Any, name: str) -> None:
    monkeypatch.setenv("KANDEV_USER_PASSWORD", "pw-kim-Zq7!x")
    with pytest.raises(CommandError):
        run("user", name)
    assert not User.objects.exists()


def test_each_kind_of_token_is_printed_alone_and_works(scene: Scene) -> None:
    personal = run("token", "personal", "--user", "viewer")
    runner = run("token", "runner", "--name", "r1")
    session = run("token", "session", "--session", str(scene.session.pk))
    for text in (personal, runner, session):
        assert TOKEN.fullmatch(text)
        assert not Token.objects.filter(digest=text.strip()).exists()
    assert Caller(personal.strip())("GET", f"/tasks/{scene.task.pk}").status_code == 200
    assert Caller(session.strip())("GET", f"/task-sessions/{scene.session.pk}").status_code == 200
    assert tokens.find(runner.strip()) is not None


def test_scope_name_and_days_are_kept(scene: Scene) -> None:
    run("token", "personal", "--user", "viewer", "--scope", "read", "--name", "laptop", "--days", "30")
    token = Token.objects.latest("pk")
    assert (token.scope, token.name) == ("read", "laptop")
    assert token.expires_at is not None
    assert (token.expires_at - token.created_at).days in {29, 30}


def test_a_revoked_token_is_dead_and_nothing_is_printed(scene: Scene) -> None:
    text = run("token", "personal", "--user", "viewer").strip()
    assert run("token", "revoke", text) == ""
    assert Caller(text)("GET", "/tasks").status_code == 401
    with pytest.raises(CommandError) as caught:
        run("token", "revoke", text)
    assert text not in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        ("personal", "--user", "nobody at all"),
        ("personal",),
        ("personal", "--user", "viewer", "--scope", "king"),
        ("personal", "--user", "viewer", "--days", "0"),
        ("personal", "--user", "viewer", "--days", "9999999999999"),
        ("runner",),
        ("runner", "--name", "n\0l"),
        ("session", "--session", "x"),
        ("session", "--session", str(uuid.UUID(int=1))),
        ("revoke", "\udcff"),
        ("nothing",),
        (),
    ],
)
def test_a_wrong_command_is_refused_in_words(scene: Scene, words: tuple[str, ...]) -> None:
    before = Token.objects.count()
    with pytest.raises(CommandError):
        run("token", *words)
    assert Token.objects.count() == before


def test_a_token_for_somebody_inactive_is_refused(scene: Scene) -> None:
    User.objects.filter(username="viewer").update(is_active=False)
    with pytest.raises(CommandError, match="no active user"):
        run("token", "personal", "--user", "viewer")
