"""Typed, indexed views of JSON metadata as database-generated columns, alike on SQLite and PostgreSQL.

The JSON stays the authority, so imported rows are right at the first read (R45). SQLite turns JSON `true` into 1 and
PostgreSQL into 'true'; both are accepted by `flag`, so the verdict is the same (promise A5).
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Case, F, Func, GeneratedField, Q, TextField, Value, When
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact
from django.db.models.sql.compiler import SQLCompiler

TRUE_TEXTS = ("true", "1")


class JSONText(Func):
    """The value under a top-level key as text; NULL when absent or JSON null."""

    output_field = TextField()

    def __init__(self, column: str, key: str) -> None:
        super().__init__(F(column), key=key)

    def as_sql(  # type: ignore[override]
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, Any]:
        template = "CAST(JSON_EXTRACT(%(expressions)s, '$.%(key)s') AS TEXT)"
        return super().as_sql(compiler, connection, template=template, **extra)

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> tuple[str, Any]:
        return super().as_sql(compiler, connection, template="(%(expressions)s ->> '%(key)s')", **extra)


def text(key: str) -> GeneratedField:
    """A stored text column of `metadata[key]`, "" when absent."""
    return GeneratedField(expression=_raw(key), output_field=TextField(), db_persist=True)


def flag(key: str) -> GeneratedField:
    """A stored boolean column of `metadata[key]`: true for JSON true, "true", "1" and 1 (promise A5)."""
    return GeneratedField(expression=_is_true(_raw(key)), output_field=BooleanField(), db_persist=True)


def _raw(key: str) -> Coalesce:
    return Coalesce(JSONText("metadata", key), Value("", output_field=TextField()))


def _is_true(raw: Coalesce) -> Case:
    return Case(
        *(When(_equals(raw, accepted), then=Value(True)) for accepted in TRUE_TEXTS),
        default=Value(False),
        output_field=BooleanField(),
    )


def _equals(raw: Coalesce, accepted: str) -> Q:
    return Q(Exact(raw, Value(accepted, output_field=TextField())))
