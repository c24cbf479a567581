"""Everybody who may call, around one task: people whose roles never change, agents, runners, and dead credentials."""

import datetime as dt
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from clarifications import asking
from tasks import revisions, tokens
from tasks.models import Membership, Role, Token, TokenKind, Workspace
from tests.support import climbing
from tests.support.climbing import Stage
from turns import permitting
from turns.models import Message, Turn

ROLES = {"viewer": Role.VIEWER, "answerer": Role.ANSWERER, "admin": Role.ADMIN}
PEOPLE = ("stranger", *ROLES, "owner", "staff", "superuser")
TOKENS = ("foreign", "agent", "other agent", "runner", "revoked", "expired", "read scope")
CALLERS = ("nobody", *PEOPLE, *TOKENS, "auth off")
CSRF = "c" * 32


@dataclass
class Cast:
    """`ids` are the things of one workspace, by the names that the table's addresses use."""

    stage: Stage
    people: dict[str, User]
    tokens: dict[str, str]
    ids: dict[str, str]
    sign_ins: dict[str, str] = field(default_factory=dict)

    def cookie(self, name: str) -> Client:
        """A browser of that person, with the CSRF token that its forms and scripts send."""
        client = Client(enforce_csrf_checks=True, raise_request_exception=False, headers={"X-CSRFToken": CSRF})
        client.cookies["csrftoken"] = CSRF
        if name in self.people:
            client.cookies[settings.SESSION_COOKIE_NAME] = self.sign_in(name)
        return client

    def sign_in(self, name: str) -> str:
        """The cookie of a sign-in, made once."""
        if name not in self.sign_ins:
            client = Client()
            client.force_login(self.people[name])
            self.sign_ins[name] = client.cookies[settings.SESSION_COOKIE_NAME].value
        return self.sign_ins[name]

    def bearer(self, name: str) -> Client:
        headers = {"Authorization": f"Bearer {self.tokens[name]}"} if name in self.tokens else {}
        return Client(enforce_csrf_checks=True, raise_request_exception=False, headers=headers)

    def browser(self, name: str) -> Client:
        """As the caller comes to Django: people and nobody with cookies, the others with their tokens."""
        return self.bearer(name) if name in TOKENS else self.cookie(name)


def gather() -> Cast:
    """A task whose turn runs, with an open question that nobody waits for, one with a waiter, and one of the past."""
    stage = climbing.by_hand()
    people = {name: User.objects.create_user(f"a-{name}", password="pass-Zq7") for name in PEOPLE if name != "owner"}
    people["owner"] = owner(stage.workspace)
    for name, role in ROLES.items():
        Membership.objects.create(workspace=stage.workspace, user=people[name], role=role)
    User.objects.filter(pk=people["superuser"].pk).update(is_superuser=True, is_staff=True)
    User.objects.filter(pk=people["staff"].pk).update(is_staff=True)
    _grant_everything(people["staff"])
    people = {name: User.objects.get(pk=user.pk) for name, user in people.items()}
    return Cast(stage, people, _credentials(stage, people), _things(stage, people["owner"]))


def owner(workspace: Workspace) -> User:
    assert workspace.owner is not None
    return User.objects.get(pk=workspace.owner.pk)


def _grant_everything(user: User) -> None:
    """Django's own permissions: what is left to refuse is refused by sight alone."""
    from django.contrib.auth.models import Permission

    user.user_permissions.set(Permission.objects.all())


def _credentials(stage: Stage, people: dict[str, User]) -> dict[str, str]:
    made = {name: tokens.mint(TokenKind.PERSONAL, user=user) for name, user in people.items()}
    elsewhere = climbing.add_session(stage.task)
    past = timezone.now() - dt.timedelta(seconds=1)
    made |= {
        "foreign": made["stranger"],
        "agent": tokens.mint(TokenKind.SESSION, session=stage.session),
        "other agent": tokens.mint(TokenKind.SESSION, session=elsewhere),
        "runner": tokens.mint(TokenKind.RUNNER, name="r"),
        "revoked": tokens.mint(TokenKind.PERSONAL, user=people["owner"], revoked_at=past),
        "expired": tokens.mint(TokenKind.PERSONAL, user=people["owner"], expires_at=past),
        "read scope": tokens.mint(TokenKind.PERSONAL, user=people["owner"], scope="read"),
    }
    return made


def _things(stage: Stage, person: User) -> dict[str, str]:
    now = timezone.now()
    old = climbing.add_turn(stage.session, now - dt.timedelta(hours=1), completed_at=now)
    current = Turn.objects.current_of(stage.session.pk)
    assert current is not None
    open_row = climbing.add_row(stage.session, current.pk)
    past_row = climbing.add_row(stage.session, old.pk)
    live = asking.ask(stage.agent, str(stage.session.pk), climbing.questions(), "")
    return {
        "workspace": str(stage.workspace.pk),
        "task": str(stage.task.pk),
        "session": str(stage.session.pk),
        "message": str(Message.objects.create(**_said(stage)).pk),
        "permission": str(_asked_leave(stage, current)),
        "open": open_row.pending_id,
        "past": past_row.pending_id,
        "live": live.pending_id,
        "token": str(Token.objects.get(digest=tokens.digest(tokens.mint(TokenKind.PERSONAL, user=person))).pk),
    }


def _said(stage: Stage) -> dict[str, Any]:
    now = timezone.now()
    return {
        "session": stage.session,
        "author_type": "user",
        "type": "message",
        "content": "hello",
        "created_at": now,
        "updated_at": now,
    }


def _asked_leave(stage: Stage, turn: Turn) -> uuid.UUID:
    option = {"option_id": "yes", "name": "Yes", "kind": "allow_once"}
    with transaction.atomic():
        session = revisions.lock_session(stage.session.pk)
        assert permitting.store(session, turn, permitting.Asked("p1", "May I?", {}, [option]), timezone.now())
    return Message.objects.get(session=session, type="permission_request").pk


def unknown(ids: dict[str, str]) -> dict[str, str]:
    """Ids of the same form that name nothing."""
    return {name: str(2**40) if value.isdigit() else str(uuid.uuid4()) for name, value in ids.items()}
