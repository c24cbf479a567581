"""Rows for the benchmark, written straight into its own database."""

import datetime as dt
import uuid
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from clarifications import questions
from tasks import tokens
from tasks.models import Session, SessionState, Task, TokenKind, Workspace
from tasks.principals import Principal
from turns.models import Author, Message, MessageType, Turn

NOISE = {
    "postgresql": """INSERT INTO turns_message
        (id, session_id, turn_id, author_type, type, content, metadata, created_at, updated_at)
        SELECT gen_random_uuid(), %s, %s, 'agent', 'message', 'A line of a transcript, number ' || n, '{}',
            now() - interval '1 day' + n * interval '1 millisecond', now() FROM generate_series(1, %s) AS n""",
    "sqlite": """INSERT INTO turns_message
        (id, session_id, turn_id, author_type, type, content, metadata, created_at, updated_at)
        WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < %s)
        SELECT lower(hex(randomblob(16))), %s, %s, 'agent', 'message', 'A line of a transcript, number ' || n, '{}',
            '2020-01-01 00:00:00', '2020-01-01 00:00:00' FROM counted""",
}


@dataclass(frozen=True)
class Scene:
    """A person with a token who owns a workspace."""

    user: User
    token: str
    workspace: Workspace

    @property
    def principal(self) -> Principal:
        return Principal(user=self.user)


def scene(name: str) -> Scene:
    user = User.objects.create_user(name)
    token = tokens.mint(TokenKind.PERSONAL, name="bench", user=user)
    return Scene(user, token, Workspace.objects.create(name=name, owner=user))


@dataclass(frozen=True)
class Asked:
    """A bundle in a session and task of its own."""

    pending_id: str
    session: Session
    rows: list[Message]


def sessions(scene: Scene, count: int) -> list[tuple[Session, Turn]]:
    """Each the primary one of its own task, with a turn that runs."""
    now = timezone.now()
    stamps = {"created_at": now, "updated_at": now}
    tasks = [Task(workspace=scene.workspace, title=f"task {number}", **stamps) for number in range(count)]
    made = [
        Session(
            task=task, agent="bench", is_primary=True, state=SessionState.RUNNING, created_at=now, last_activity_at=now
        )
        for task in tasks
    ]
    turns = [Turn(session=session, started_at=now, created_at=now) for session in made]
    Task.objects.bulk_create(tasks)
    Session.objects.bulk_create(made)
    Turn.objects.bulk_create(turns)
    return list(zip(made, turns, strict=True))


def asked(scene: Scene, count: int, size: int = 1) -> list[Asked]:
    """Detached bundles of `size` questions, each in a session of its own."""
    made = [ask(session, turn, size) for session, turn in sessions(scene, count)]
    Message.objects.bulk_create([row for one in made for row in one.rows])
    analyze()
    return made


def ask(session: Session, turn: Turn, size: int = 1) -> Asked:
    """The unsaved rows of a detached bundle."""
    option = [{"label": label, "description": "what it means"} for label in ("Yes", "No", "Later")]
    clean, _ = questions.clean([{"prompt": f"Question {n}?", "options": option} for n in range(size)])
    pending_id, now = str(uuid.uuid4()), timezone.now()
    rows = [
        Message(
            session=session,
            turn_id=turn.pk,
            author_type=Author.AGENT,
            type=MessageType.QUESTION,
            content=mark["question"]["prompt"],
            metadata={**mark, "agent_disconnected": True},
            created_at=now + dt.timedelta(microseconds=index),
            updated_at=now,
        )
        for index, mark in enumerate(questions.metadata(pending_id, clean, "Some context."))
    ]
    return Asked(pending_id, session, rows)


def noise(session: Session, turn: Turn, count: int) -> None:
    """`count` transcript rows in one statement."""
    ids = [session.pk, turn.pk]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(NOISE["postgresql"], [*ids, count])
        else:
            cursor.execute(NOISE["sqlite"], [count, *(pk.hex for pk in ids)])


def analyze() -> None:
    """What autovacuum would do a little later."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
