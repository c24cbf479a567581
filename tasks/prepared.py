"""Statements whose SQL Django makes once a process: most of a short statement's time is the making of its SQL.

A builder is a function that returns a queryset. Its parameters that are annotated as a text, a number, a UUID, a time,
a JSON object or a list of ids are what the statement is given at each run; any other (a Need, a flag) shapes it and has
a statement of its own. The builder runs twice for a shape, with other stand-ins each time: what differs apart from
their places was taken from somewhere else (a clock, a generation) and would be frozen, so it is refused.

The queryset stays the only source of the SQL. `fresh` says what the queryset would say now; a test holds every
statement, and the rows that it reads, against its queryset on both databases.
"""

import datetime as dt
import inspect
import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints

from django.db import DEFAULT_DB_ALIAS, connections, models, transaction
from django.db.models import QuerySet
from django.db.models.query import FlatValuesListIterable, ModelIterable, get_related_populators
from django.db.models.sql import DeleteQuery, InsertQuery, UpdateQuery

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=models.Model)
Change = tuple[QuerySet[Any], dict[str, Any]]
Sql = tuple[str, tuple[Any, ...]]

_numbers = itertools.count(1_700_000_000)
_LONG_AGO = dt.datetime(1900, 1, 1, tzinfo=dt.UTC)


class UnpreparedError(Exception):
    """The statement does not follow from its parameters alone, or does not use one of them."""


@dataclass(frozen=True)
class Kind:
    """A type of parameter: a value that nothing else has, and the field that adapts it to the database."""

    stand_in: Callable[[], Any]
    field: "models.Field[Any, Any] | None" = None
    listed: bool = False

    def adapted(self, value: Any, connection: Any) -> list[Any]:
        """The value, or those of a list, as the driver takes them."""
        values = value if self.listed else [value]
        field = self.field
        return values if field is None else [field.get_db_prep_value(one, connection, prepared=False) for one in values]


_number = Kind(lambda: next(_numbers))
_uuid = Kind(uuid.uuid4, models.UUIDField())
KINDS: dict[Any, Kind] = {
    str: Kind(lambda: f"stand-in {uuid.uuid4()}"),
    int: _number,
    uuid.UUID: _uuid,
    dt.datetime: Kind(lambda: _LONG_AGO + dt.timedelta(seconds=next(_numbers)), models.DateTimeField()),
    dict[str, Any]: Kind(lambda: {"stand-in": str(uuid.uuid4())}, models.JSONField()),
    list[int]: Kind(_number.stand_in, None, listed=True),
    list[uuid.UUID]: Kind(_uuid.stand_in, _uuid.field, listed=True),
}
ALL: "list[Statement[Any]]" = []


@dataclass(frozen=True)
class _Made:
    """A statement of one shape: its SQL, its parameters, and at which of these (by place) a given value goes."""

    sql: str
    fixed: tuple[Any, ...]
    places: tuple[tuple[int, str, int], ...]
    compiler: Any

    def parameters(self, given: dict[str, list[Any]]) -> tuple[Any, ...]:
        values = list(self.fixed)
        for place, name, index in self.places:
            values[place] = given[name][index]
        return tuple(values)


class Statement(Generic[P]):
    """What the kinds of statements share."""

    def __init__(self, build: Callable[P, Any]) -> None:
        self.build = build
        self.name = f"{build.__module__}.{build.__qualname__}"
        self.__doc__ = build.__doc__
        self.names = tuple(inspect.signature(build).parameters)
        self._kinds: dict[str, Kind] | None = None
        self._made: dict[tuple[Any, ...], _Made] = {}
        ALL.append(self)

    def prepared(self, *args: P.args, **kwargs: P.kwargs) -> Sql:
        """The SQL and the parameters of a run."""
        made, parameters = self._run(args, kwargs)
        return made.sql, parameters

    def fresh(self, *args: P.args, **kwargs: P.kwargs) -> Sql:
        """The same, made anew by the builder."""
        sql, parameters = self._compiler(self.build(*args, **kwargs)).as_sql()
        return sql, tuple(parameters)

    @property
    def kinds(self) -> dict[str, Kind]:
        """The parameters that are given at each run."""
        if self._kinds is None:
            hints = annotations(self.build)
            self._kinds = {name: KINDS[hints[name]] for name in self.names if hints[name] in KINDS}
        return self._kinds

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return dict(zip(self.names, args, strict=False)) | kwargs

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Made, tuple[Any, ...]]:
        connection = connections[DEFAULT_DB_ALIAS]
        values, kinds = self._named(args, kwargs), self.kinds
        given = {name: kind.adapted(_padded(values[name]), connection) for name, kind in kinds.items()}
        sizes = tuple(len(given[name]) for name, kind in kinds.items() if kind.listed)
        shape = {name: value for name, value in values.items() if name not in kinds}
        key = (connection.vendor, *sizes, *shape.values())
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(shape, {name: len(given[name]) for name in kinds})
        return made, made.parameters(given)

    def _make(self, shape: dict[str, Any], sizes: dict[str, int]) -> _Made:
        once, again = self._try(shape, sizes), self._try(shape, sizes)
        if (once.sql, once.places, _keys(once.fixed)) != (again.sql, again.places, _keys(again.fixed)):
            raise UnpreparedError(f"{self.name}: not the same statement twice")
        return once

    def _try(self, shape: dict[str, Any], sizes: dict[str, int]) -> _Made:
        lists = {name: [kind.stand_in() for _ in range(sizes[name])] for name, kind in self.kinds.items()}
        stand_ins = {name: lists[name] if kind.listed else lists[name][0] for name, kind in self.kinds.items()}
        compiler = self._compiler(self.build(**shape, **stand_ins))  # type: ignore[call-arg, arg-type]
        sql, parameters = compiler.as_sql()
        origin = {
            key: (name, index)
            for name, kind in self.kinds.items()
            for index, key in enumerate(_keys(kind.adapted(stand_ins[name], compiler.connection)))
        }
        found = [origin.get(key) for key in _keys(parameters)]
        if missing := set(origin.values()) - set(found):
            raise UnpreparedError(f"{self.name}: {missing} is no parameter of the statement")
        fixed = tuple(None if at else value for at, value in zip(found, parameters, strict=True))
        places = tuple((place, *at) for place, at in enumerate(found) if at)
        return _Made(sql, fixed, places, compiler)

    def _compiler(self, built: Any) -> Any:
        raise NotImplementedError


def forget() -> None:
    """Makes every statement anew at its next run; for tests that change what a builder calls."""
    for statement in ALL:
        statement._made.clear()  # noqa: SLF001 - same module


def annotations(build: Callable[..., Any]) -> dict[str, Any]:
    """Of its parameters; what it returns may be a name that is only there for type checkers."""
    stated = {name: kind for name, kind in build.__annotations__.items() if name != "return"}
    return get_type_hints(SimpleNamespace(__annotations__=stated), globalns=build.__globals__)


def _keys(parameters: Any) -> list[str]:
    """For comparing: an adapted JSON value is equal to nothing, and an adapted number has a type of its own."""
    plain = [getattr(parameter, "obj", parameter) for parameter in parameters]
    return [repr(int(value) if type(value).__mro__[-2] is int else value) for value in plain]


def _padded(value: Any) -> Any:
    """A list has the length of a power of two, its last id repeated, so that few lengths are made."""
    if not isinstance(value, list):
        return value
    return value + value[-1:] * ((1 << (len(value) - 1).bit_length()) - len(value))


class Rows(Statement[P], Generic[P, T]):
    """A SELECT; the call gives the list of what the queryset would."""

    def __init__(self, build: "Callable[P, QuerySet[Any, T]]") -> None:
        super().__init__(build)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> list[T]:
        made, parameters = self._run(args, kwargs)
        connection, compiler = connections[DEFAULT_DB_ALIAS], made.compiler
        if compiler.query.select_for_update and connection.get_autocommit():
            raise transaction.TransactionManagementError("a lock is for a transaction")
        with connection.cursor() as cursor:
            cursor.execute(made.sql, parameters)
            found = cursor.fetchall()
        return compiler.reader(found, connection)  # type: ignore[no-any-return]

    def first(self, *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The first row, of a builder that asks for no more."""
        return next(iter(self(*args, **kwargs)), None)

    def _compiler(self, built: Any) -> Any:
        compiler = built.query.get_compiler(DEFAULT_DB_ALIAS)
        compiler.iterable = built._iterable_class  # noqa: SLF001 - how Django would read these rows
        return compiler

    def _try(self, shape: dict[str, Any], sizes: dict[str, int]) -> _Made:
        made = super()._try(shape, sizes)
        kind = _READERS.get(made.compiler.iterable)
        if kind is None:
            raise UnpreparedError(f"{self.name}: nothing here reads a {made.compiler.iterable.__name__}")
        made.compiler.reader = kind(made.compiler)
        return made


class _Values:
    """Reads the only column of each row, as Django's `FlatValuesListIterable` does; the base of reading whole rows."""

    def __init__(self, compiler: Any) -> None:
        fields = [column[0] for column in compiler.select[: compiler.col_count]]
        compiler.connection = connections[DEFAULT_DB_ALIAS]
        self.converters = list(compiler.get_converters(fields).items())
        compiler.connection = None  # each run has its own

    def __call__(self, found: list[Any], connection: Any) -> list[Any]:
        return [row[0] for row in self.converted(found, connection)]

    def converted(self, found: list[Any], connection: Any) -> list[Any]:
        if not self.converters:
            return found
        rows = [list(row) for row in found]
        for row in rows:
            for place, (converters, expression) in self.converters:
                for convert in converters:
                    row[place] = convert(row[place], expression, connection)
        return rows


class _Models(_Values):
    """Makes model instances, as Django's `ModelIterable` does, but works out once what that does each time."""

    def __init__(self, compiler: Any) -> None:
        super().__init__(compiler)
        self.model, places = compiler.klass_info["model"], compiler.klass_info["select_fields"]
        self.own = slice(places[0], places[-1] + 1)
        self.names = [column[0].target.attname for column in compiler.select[self.own]]
        self.populators = get_related_populators(compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]
        self.annotations = list(compiler.annotation_col_map.items())

    def __call__(self, found: list[Any], connection: Any) -> list[Any]:
        return [self.made(row) for row in self.converted(found, connection)]

    def made(self, row: Any) -> Any:
        made = self.model.from_db(DEFAULT_DB_ALIAS, self.names, row[self.own])
        for populator in self.populators:
            populator.populate(row, made)
        for name, place in self.annotations:
            setattr(made, name, row[place])
        return made


_READERS: dict[Any, type[_Values]] = {ModelIterable: _Models, FlatValuesListIterable: _Values}


class Counted(Statement[P]):
    """A statement that says how many rows it changed."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> int:
        return _execute(*self.prepared(*args, **kwargs))


class Update(Counted[P]):
    """An UPDATE, of a builder that returns the queryset and the new values."""

    def __init__(self, build: Callable[P, Change]) -> None:
        super().__init__(build)

    def _compiler(self, built: Any) -> Any:
        found, values = built
        query = found.query.chain(UpdateQuery)
        query.add_update_values(values)
        query.clear_select_clause()
        return query.get_compiler(DEFAULT_DB_ALIAS)


class Delete(Counted[P]):
    """A DELETE of rows that nothing refers to and nobody listens for, in one statement."""

    def __init__(self, build: "Callable[P, QuerySet[Any]]") -> None:
        super().__init__(build)

    def _compiler(self, built: Any) -> Any:
        query = built.query.clone()
        query.__class__ = DeleteQuery
        return query.get_compiler(DEFAULT_DB_ALIAS)


_inserts: dict[tuple[str, type[models.Model]], str] = {}


def insert(row: M) -> M:
    """Stores a new row, as `save` would without signals; an id that the database gives is not read back."""
    connection = connections[DEFAULT_DB_ALIAS]
    fields = _written(type(row))
    key = (connection.vendor, type(row))
    if key not in _inserts:
        _inserts[key] = insert_sql(row)[0]
    values = [field.get_db_prep_save(field.pre_save(row, True), connection) for field in fields]
    _execute(_inserts[key], tuple(values))
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS  # noqa: SLF001 - as `save` does
    return row


def insert_sql(row: models.Model) -> Sql:
    """What Django's compiler makes of it."""
    query = InsertQuery(type(row))
    query.insert_values(_written(type(row)), [row])
    [(sql, parameters)] = query.get_compiler(DEFAULT_DB_ALIAS).as_sql()
    return sql, tuple(parameters)


def _written(model: type[models.Model]) -> "list[models.Field[Any, Any]]":
    fields = model._meta.local_concrete_fields  # noqa: SLF001 - Django's documented name
    return [field for field in fields if not field.generated and not isinstance(field, models.AutoField)]


def _execute(sql: str, parameters: tuple[Any, ...]) -> int:
    connection = connections[DEFAULT_DB_ALIAS]
    with transaction.mark_for_rollback_on_error(using=DEFAULT_DB_ALIAS), connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return int(cursor.rowcount)


rows, update, delete = Rows, Update, Delete
