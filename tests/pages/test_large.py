"""A board of 1,000 tasks and a session of 100,000 messages: what a page reads and sends does not grow with them."""

import datetime as dt
import re
from dataclasses import dataclass

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from kandev.bench import seeding
from tasks.models import Session, SessionState, Task
from tasks.pages.board import COLUMN_LIMIT
from tests.pages.conftest import Signed, World, question
from tests.support.plans import plans_of
from turns.pages.transcript import WINDOW

TASKS, ASKING = 1_000, 100
SHORT, LONG = 300, 100_000
KIB = 1024
INBOX = ("/questions", "/questions/count")
# In the words of SQLite; PostgreSQL scans what is small.
WHOLE_TABLE = re.compile(r"SCAN (turns_message|U\d)(?! USING INDEX message_)")


@dataclass(frozen=True)
class Read:
    text: str
    queries: int

    @property
    def size(self) -> int:
        return len(self.text.encode())


def read(client: Client, path: str, **headers: str) -> Read:
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(path, headers=headers)
    assert answer.status_code == 200
    return Read(answer.content.decode(), len(captured))


def many_tasks(world: World, count: int) -> None:
    """Half of them in one column; every tenth asks."""
    now = world.tick()
    states = ["in_progress", "todo", "review", "in_progress", "done"]
    tasks = [
        Task(
            workspace=world.workspace,
            title=f"Task {number} of the many that a team has",
            state=states[number % len(states)],
            created_at=now,
            updated_at=now + dt.timedelta(seconds=number),
        )
        for number in range(count)
    ]
    Task.objects.bulk_create(tasks)
    first = {"agent": "demo", "state": SessionState.RUNNING, "created_at": now, "last_activity_at": now}
    sessions = [Session(task=task, is_primary=True, **first) for task in tasks]
    Session.objects.bulk_create(sessions)
    for session in sessions[:: count // ASKING]:
        world.ask(session)


def many_messages(world: World, session: Session, count: int) -> None:
    seeding.noise(session, world.turn(session), count)


def test_a_board_of_a_thousand_tasks_reads_and_sends_a_bounded_page(world: World, signed: Signed) -> None:
    many_tasks(world, ASKING)
    for _ in range(2):
        few = read(signed("owner"), "/")
    Task.objects.exclude(pk=world.task.pk).delete()
    many_tasks(world, TASKS)
    for _ in range(2):
        many = read(signed("owner"), "/")  # the first one mends the summaries that these rows never had
    assert many.queries == few.queries <= 20
    assert many.size < 350 * KIB
    assert many.text.count('class="task-card"') == 4 * COLUMN_LIMIT
    alone = read(signed("owner"), "/?state=in_progress")
    assert alone.text.count('class="task-card"') == 2 * TASKS // 5
    assert alone.queries <= many.queries
    assert signed("owner").get("/?state=nowhere").status_code == 404
    needing = read(signed("owner"), "/?filter=needs-me")
    assert needing.text.count('class="task-card"') == ASKING
    assert needing.size < 300 * KIB


@pytest.mark.scenario("I9")
def test_a_long_session_is_read_in_windows(world: World, signed: Signed) -> None:
    """Each fragment of the task page costs the same with 300 messages and with 100,000."""
    found: dict[int, dict[str, Read]] = {}
    for count in (SHORT, LONG):
        session = world.session()
        many_messages(world, session, count)
        world.ask(session, question())
        paths = {
            "page": f"/tasks/{world.task.pk}?session={session.pk}",
            "transcript": f"/sessions/{session.pk}/transcript",
            "questions": f"/sessions/{session.pk}/questions",
            "queue": f"/sessions/{session.pk}/queue",
        }
        found[count] = {name: read(signed("owner"), path) for name, path in paths.items()}
    short, long = found[SHORT], found[LONG]
    assert {name: one.queries for name, one in long.items()} == {name: one.queries for name, one in short.items()}
    assert long["transcript"].text.count('<li class="entry') == WINDOW
    assert max(one.size for one in long.values()) < 100 * KIB
    assert sum(one.queries for one in long.values()) <= 60


@pytest.mark.scenario("I9")
def test_no_panel_walks_the_transcript(world: World, signed: Signed) -> None:
    """What is open is found by its own index; an order would lead SQLite to the index of the transcript."""
    session = world.session()
    world.ask(session, question())
    for path in (f"/sessions/{session.pk}/questions", f"/sessions/{session.pk}/permissions", *INBOX):
        with CaptureQueriesContext(connection) as captured:
            assert signed("owner").get(path).status_code == 200
        plans = plans_of(captured.captured_queries, "turns_message")
        assert "message_transcript" not in plans
        assert not WHOLE_TABLE.search(plans), (path, plans)


def test_the_windows_of_a_long_session_lead_to_its_beginning(world: World, signed: Signed) -> None:
    session, owner = world.session(), signed("owner")
    many_messages(world, session, SHORT)
    path, seen = f"/sessions/{session.pk}/transcript", 0
    while path:
        page = read(owner, path)
        seen += page.text.count('<li class="entry')
        assert page.text.count('<li class="entry') <= WINDOW
        path = next_of(page.text)
    assert seen == SHORT


def next_of(text: str) -> str:
    part = text.partition('class="load-earlier"')[2].partition('hx-get="')[2]
    return part.partition('"')[0]
