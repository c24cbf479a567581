"""For negative controls: the guards against a second writer taken away, and that writer run in the gap."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import QuerySet

from tasks import prepared, revisions
from tasks.models import Session


@contextmanager
def no_locks(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No transactions and no row locks: whoever comes between two statements is seen by the second one only."""

    def read(session_id: uuid.UUID) -> Session:
        return Session.objects.get(pk=session_id)

    with monkeypatch.context() as patch:
        patch.setattr(transaction, "atomic", lambda *args, **kwargs: nullcontext())
        patch.setattr(revisions, "lock_session", read)
        patch.setattr(revisions, "require_transaction", lambda: None)
        patch.setattr(QuerySet, "select_for_update", lambda self, **kwargs: self.all())
        prepared.forget()
        try:
            yield patch
        finally:
            prepared.forget()


def first(patch: pytest.MonkeyPatch, where: Any, name: str, other: Callable[[], object]) -> list[object]:
    """When `where.name` is called for the first time, `other` runs before it; the list then holds its result."""
    original, results = getattr(where, name), list[object]()

    def call(*args: Any, **kwargs: Any) -> Any:
        patch.setattr(where, name, original)
        results.append(other())
        return original(*args, **kwargs)

    patch.setattr(where, name, call)
    return results


@contextmanager
def no_constraint(model: type[Any], name: str) -> Iterator[None]:
    """A named constraint taken away; the model's rows go before it comes back."""
    constraint = next(found for found in model._meta.constraints if found.name == name)
    with connection.schema_editor() as editor:
        editor.remove_constraint(model, constraint)
    try:
        yield
    finally:
        model.objects.all().delete()
        with connection.schema_editor() as editor:
            editor.add_constraint(model, constraint)
