"""Access that is taken away holds at once for answers, and open sockets are looked after without waiting (H6, B15)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from clarifications import asking
from tasks import hints, sharing, tokens
from tasks.models import Membership, Role, Token, Workspace
from tests.access.cast import Cast
from tests.support import climbing
from turns.models import Message

Change = Callable[[Cast], object]


def remove(cast: Cast) -> None:
    kept = [sharing.Member("a-viewer", "viewer")]
    sharing.change_workspace(cast.stage.workspace.pk, members=kept)


def demote(cast: Cast) -> None:
    sharing.change_workspace(cast.stage.workspace.pk, members=[sharing.Member("a-answerer", "viewer")])


def deactivate(cast: Cast) -> None:
    person = User.objects.get(username="a-answerer")
    person.is_active = False
    person.save()


def revoke(cast: Cast) -> None:
    assert tokens.revoke(cast.tokens["answerer"])


def expire(cast: Cast) -> None:
    Token.objects.filter(user=cast.people["answerer"]).update(expires_at=timezone.now())


def respond(client: Client, cast: Cast) -> int:
    address = f"/api/v1/clarification/{cast.ids['open']}/respond"
    return int(client.post(address, climbing.SKIP, content_type="application/json").status_code)


@pytest.mark.scenario("H1", "H6", "G7")
@pytest.mark.parametrize(
    ("change", "by_token", "by_cookie"),
    [(remove, 404, 404), (demote, 403, 403), (deactivate, 401, 401), (revoke, 401, 200), (expire, 401, 200)],
)
def test_an_answer_is_refused_as_soon_as_the_right_is_gone(
    cast: Cast, change: Change, by_token: int, by_cookie: int
) -> None:
    token, cookie = cast.bearer("answerer"), cast.cookie("answerer")
    change(cast)
    assert respond(token, cast) == by_token
    assert Message.objects.bundle(cast.ids["open"]).active().exists()
    assert respond(cookie, cast) == by_cookie


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sent: list[str] = []
    monkeypatch.setattr(hints, "send", sent.append)
    return sent


def sign_out(cast: Cast) -> None:
    cast.cookie("answerer").post("/accounts/logout/")


def change_password(cast: Cast) -> None:
    person = cast.people["answerer"]
    person.set_password("another-Zq7")
    person.save()


def leave(cast: Cast) -> None:
    Membership.objects.filter(user=cast.people["answerer"]).delete()


def take_over(cast: Cast) -> None:
    sharing.change_workspace(cast.stage.workspace.pk, disown=True)


def move_away(cast: Cast) -> None:
    other = Workspace.objects.create(name="other", owner=cast.people["owner"])
    address = f"/api/v1/tasks/{cast.ids['task']}"
    moved = cast.cookie("owner").patch(address, {"workspace": str(other.pk)}, content_type="application/json")
    assert moved.status_code == 200


def revoke_on_the_page(cast: Cast) -> None:
    assert cast.cookie("owner").post(f"/settings/tokens/{cast.ids['token']}/revoke").status_code == 302


def revoke_in_the_admin(cast: Cast) -> None:
    chosen = {"action": "revoke", "_selected_action": [cast.ids["token"]]}
    assert cast.cookie("superuser").post("/admin/tasks/token/", chosen).status_code == 302
    assert Token.objects.get(pk=cast.ids["token"]).revoked_at is not None


def demote_in_the_admin(cast: Cast) -> None:
    row = Membership.objects.get(user=cast.people["answerer"])
    row.role = Role.VIEWER
    row.save()


CHANGES = (
    remove,
    demote,
    deactivate,
    revoke,
    sign_out,
    change_password,
    leave,
    take_over,
    move_away,
    revoke_on_the_page,
    revoke_in_the_admin,
    demote_in_the_admin,
)


@pytest.mark.scenario("H6")
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_access_sends_the_hint(
    cast: Cast, told: list[str], django_capture_on_commit_callbacks: Any, change: Change
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        change(cast)
    assert hints.ACCESS in told


@pytest.mark.scenario("H6")
def test_what_takes_nothing_away_sends_none(
    cast: Cast, told: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        cast.sign_in("viewer")
        asking.ask(cast.stage.agent, cast.ids["session"], climbing.questions(3), "")
    assert hints.ACCESS not in told
