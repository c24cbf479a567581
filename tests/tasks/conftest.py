"""Five people whose roles never change, callers over REST, questions as rows: this layer alone, no hook connected."""

import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from tasks import points, registry, revisions, tokens
from tasks.models import Membership, Role, Session, SessionState, Task, TokenKind, Workspace
from turns.models import Author, Message, MessageType, Turn

PEOPLE = ("owner", "admin", "answerer", "viewer", "stranger")
HOOKS = (points.session_ending, points.session_ended, points.prompt_given, points.move_blocked, points.input_capable)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layers above are told nothing; the kind of pending action is the rule itself."""
    for hook in HOOKS:
        monkeypatch.setattr(hook, "_receivers", [])
    kind = registry.PendingKind("clarification", 1, _has_question, "tasks:board", lambda _: {})
    monkeypatch.setattr(registry, "_kinds", {kind.name: kind})


def _has_question(session: OuterRef) -> Exists:
    return Exists(Message.objects.filter(session=session).active())


@dataclass
class Caller:
    """REST with a bearer token; a body is sent as JSON, bytes as they are."""

    token: str | None = None

    def __call__(self, method: str, path: str, body: Any = None, **extra: Any) -> HttpResponse:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        client = Client(headers=headers, raise_request_exception=False)
        kind = {"content_type": "application/json"} if body is not None else {}
        url = path if path.startswith("/api/") or "://" in path else f"/api/v1{path}"
        return client.generic(method, url, _bytes(body), **kind, **extra)  # type: ignore[arg-type, return-value]

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        got = self(method, path, body)
        assert got.status_code < 300, (got.status_code, got.content)
        return got.json() if got.content else None  # type: ignore[attr-defined]

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        got = self(method, path, body)
        return got.status_code, got.json()["code"]  # type: ignore[attr-defined]


def _bytes(body: Any) -> bytes:
    import json

    return b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()


@dataclass
class Scene:
    """One workspace with everybody in it but the stranger, one task with one session, and a caller for each person."""

    workspace: Workspace
    task: Task
    session: Session
    people: dict[str, User]
    callers: dict[str, Caller]

    def __getitem__(self, name: str) -> Caller:
        return self.callers[name]


def person(name: str) -> User:
    return User.objects.create_user(name, email=f"{name}@example.org", password=f"pw-{name}")


def add_task(workspace: Workspace | None, title: str = "a task") -> Task:
    now = timezone.now()
    return Task.objects.create(workspace=workspace, title=title, created_at=now, updated_at=now)


def add_session(task: Task, is_primary: bool = False, **fields: Any) -> Session:
    now = timezone.now()
    stamps = {"created_at": now, "last_activity_at": now, "agent": "demo", "state": SessionState.RUNNING}
    return Session.objects.create(task=task, is_primary=is_primary, **{**stamps, **fields})


def add_question(session: Session) -> Message:
    """A question that is open: in a new turn, which is the current one."""
    now = timezone.now()
    turn = Turn.objects.create(session=session, started_at=now, created_at=now)
    return Message.objects.create(
        session=session,
        turn_id=turn.pk,
        author_type=Author.AGENT,
        type=MessageType.QUESTION,
        metadata={"pending_id": str(uuid.uuid4()), "question_id": "q1", "status": "pending"},
        created_at=now,
        updated_at=now,
    )


def close_question(row: Message) -> None:
    Message.objects.filter(pk=row.pk).update(metadata={**row.metadata, "status": "answered"})


@pytest.fixture
def scene(db: None) -> Scene:
    return make_scene()


@pytest.fixture
def real_scene(transactional_db: None) -> Scene:
    """The same with real commits, for what happens after one and for threads."""
    return make_scene()


def make_scene() -> Scene:
    people = {name: person(name) for name in PEOPLE}
    workspace = Workspace.objects.create(name="ours", owner=people["owner"])
    for role in Role:
        Membership.objects.create(workspace=workspace, user=people[role.value], role=role)
    task = add_task(workspace)
    session = add_session(task, is_primary=True)
    callers = {name: Caller(tokens.mint(TokenKind.PERSONAL, user=user)) for name, user in people.items()}
    callers["agent"] = Caller(tokens.mint(TokenKind.SESSION, session=session))
    callers["runner"] = Caller(tokens.mint(TokenKind.RUNNER, name="r"))
    callers["nobody"] = Caller()
    return Scene(workspace, task, session, people, callers)


@pytest.fixture
def asked(scene: Scene) -> Message:
    return add_question(scene.session)


def advance(session: Session) -> None:
    from django.db import transaction

    with transaction.atomic():
        revisions.lock_session(session.pk)
        revisions.advance(session.pk)
