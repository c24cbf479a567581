"""People, a workspace, and rows for pages. `Browserless` is Django's client signed in as one of them."""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from tasks import instances
from tasks.models import Instance, Membership, Role, Session, SessionState, Task, Workspace
from turns.models import QUESTION, Message, Runner, Turn

Signed = Callable[[str], Client]


def option(number: int, label: str, description: str = "", **more: Any) -> dict[str, Any]:
    return {"option_id": f"o{number}", "label": label, "description": description, **more}


def question(prompt: str = "Which one?", **more: Any) -> dict[str, Any]:
    options = [option(1, "First", "the first"), option(2, "Second", "the second")]
    return {"question_id": "q1", "title": "", "prompt": prompt, "multi_select": False, "options": options, **more}


@dataclass
class World:
    """`owner` owns the workspace, `answerer` and `viewer` are members, `stranger` is nobody here."""

    workspace: Workspace
    task: Task
    clock: dt.datetime

    def tick(self) -> dt.datetime:
        self.clock += dt.timedelta(seconds=1)
        return self.clock

    def new_task(self, title: str, **more: Any) -> Task:
        now = self.tick()
        return Task.objects.create(workspace=self.workspace, title=title, created_at=now, updated_at=now, **more)

    def session(self, agent: str = "demo", **more: Any) -> Session:
        now = self.tick()
        fields = {"task": self.task, "state": SessionState.WAITING, "created_at": now, "last_activity_at": now, **more}
        return Session.objects.create(agent=agent, **fields)

    def turn(self, session: Session) -> Turn:
        now = self.tick()
        return Turn.objects.create(session=session, started_at=now, created_at=now)

    def say(self, session: Session, content: str, author: str = "agent", **more: Any) -> Message:
        now = self.tick()
        fields = {"author_type": author, "content": content, "created_at": now, "updated_at": now, **more}
        return Message.objects.create(session=session, **fields)

    def ask(self, session: Session, *questions: dict[str, Any], **metadata: Any) -> str:
        """A bundle in a new turn of the session."""
        pending_id, turn, asked = str(uuid.uuid4()), self.turn(session), questions or (question(),)
        for index, one in enumerate(asked):
            data = {
                "pending_id": pending_id,
                "question_id": one["question_id"],
                "question": one,
                "question_index": index,
                "question_total": len(asked),
                "context": "",
                "status": "pending",
                **metadata,
            }
            self.say(session, one["prompt"], type=QUESTION, turn_id=turn.pk, metadata=data)
        return pending_id


@pytest.fixture
def world(db: None) -> World:
    people = {
        name: User.objects.create_user(name, password=name) for name in ("owner", "answerer", "viewer", "stranger")
    }
    workspace = Workspace.objects.create(name="Ours", owner=people["owner"])
    for name in (Role.ANSWERER, Role.VIEWER):
        Membership.objects.create(workspace=workspace, user=people[name], role=name)
    now = timezone.now()
    task = Task.objects.create(workspace=workspace, title="The task", created_at=now, updated_at=now)
    return World(workspace, task, now)


@pytest.fixture
def signed(world: World) -> Signed:
    """`signed("viewer").get("/")`."""

    def make(name: str) -> Client:
        client = Client()
        client.force_login(User.objects.get(username=name))
        return client

    return make


@pytest.fixture
def offered(db: None) -> None:
    """A living process with a runner that offers the agent `demo`."""
    now, far = timezone.now(), timezone.now() + dt.timedelta(days=1)
    living = Instance.objects.create(host="test", pid=1, started_at=now, renewed_at=far, ready_at=now)
    assert instances.alive().filter(pk=living.pk).exists()
    Runner.objects.create(
        runner_id="r", agents=["demo"], owner=living.pk, connection_id=uuid.uuid4(), connected_at=now, last_seen_at=far
    )
