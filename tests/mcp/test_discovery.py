"""The list behind the tool and `GET /clarifications`: what it shows, whole pages, cursors, and its cost."""

import datetime as dt
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clarifications import discovering
from tasks import tokens
from tasks.errors import Invalid
from tasks.models import Membership, Role, Session, SessionState, Task, TokenKind, Workspace
from tasks.principals import Principal
from turns.models import Author, Message, MessageType, Turn

START = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)


@dataclass
class Shelf:
    """One workspace with one running session; `put` adds a bundle to it."""

    workspace: Workspace
    session: Session
    turn: Turn
    owner: Principal

    def put(self, at: dt.datetime = START, count: int = 1, pending_id: str = "", **over: Any) -> str:
        pending_id = pending_id or str(uuid.uuid4())
        for index in range(count):
            metadata = {
                "pending_id": pending_id,
                "question_id": f"q{index + 1}",
                "question": {"question_id": f"q{index + 1}", "prompt": "Which?", "options": []},
                "status": "pending",
            }
            add_row(self, at + dt.timedelta(microseconds=index), metadata | over.get("metadata", {}), over)
        return pending_id

    def listed(self, **arguments: Any) -> list[str]:
        return [one["pending_id"] for one in discovering.list_pending(self.owner, **arguments)["bundles"]]

    def pages(self, limit: int, **arguments: Any) -> Iterator[list[str]]:
        cursor = ""
        while True:
            page = discovering.list_pending(self.owner, cursor=cursor, limit=limit, **arguments)
            assert page["count"] == len(page["bundles"])
            yield [one["pending_id"] for one in page["bundles"]]
            cursor = page["next_cursor"]
            if not cursor:
                return


def add_row(shelf: Shelf, at: dt.datetime, metadata: dict[str, Any], over: dict[str, Any]) -> Message:
    fields = {"session": shelf.session, "turn_id": shelf.turn.pk, "type": MessageType.QUESTION, **over}
    fields |= {"metadata": metadata, "created_at": at, "updated_at": at, "author_type": Author.AGENT}
    return Message.objects.create(**fields)


def make_shelf(owner: User | None, workspace: Workspace | None = None) -> Shelf:
    workspace = workspace or Workspace.objects.create(name="w", owner=owner)
    task = Task.objects.create(workspace=workspace, title="t", created_at=START, updated_at=START)
    stamps = {"created_at": START, "last_activity_at": START, "agent": "demo", "state": SessionState.RUNNING}
    session = Session.objects.create(task=task, **stamps)
    turn = Turn.objects.create(session=session, started_at=START, created_at=START)
    return Shelf(workspace, session, turn, Principal(user=owner))


@pytest.fixture
def owner(db: None) -> User:
    return User.objects.create_user("owner")


@pytest.fixture
def shelf(owner: User) -> Shelf:
    return make_shelf(owner)


@pytest.mark.scenario("H7")
def test_bundles_come_oldest_first_and_ties_by_id(shelf: Shelf) -> None:
    tied = sorted(str(uuid.uuid4()) for _ in range(7))
    for pending_id in reversed(tied):
        shelf.put(START + dt.timedelta(hours=1), 2, pending_id)
    oldest, newest = shelf.put(count=4), shelf.put(START + dt.timedelta(hours=2))
    expected = [oldest, *tied, newest]
    assert shelf.listed() == expected
    for limit in (1, 2, 4, 9):
        pages = list(shelf.pages(limit))
        assert [one for page in pages for one in page] == expected
        assert {len(page) for page in pages[:-1]} <= {limit}


@pytest.mark.scenario("H7")
def test_pages_stay_whole_among_rows_that_do_not_count(shelf: Shelf, owner: User) -> None:
    """Foreign, historical and answered rows lie between; the strides of the walk pass them."""
    foreign = make_shelf(User.objects.create_user("other"))
    old = Turn.objects.create(session=shelf.session, started_at=START - dt.timedelta(1), created_at=START)
    mine = []
    for index in range(60):
        at = START + dt.timedelta(seconds=index)
        mine.append(shelf.put(at))
        for _ in range(5):
            foreign.put(at)
            shelf.put(at, turn_id=old.pk)
            shelf.put(at, metadata={"status": "answered"})
    assert [one for page in shelf.pages(7) for one in page] == mine
    assert [len(page) for page in shelf.pages(7)] == [7] * 8 + [4]


@pytest.mark.scenario("H7")
def test_a_cursor_survives_answers_and_new_questions(shelf: Shelf) -> None:
    mine = [shelf.put(START + dt.timedelta(seconds=index)) for index in range(6)]
    pages = shelf.pages(2)
    assert next(pages) == mine[:2]
    Message.objects.filter(pending_id__in=mine[:4]).update(metadata={"pending_id": "gone", "status": "answered"})
    shelf.put(START - dt.timedelta(seconds=1))
    new = shelf.put(START + dt.timedelta(seconds=9))
    assert [one for page in pages for one in page] == [*mine[4:], new]


@pytest.mark.scenario("H7")
def test_a_cursor_whose_rows_are_all_answered_ends_the_list(shelf: Shelf) -> None:
    shelf.put()
    shelf.put(START + dt.timedelta(seconds=1))
    cursor = discovering.list_pending(shelf.owner, limit=1)["next_cursor"]
    Message.objects.update(metadata={})
    assert discovering.list_pending(shelf.owner, cursor=cursor) == {"bundles": [], "count": 0, "next_cursor": ""}


@pytest.mark.scenario("H7")
def test_a_cursor_is_good_for_its_caller_its_filters_and_its_surface_alone(shelf: Shelf) -> None:
    member = User.objects.create_user("member")
    Membership.objects.create(workspace=shelf.workspace, user=member, role=Role.VIEWER)
    for index in range(3):
        shelf.put(START + dt.timedelta(seconds=index))
    cursor = discovering.list_pending(shelf.owner, limit=1)["next_cursor"]
    forged = signing.Signer(salt="another").sign_object([START.isoformat(), "x"])
    named = str(shelf.workspace.pk)
    none: dict[str, Any] = {}
    for principal, text, extra in (
        (Principal(user=member), cursor, none),
        (shelf.owner, cursor, {"workspace_id": named}),
        (shelf.owner, cursor, {"created_since": "2026-01-01T00:00:00Z"}),
        (shelf.owner, cursor, {"surface": "mcp"}),
        *((shelf.owner, text, none) for text in BROKEN),
        (shelf.owner, cursor[:-1], none),
        (shelf.owner, cursor[1:], none),
        (shelf.owner, forged, none),
    ):
        with pytest.raises(Invalid) as refused:
            discovering.list_pending(principal, cursor=text, **extra)
        assert list(refused.value.fields or {}) == ["cursor"]


BROKEN = ("null", "with space", "0", ":", "x" * 10_000, "a\0b", "a\ud800b", "é")


@pytest.mark.scenario("H7")
def test_of_a_foreign_or_unknown_workspace_there_is_nothing(shelf: Shelf) -> None:
    foreign = make_shelf(User.objects.create_user("other"))
    foreign.put()
    mine = shelf.put()
    assert shelf.listed(workspace_id=str(shelf.workspace.pk)) == [mine]
    assert shelf.listed(workspace_id=str(foreign.workspace.pk)) == []
    assert shelf.listed(workspace_id=str(uuid.uuid4())) == []


@pytest.mark.parametrize("text", ["5", "not-a-uuid", "{}", "a\0b", "x" * 300])
def test_a_malformed_workspace_id_is_named(shelf: Shelf, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        shelf.listed(workspace_id=text)
    assert list(refused.value.fields or {}) == ["workspace_id"]


@pytest.mark.scenario("H3")
def test_everybody_sees_what_he_may_read(shelf: Shelf) -> None:
    people = {name: User.objects.create_user(name) for name in ("viewer", "answerer", "stranger")}
    for role in (Role.VIEWER, Role.ANSWERER):
        Membership.objects.create(workspace=shelf.workspace, user=people[role.value], role=role)
    elsewhere = make_shelf(people["stranger"])
    mine, without = shelf.put(), make_shelf(None, Workspace.objects.create(name="nobody's"))
    elsewhere.put()
    Task.objects.filter(pk=without.session.task_id).update(workspace=None)
    without.put()
    agent = Principal(token=tokens.find(tokens.mint(TokenKind.SESSION, session=shelf.session)))
    for principal in (shelf.owner, Principal(user=people["viewer"]), Principal(user=people["answerer"]), agent):
        page = discovering.list_pending(principal)
        assert [one["pending_id"] for one in page["bundles"]] == [mine]
    assert discovering.list_pending(Principal())["count"] == 0
    runner = Principal(token=tokens.find(tokens.mint(TokenKind.RUNNER, name="r")))
    assert discovering.list_pending(runner)["count"] == 0
    assert discovering.list_pending(Principal(unscoped=True))["count"] == 3


@pytest.mark.scenario("G6", "A8")
@pytest.mark.parametrize("fault", ["no id", "empty id", "null id", "another turn", "another type", "another session"])
def test_a_bundle_that_nobody_could_answer_is_absent(shelf: Shelf, owner: User, fault: str) -> None:
    good, bad = shelf.put(count=2), shelf.put(count=2)
    other = Turn.objects.create(session=shelf.session, started_at=START - dt.timedelta(1), created_at=START)
    changes: dict[str, dict[str, Any]] = {
        "no id": {"metadata": {"pending_id": bad, "status": "pending"}},
        "empty id": {"metadata": {"pending_id": bad, "question_id": "", "status": "pending"}},
        "null id": {"metadata": {"pending_id": bad, "question_id": None, "status": "pending"}},
        "another turn": {"turn_id": other.pk},
        "another type": {"type": MessageType.TOOL},
        "another session": {"session": make_shelf(owner).session},
    }
    Message.objects.filter(pending_id=bad, metadata__question_id="q2").update(**changes[fault])
    assert shelf.listed() == [good]


@pytest.mark.scenario("A1", "A2", "A7", "F6")
def test_active_bundles_are_listed_and_no_others(shelf: Shelf) -> None:
    detached = shelf.put(metadata={"agent_disconnected": True})
    without_status = shelf.put(START + dt.timedelta(seconds=1), metadata={"status": None})
    half = shelf.put(START + dt.timedelta(seconds=2), 2)
    Message.objects.filter(pending_id=half, metadata__question_id="q1").update(
        metadata={"pending_id": half, "question_id": "q1", "status": "answered"}
    )
    for status in ("answered", "rejected", "cancelled", "expired", "odd"):
        shelf.put(metadata={"status": status})
    assert shelf.listed() == [detached, without_status, half]
    Turn.objects.create(session=shelf.session, started_at=timezone.now(), created_at=timezone.now())
    assert shelf.listed() == []


@pytest.mark.scenario("A7")
@pytest.mark.parametrize("state", [SessionState.COMPLETED, SessionState.FAILED, SessionState.CANCELLED])
def test_an_ended_session_has_nothing_open(shelf: Shelf, state: SessionState) -> None:
    shelf.put()
    Session.objects.update(state=state)
    assert shelf.listed() == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2026-01-31T12:00:00Z", 2),
        ("2026-01-31t13:00:00+01:00", 2),
        ("2026-01-31T12:00:00.000001Z", 1),
        ("2026-01-31T12:00:00.0000010000Z", 1),
        ("2026-01-31T12:00:01Z", 1),
        ("2026-01-31T12:00:02Z", 0),
        ("2026-01-31T12:00:00", None),
        ("2026-01-31", None),
        ("20260131T120000Z", None),
        ("2026-02-30T12:00:00Z", None),
        ("2026-01-31T25:00:00Z", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("yesterday", None),
        ("٢٠٢٦-01-31T12:00:00Z", None),
        ("a\0b", None),
    ],
)
def test_created_since_is_a_time_of_rfc_3339_or_named(shelf: Shelf, text: str, found: int | None) -> None:
    shelf.put(count=2)
    shelf.put(START + dt.timedelta(seconds=1))
    if found is not None:
        assert len(shelf.listed(created_since=text)) == found
        return
    with pytest.raises(Invalid) as refused:
        shelf.listed(created_since=text)
    assert list(refused.value.fields or {}) == ["created_since"]


@pytest.mark.parametrize(
    ("limit", "size"), [(0, 50), (-1, 50), (-(10**30), 50), (1, 1), (200, 200), (201, 200), (10**30, 200)]
)
def test_the_limit_is_fifty_and_at_most_two_hundred(shelf: Shelf, limit: int, size: int) -> None:
    for index in range(205):
        shelf.put(START + dt.timedelta(seconds=index))
    assert len(shelf.listed(limit=limit)) == size


@pytest.mark.parametrize("stride", [1, 100])
def test_a_page_takes_as_many_statements_whatever_its_size(shelf: Shelf, stride: int) -> None:
    for index in range(3 * stride):
        shelf.put(START + dt.timedelta(seconds=index), 4)
    with CaptureQueriesContext(connection) as seen:
        assert len(shelf.listed(limit=stride)) == stride
    assert len(seen.captured_queries) <= 6


@pytest.mark.scenario("H7")
def test_ten_thousand_bundles_are_walked_along_the_index(shelf: Shelf) -> None:
    rows = shelf.put()
    made = Message.objects.get(pending_id=rows)
    many = [
        Message(
            session=shelf.session,
            turn_id=shelf.turn.pk,
            type=made.type,
            author_type=made.author_type,
            metadata={**made.metadata, "pending_id": f"p{index}"},
            created_at=START + dt.timedelta(seconds=index),
            updated_at=START,
        )
        for index in range(10_000)
    ]
    Message.objects.bulk_create(many, batch_size=1000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    rows_ahead = discovering._visible(shelf.owner, "", "").order_by(*discovering.ORDER)[:100]
    assert "message_open_in_order" in rows_ahead.explain()
    assert len({one for page in shelf.pages(200) for one in page}) == 10_001


def test_rest_lists_the_same_and_names_what_is_wrong(shelf: Shelf, owner: User) -> None:
    ids = [shelf.put(START + dt.timedelta(seconds=index)) for index in range(3)]
    client = Client(headers={"Authorization": f"Bearer {tokens.mint(TokenKind.PERSONAL, user=owner)}"})
    first = client.get("/api/v1/clarifications", {"limit": "2"}).json()
    assert [one["pending_id"] for one in first["bundles"]] == ids[:2]
    assert set(first) == {"bundles", "count", "next_cursor"}
    then = client.get("/api/v1/clarifications", {"cursor": first["next_cursor"], "limit": "2"}).json()
    assert [[one["pending_id"] for one in then["bundles"]], then["next_cursor"]] == [ids[2:], ""]
    for name, value in (
        ("limit", "many"),
        ("limit", "1.5"),
        ("cursor", "x"),
        ("created_since", "x"),
        ("workspace_id", "x"),
    ):
        refused = client.get("/api/v1/clarifications", {name: value})
        assert (refused.status_code, list(refused.json()["fields"])) == (400, [name])
    for value in ("0", "-5", str(10**30), "-" + "9" * 400, ""):
        assert client.get("/api/v1/clarifications", {"limit": value}).status_code == 200
    assert Client().get("/api/v1/clarifications").status_code == 401
