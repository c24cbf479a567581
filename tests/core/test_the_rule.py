"""Which question counts: every consumer gives the same verdict, on both databases (A1 to A7, C8)."""

import datetime as dt
import uuid
from typing import Any

import pytest
from django.utils import timezone

from clarifications import bundles, discovering
from tasks import moving
from tasks.models import TERMINAL, Session, SessionState, Task
from tests.support.climbing import Stage, add_row, add_turn, build
from tests.support.scripted import ScriptedRunner
from turns.models import Message, Turn

RESERVED = {"prompt_dispatch_pending": True}
ON = (True, "true", "1", 1)
OFF: tuple[Any, ...] = (
    False,
    None,
    "false",
    "0",
    0,
    2,
    1.0,
    "",
    "TRUE",
    "True",
    " true",
    "on",
    [],
    {},
    [True],
    {"a": 1},
)
CLOSED = ("answered", "rejected", "cancelled", "expired", "open", "Pending", " pending", 0, True)


@pytest.fixture
def scene(db: None) -> Stage:
    made = build(ScriptedRunner())
    Session.objects.update(state=SessionState.RUNNING)
    return made


def counts(scene: Stage, row: Message) -> bool:
    """Whether the row counts, once the rule, the projection, the list, the guard and the state agree about it."""
    pending_id, session = row.metadata["pending_id"], Session.objects.with_pending().get(pk=scene.session.pk)
    listed = [bundle["pending_id"] for bundle in discovering.list_pending(scene.person)["bundles"]]
    verdicts = {
        "rule": Message.objects.filter(pk=row.pk).active().exists(),
        "column": bool(Message.objects.with_active().get(pk=row.pk).is_active),
        "session": session.pending_kind == "clarification",
        "task": Task.objects.with_pending().get(pk=scene.task.pk).pending_kind == "clarification",
        "list": pending_id in listed,
        "guard": moving.is_blocked(scene.task.pk),
        "state": bundles.state_of(bundles.reach(scene.person, pending_id)).startswith("active_"),
    }
    assert len(set(verdicts.values())) == 1, verdicts
    return verdicts["rule"]


@pytest.mark.scenario("A1", "R45")
@pytest.mark.parametrize(
    ("status", "expected"),
    [("pending", True), ("", True), (None, True), *((other, False) for other in CLOSED)],
)
def test_pending_or_no_status_counts_and_only_in_the_current_turn(scene: Stage, status: Any, expected: bool) -> None:
    old, new = add_turn(scene.session), add_turn(scene.session)
    historic = add_row(scene.session, old.pk, {"status": status})
    assert not counts(scene, historic)
    assert counts(scene, add_row(scene.session, new.pk, {"status": status})) is expected


@pytest.mark.scenario("A1", "R45")
def test_a_status_of_json_null_is_no_status(scene: Stage) -> None:
    row = add_row(scene.session, add_turn(scene.session).pk)
    Message.objects.filter(pk=row.pk).update(metadata={**row.metadata, "status": None})
    assert counts(scene, row)


@pytest.mark.scenario("A2", "A3")
def test_a_newer_turn_makes_history_for_good_and_rewrites_nothing(scene: Stage) -> None:
    row = add_row(scene.session, add_turn(scene.session).pk)
    before = Message.objects.filter(pk=row.pk).values().get()
    newer = add_turn(scene.session)
    note = add_row(scene.session, newer.pk, type="message")
    assert not counts(scene, row)
    assert bundles.state_of(bundles.reach(scene.person, row.pending_id)) == "superseded_history"
    note.delete()
    assert not counts(scene, row)
    assert Message.objects.filter(pk=row.pk).values().get() == before


@pytest.mark.scenario("A4", "E5")
@pytest.mark.parametrize(
    ("marks", "message", "current"),
    [
        (RESERVED, False, False),
        (RESERVED, True, True),
        ({**RESERVED, "prompt_dispatch_attempted": True}, False, True),
        ({**RESERVED, "prompt_dispatch_attempted": False}, False, False),
        ({"prompt_dispatch_pending": "false"}, False, True),
        ({"prompt_dispatch_attempted": True}, False, True),
        ({"prompt_start_event_outbox": True}, False, True),
        ({}, False, True),
    ],
)
def test_an_empty_reservation_is_not_the_current_turn(scene: Stage, marks: Any, message: bool, current: bool) -> None:
    row = add_row(scene.session, add_turn(scene.session).pk)
    successor = add_turn(scene.session, metadata=marks)
    if message:
        _note(scene, successor)
    assert counts(scene, row) is not current
    found = Turn.objects.current_of(scene.session.pk)
    assert found is not None
    assert (found.pk == successor.pk) is current


def _note(scene: Stage, turn: Turn) -> None:
    now = timezone.now()
    Message.objects.create(session=scene.session, turn_id=turn.pk, author_type="agent", created_at=now, updated_at=now)


@pytest.mark.scenario("A5", "R45")
@pytest.mark.parametrize("value", [*ON, *OFF])
def test_marker_flags_are_true_for_four_values_only(scene: Stage, value: Any) -> None:
    keys = ("prompt_dispatch_pending", "prompt_dispatch_attempted", "prompt_start_event_outbox")
    turn = add_turn(scene.session, metadata=dict.fromkeys(keys, value))
    turn.refresh_from_db()
    row = add_row(scene.session, turn.pk, {"agent_disconnected": value, "status": "pending"})
    row.refresh_from_db()
    on = any(value is other or (value == other and type(value) is type(other)) for other in ON)
    assert {turn.dispatch_pending, turn.dispatch_attempted, turn.start_outbox, row.disconnected} == {on}


@pytest.mark.scenario("A4", "A5")
@pytest.mark.parametrize("value", [*ON, "no", 0])
def test_a_text_flag_reserves_like_a_json_flag(scene: Stage, value: Any) -> None:
    row = add_row(scene.session, add_turn(scene.session).pk)
    add_turn(scene.session, metadata={"prompt_dispatch_pending": value})
    assert counts(scene, row) is (value in ON)


WHOLE = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
TICK = dt.timedelta(microseconds=1)
LOW, HIGH = uuid.UUID(int=1), uuid.UUID(int=(1 << 128) - 1)


@pytest.mark.scenario("A6")
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ((WHOLE, WHOLE + 9 * TICK, HIGH), (WHOLE + TICK, WHOLE, LOW)),
        ((WHOLE, WHOLE, HIGH), (WHOLE, WHOLE + TICK, LOW)),
        ((WHOLE, WHOLE, LOW), (WHOLE, WHOLE, HIGH)),
        ((WHOLE - TICK, WHOLE, HIGH), (WHOLE, WHOLE, LOW)),
        ((WHOLE + 9 * TICK, WHOLE, HIGH), (WHOLE + 10 * TICK, WHOLE, LOW)),
    ],
)
@pytest.mark.parametrize("newer_first", [True, False])
def test_the_newest_turn_is_last_by_start_then_creation_then_id(
    scene: Stage, older: Any, newer: Any, newer_first: bool
) -> None:
    for started, created, pk in (newer, older) if newer_first else (older, newer):
        Turn.objects.create(session=scene.session, started_at=started, created_at=created, id=pk)
    assert not counts(scene, add_row(scene.session, older[2]))
    assert counts(scene, add_row(scene.session, newer[2]))


@pytest.mark.scenario("A6")
def test_ids_that_differ_only_in_their_last_digits_are_ordered_alike(scene: Stage) -> None:
    at = timezone.now()
    ids = [uuid.UUID(f"aaaaaaaa-aaaa-4aaa-aaaa-aaaaaaaaaa{end}") for end in ("09", "0a", "10", "9f", "a0")]
    for pk in (ids[2], ids[4], ids[0], ids[3], ids[1]):
        Turn.objects.create(session=scene.session, started_at=at, created_at=at, id=pk)
    assert list(Turn.objects.newest_first().values_list("pk", flat=True)) == ids[::-1]


@pytest.mark.scenario("A7")
@pytest.mark.parametrize("state", TERMINAL)
def test_an_ended_session_has_no_active_question_though_its_row_is_still_pending(scene: Stage, state: str) -> None:
    row = add_row(scene.session, add_turn(scene.session).pk)
    assert counts(scene, row)
    Session.objects.filter(pk=scene.session.pk).update(state=state)
    assert not counts(scene, row)
    assert bundles.state_of(bundles.reach(scene.person, row.pending_id)) == "terminal"


@pytest.mark.scenario("C8", "R45")
@pytest.mark.parametrize("named_first", [True, False])
def test_rows_with_an_empty_turn_id_take_the_turn_of_their_fellows(scene: Stage, named_first: bool) -> None:
    turn, pending_id = add_turn(scene.session), str(uuid.uuid4())
    named = add_row(scene.session, turn.pk, {"pending_id": pending_id}) if named_first else None
    add_row(scene.session, None, {"pending_id": pending_id, "question_id": "q2"})
    named = named or add_row(scene.session, turn.pk, {"pending_id": pending_id})
    assert counts(scene, named)
    assert bundles.reach(scene.person, pending_id).turn_id == turn.pk


@pytest.mark.scenario("A1", "A8", "C8")
def test_a_row_without_any_turn_or_with_a_turn_that_is_gone_is_inert(scene: Stage) -> None:
    add_turn(scene.session)
    assert not counts(scene, add_row(scene.session, None))
    assert not counts(scene, add_row(scene.session, uuid.uuid4()))
