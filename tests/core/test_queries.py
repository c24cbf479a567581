"""What an answer costs: a fixed number of statements, and each hot look-up on its index whatever else is stored."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clarifications import claiming
from tasks.models import Session
from tests.support.climbing import SKIP, Question, Stage, add_row, add_session, by_hand
from tests.support.plans import plans_of
from turns.models import Message, Turn

# `u0` is the evidence of a reservation: PostgreSQL hashes a small table, and looks into the index of a large one.
WHOLE_TABLE = re.compile(r"(Seq Scan on|SCAN) (turns_turn|turns_message)(?! u0)")
CONTROL = re.compile(r"(BEGIN|COMMIT|SAVEPOINT|RELEASE)")


def statements(question: Question, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What one rejection says to the database, from the claim's transaction to the commit of its finalizing."""
    original, begun = claiming.claim, list[int]()

    def noted(*args: Any) -> Any:
        begun.append(len(seen.captured_queries))
        return original(*args)

    with monkeypatch.context() as patch, CaptureQueriesContext(connection) as seen:
        patch.setattr(claiming, "claim", noted)
        assert question.respond(SKIP).short == (200, True)
    said = [query["sql"] for query in seen.captured_queries[begun[0] :]]
    final = next(index for index, sql in enumerate(said) if "'finalized'" in sql)
    last = next(index for index, sql in enumerate(said) if index > final and sql.startswith("COMMIT"))
    return [sql for sql in said[:last] if not CONTROL.match(sql)]


def fill(session: Session, turn: Turn, number: int) -> None:
    now = timezone.now()
    fixed = {"session": session, "turn_id": turn.pk, "author_type": "agent", "created_at": now, "updated_at": now}
    Message.objects.bulk_create([Message(**fixed, content="noise") for _ in range(number)], batch_size=500)


@pytest.mark.scenario("D8")
@pytest.mark.parametrize("transcript", [0, 500])
@pytest.mark.parametrize("count", [1, 4])
def test_an_answer_takes_at_most_eight_statements_from_claim_to_finalize(
    serving: None, monkeypatch: pytest.MonkeyPatch, count: int, transcript: int
) -> None:
    scene = by_hand()
    fill(scene.session, scene.turn, transcript)
    question = scene.ask(count)
    scene.session.waiters.all().delete()
    seen = statements(question, monkeypatch)
    assert any(sql.startswith('INSERT INTO "clarifications_claim"') for sql in seen)
    assert len(seen) <= 8, "\n".join(sql[:150] for sql in seen)


@pytest.fixture
def crowd(db: None) -> Stage:
    """A question among thousands of turns, messages and history questions, its own session's included."""
    scene, now = by_hand(), timezone.now()
    others = [add_session(scene.task) for _ in range(20)]
    for session in [scene.session, *others]:
        turns = [Turn(session=session, started_at=now, created_at=now) for _ in range(100)]
        Turn.objects.bulk_create(turns)
        fill(session, turns[0], 200)
        for turn in turns[:20]:
            add_row(session, turn.pk, {"status": "answered"})
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return scene


LOOKUPS: dict[str, tuple[str, Callable[[Stage, Message], QuerySet[Any]]]] = {
    "bundle": ("message_bundle", lambda scene, row: Message.objects.bundle(row.metadata["pending_id"])),
    "active rows": (
        "message_open_question",
        lambda scene, row: Message.objects.filter(session=scene.session.pk).active(),
    ),
    "newest turn": (
        "turn_newest",
        lambda scene, row: Turn.objects.filter(session=scene.session.pk).authoritative().newest_first()[:1],
    ),
    "projection": (
        "message_open_question",
        lambda scene, row: Session.objects.with_pending().filter(pk=scene.session.pk),
    ),
}


@pytest.mark.scenario("I9", "A6")
@pytest.mark.parametrize("lookup", LOOKUPS)
def test_a_hot_look_up_is_planned_on_its_index(crowd: Stage, lookup: str) -> None:
    index, query = LOOKUPS[lookup]
    row = add_row(crowd.session, crowd.turn.pk)
    plan = query(crowd, row).explain()
    assert index in plan, plan
    assert not WHOLE_TABLE.search(plan), plan


@pytest.mark.scenario("I9")
@pytest.mark.parametrize("lookup", LOOKUPS)
def test_control_without_its_index_the_same_look_up_is_planned_otherwise(crowd: Stage, lookup: str) -> None:
    index, query = LOOKUPS[lookup]
    row = add_row(crowd.session, crowd.turn.pk)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {index}")
    assert index not in query(crowd, row).explain()


@pytest.mark.scenario("I9")
def test_the_projection_of_a_session_walks_through_no_transcript(crowd: Stage) -> None:
    """Each kind of pending action has its own index; none falls back to all rows of the session."""
    plan = Session.objects.with_pending().filter(pk=crowd.session.pk).explain()
    assert "message_open_question" in plan
    assert "message_open_permission" in plan
    assert not re.search(r"turns_message_session_id|message_transcript", plan), plan


@pytest.mark.scenario("I9", "A6")
def test_the_newest_turn_needs_no_sort(crowd: Stage) -> None:
    plan = Turn.objects.filter(session=crowd.session.pk).newest_first()[:1].explain()
    assert not re.search(r"Sort|TEMP B-TREE", plan), plan


@pytest.mark.scenario("I9", "D8")
@pytest.mark.parametrize("way", ["skip", "answer", "late"])
def test_no_step_of_an_answer_walks_through_a_whole_table(serving: None, crowd: Stage, way: str) -> None:
    """Nor through a transcript: whatever the session's history is, an answer looks up its own rows (B76)."""
    turn = Turn.objects.create(session=crowd.session, started_at=timezone.now(), created_at=timezone.now())
    question = Question(crowd, add_row(crowd.session, turn.pk).pending_id)
    if way == "late":
        Turn.objects.create(session=crowd.session, started_at=timezone.now(), created_at=timezone.now())
    with CaptureQueriesContext(connection) as seen:
        told = question.late("k") if way == "late" else question.respond(SKIP if way == "skip" else None)
    assert told.status in (200, 201, 503), told
    found = plans_of(seen.captured_queries, "turns_message", "turns_turn")
    assert not WHOLE_TABLE.search(found), found
    assert "message_transcript" not in found, found
