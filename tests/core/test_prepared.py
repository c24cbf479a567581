"""Prepared statements are what their querysets say, on both databases, and cannot drift from them."""

import datetime as dt
import enum
import importlib
import inspect
import pkgutil
import uuid
from typing import Any, cast

import pytest
from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

import clarifications
import kandev
import tasks
import turns
from clarifications.models import Claim
from tasks import instances, prepared, registry
from tasks.models import Event, RateWindow, Session, Task
from tests.support.climbing import by_hand
from turns.models import Message

VALUES: dict[Any, Any] = {
    str: "it's 100%",
    int: 7,
    uuid.UUID: uuid.UUID(int=7),
    dt.datetime: dt.datetime(2031, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
    dict[str, Any]: {"status": "pending", "say": 'it\'s "100%"'},
    list[int]: [5, 3, 9, 4],  # a power of two of them: other lengths are filled up
    registry.Kinds: registry.kinds(),
    dt.timedelta: instances.lease(),
    list[uuid.UUID]: [uuid.UUID(int=number) for number in (5, 3, 9, 4)],
}


APART = {"asgi", "bench", "demo", "__main__", "migrations", "management"}


def load_everything() -> None:
    for package in (tasks, turns, clarifications, kandev):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not any(
                part in module.name for part in ("asgi", "bench", "demo", "__main__", "migrations", "management")
            ):
                importlib.import_module(module.name)


load_everything()
STATEMENTS = [statement for statement in prepared.ALL if not statement.name.startswith("tests.")]


def shapes(statement: prepared.Statement[Any]) -> list[dict[str, Any]]:
    """Arguments for a statement: one set for each value of what shapes it."""
    found: list[dict[str, Any]] = [{}]
    for name, kind in prepared.annotations(statement.build).items():
        if kind in VALUES:
            choices: list[Any] = [VALUES[kind]]
        else:
            choices = list(kind) if issubclass(kind, enum.Enum) else [True, False]
        found = [{**one, name: choice} for one in found for choice in choices]
    return found


def texts(sql: prepared.Sql) -> tuple[str, list[str]]:
    return sql[0], [str(getattr(parameter, "obj", parameter)) for parameter in sql[1]]


def test_there_are_prepared_statements() -> None:
    assert {"tasks.revisions._locked", "clarifications.claiming._asked"} <= {one.name for one in STATEMENTS}


@pytest.mark.scenario("A10")
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.name)
def test_a_prepared_statement_is_what_its_queryset_says(db: None, statement: prepared.Statement[Any]) -> None:
    for arguments in shapes(statement):
        with transaction.atomic():
            assert texts(statement.prepared(**arguments)) == texts(statement.fresh(**arguments)), arguments


@pytest.mark.parametrize(
    "statement", [one for one in STATEMENTS if isinstance(one, prepared.Rows)], ids=lambda one: one.name
)
def test_it_reads_what_its_queryset_reads(db: None, statement: "prepared.Rows[..., Any]") -> None:
    """Every parameter is taken from the rows of a question, so that there is something to read."""
    scene = by_hand()
    question = scene.ask(3)
    kinds: dict[Any, list[Any]] = {
        uuid.UUID: [scene.session.pk, scene.task.pk, scene.turn.pk, *(row.pk for row in question.rows)],
        list[uuid.UUID]: [[scene.session.pk], [scene.task.pk], [row.pk for row in question.rows]],
        str: [question.pending_id, "nothing"],
    }
    for arguments in shapes(statement):
        names = prepared.annotations(statement.build)
        for name in arguments:
            for value in kinds.get(names[name], []):
                given = {**arguments, name: value}
                with transaction.atomic():
                    expected: list[Any] = [*cast(QuerySet[Any], statement.build(**given))]
                    assert list(map(whole, statement(**given))) == list(map(whole, expected)), given


def whole(row: Any) -> Any:
    """A row with its annotations and the rows that were loaded with it."""
    if not isinstance(row, Model):
        return row
    own = {name: value for name, value in vars(row).items() if name != "_state"}
    return own, {name: whole(other) for name, other in row._state.fields_cache.items()}


def test_an_insert_is_what_django_would_say(db: None) -> None:
    scene, now = by_hand(), timezone.now()
    first, second = (
        Event(action=action, task_id=scene.task.pk, payload={"a": action}, owner=3, created_at=now)
        for action in ("one", "it's two")
    )
    prepared.insert(first)
    prepared.insert(second)
    stored = list(Event.objects.filter(task_id=scene.task.pk).order_by("id"))[-2:]
    assert [(row.action, row.payload, row.owner, row.created_at) for row in stored] == [
        ("one", {"a": "one"}, 3, now),
        ("it's two", {"a": "it's two"}, 3, now),
    ]
    assert {model for _, model in prepared._inserts} >= {Event}
    assert all(sql == prepared.insert_sql(model())[0] for (_, model), sql in prepared._inserts.items())


def test_a_change_says_how_many_rows_it_changed(db: None) -> None:
    RateWindow.objects.create(key="a", started_at=timezone.now(), count=1)
    assert [forget("a"), forget("a")] == [1, 0]


@prepared.delete
def forget(key: str) -> QuerySet[RateWindow]:
    return RateWindow.objects.filter(pk=key)


def test_a_lock_needs_a_transaction(transactional_db: None, database: str) -> None:
    @prepared.rows
    def locked(pk: uuid.UUID) -> QuerySet[Session]:
        return Session.objects.select_for_update(of=("self",)).filter(pk=pk)

    for _ in range(2):
        if database == "postgres":
            with pytest.raises(transaction.TransactionManagementError):
                locked(uuid.uuid4())


def test_a_clock_in_the_builder_is_refused(db: None) -> None:
    @prepared.rows
    def late(pk: uuid.UUID) -> QuerySet[Session]:
        return Session.objects.filter(pk=pk, created_at__lt=timezone.now())

    with pytest.raises(prepared.UnpreparedError):
        late(uuid.uuid4())


def test_a_parameter_that_is_not_used_is_refused(db: None) -> None:
    @prepared.rows
    def idle(pk: uuid.UUID, state: str) -> QuerySet[Session]:
        return Session.objects.filter(pk=pk)

    with pytest.raises(prepared.UnpreparedError):
        idle(uuid.uuid4(), "running")


def test_a_shape_that_follows_the_value_is_refused(db: None) -> None:
    """A builder that looks at its value would give one caller another's statement."""
    seen: list[str] = []

    @prepared.rows
    def moody(title: str) -> QuerySet[Task]:
        seen.append(title)
        return Task.objects.filter(title=title) if len(seen) % 2 else Task.objects.exclude(title=title)

    with pytest.raises(prepared.UnpreparedError):
        moody("x")


def test_every_list_length_reads_its_rows(db: None) -> None:
    @prepared.rows
    def some(ids: list[uuid.UUID]) -> QuerySet[Message]:
        return Message.objects.filter(pk__in=ids).order_by("created_at", "id")

    rows = by_hand().ask(4).rows
    for count in range(1, 5):
        assert some([row.pk for row in rows[:count]]) == rows[:count]
    assert len(some._made) == 3


def test_nothing_prepared_has_defaults() -> None:
    """A default would not be seen by the statement's shape."""
    for statement in STATEMENTS:
        parameters = inspect.signature(statement.build).parameters.values()
        assert all(one.default is inspect.Parameter.empty for one in parameters), statement.name


def test_a_claim_is_stored_by_the_prepared_insert() -> None:
    """What is not stored by Django's `save` has no listeners that would miss it."""
    from django.db.models import signals

    for signal in (signals.pre_save, signals.post_save):
        assert not any(signal.has_listeners(model) for model in (Claim, Event))
