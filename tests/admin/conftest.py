"""Bundles in every state, and the admin as its visitors see it."""

import datetime as dt
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from clarifications.models import Claim, LeaseKind, WaiterLease
from tasks import instances
from tasks.models import Membership, Role, Session, SessionState, Task, Workspace
from turns.models import Author, Dispatch, DispatchKind, DispatchState, Message, MessageType, Turn

APPS = ("turns", "clarifications")


@dataclass
class Desk:
    """One workspace with a task; `session()` adds one with a running turn."""

    owner: User
    viewer: User
    stranger: User
    task: Task
    turns: dict[uuid.UUID, Turn] = field(default_factory=dict)

    def session(self, title: str = "", state: str = SessionState.RUNNING) -> Session:
        now = timezone.now()
        workspace = self.task.workspace
        task = Task.objects.create(workspace=workspace, title=title, created_at=now, updated_at=now) if title else None
        made = Session.objects.create(
            task=task or self.task, agent="demo", state=state, created_at=now, last_activity_at=now
        )
        self.turn(made)
        return made

    def turn(self, session: Session) -> Turn:
        now = timezone.now()
        self.turns[session.pk] = Turn.objects.create(session=session, started_at=now, created_at=now)
        return self.turns[session.pk]

    def ask(self, session: Session, /, *prompts: str, status: str = "pending", **fields: Any) -> str:
        """A bundle in the session's turn; `fields` are columns of its last row."""
        pending_id, now = str(uuid.uuid4()), timezone.now()
        for index, prompt in enumerate(prompts or ("Which?",)):
            last = index == len(prompts or ("",)) - 1
            columns: dict[str, Any] = {
                "session": session,
                "turn_id": self.turns[session.pk].pk,
                "type": MessageType.QUESTION,
                **(fields if last else {}),
            }
            at = now + dt.timedelta(microseconds=index)
            Message.objects.create(
                author_type=Author.AGENT,
                content=prompt,
                metadata=_marks(pending_id, index, prompt, status),
                created_at=at,
                updated_at=at,
                **columns,
            )
        return pending_id

    def wait(self, session: Session, pending_id: str) -> None:
        WaiterLease.objects.create(
            pending_id=pending_id,
            session=session,
            turn_id=self.turns[session.pk].pk,
            kind=LeaseKind.REST,
            owner=instances.generation(),
            created_at=timezone.now(),
        )

    def claim(self, session: Session, pending_id: str, state: str, ambiguous: bool = False) -> Claim:
        now, turn = timezone.now(), self.turns[session.pk]
        made = Claim.objects.create(
            pending_id=pending_id,
            session=session,
            turn_id=turn.pk,
            message_ids=[],
            status="answered",
            response={},
            responded_at=now,
            state=state,
            attended_until=now,
        )
        if ambiguous:
            Dispatch.objects.create(
                session=session,
                turn_id=turn.pk,
                kind=DispatchKind.ANSWER,
                prompt="",
                agent="demo",
                execution_id=uuid.uuid4(),
                prompt_generation=1,
                state=DispatchState.ATTEMPTED,
                claim_id=made.pk,
                attended_until=now,
                ambiguous=True,
                reserved_at=now,
            )
        return made


def _marks(pending_id: str, index: int, prompt: str, status: str) -> dict[str, Any]:
    options = [{"option_id": f"o{n}", "label": f"label {n}", "description": f"about {n}"} for n in (1, 2)]
    question_id = f"q{index + 1}"
    marks = {
        "pending_id": pending_id,
        "question_id": question_id,
        "question": {"question_id": question_id, "title": "", "prompt": prompt, "options": options},
        "question_index": index,
        "context": "the context",
        "status": status,
    }
    answer = {"question_id": question_id, "selected_options": ["o2"], "custom_text": "because"}
    return marks | ({"response": answer} if status == "answered" else {})


@pytest.fixture
def desk(transactional_db: None) -> Desk:
    """An instance, so that leases of this process live; three people, their roles never change."""
    instances.register()
    owner, viewer, stranger = (User.objects.create_user(name) for name in ("owner", "viewer", "stranger"))
    workspace = Workspace.objects.create(name="ours", owner=owner)
    Membership.objects.create(workspace=workspace, user=viewer, role=Role.VIEWER)
    now = timezone.now()
    return Desk(
        owner,
        viewer,
        stranger,
        Task.objects.create(workspace=workspace, title="the task", created_at=now, updated_at=now),
    )


@pytest.fixture
def root(desk: Desk) -> Client:
    return visitor(User.objects.create_superuser("root"))


def visitor(user: User, *permissions: str) -> Client:
    """Signed in as staff with these permissions, as "turns.view_message"; "*" gives all of both applications."""
    User.objects.filter(pk=user.pk).update(is_staff=True)
    rows = Permission.objects.filter(content_type__app_label__in=APPS)
    named = rows if "*" in permissions else [row for row in rows if _name(row) in permissions]
    user.user_permissions.set(named)
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.get(pk=user.pk))
    return client


def _name(row: Permission) -> str:
    return f"{row.content_type.app_label}.{row.codename}"
