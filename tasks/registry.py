"""The registry of pending-action kinds. This layer knows no questions; a higher one registers what marks a session.

A kind gives `exists(session_reference)`: a condition that is true for a session with such an action open. The
projection of a session is made of these conditions, read now (promise I1). The lowest `rank` of several wins.
"""

import datetime as dt
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Case, CharField, Exists, Expression, OuterRef, QuerySet, Value, When


@dataclass(frozen=True)
class PendingKind:
    """One kind: its name on the wire, its condition, the URL name of its fragment, and since when it blocks."""

    name: str
    rank: int
    exists: Callable[[OuterRef], Exists]
    fragment: str
    since: Callable[[Sequence[uuid.UUID]], Mapping[uuid.UUID, dt.datetime]]


Kinds = tuple[PendingKind, ...]
_kinds: dict[str, PendingKind] = {}


def register(kind: PendingKind) -> None:
    _kinds[kind.name] = kind


def kinds() -> Kinds:
    """In the order of their rank; what a prepared statement with `pending_kind` in it is shaped by."""
    return tuple(sorted(_kinds.values(), key=lambda kind: kind.rank))


def pending_kind(reference: str = "pk") -> Expression:
    """The name of the pending action of the session at `reference` of a queryset's row, or ""."""
    whens = [When(kind.exists(OuterRef(reference)), then=Value(kind.name)) for kind in kinds()]
    return Case(*whens, default=Value(""), output_field=CharField())


def pending_kind_of_task(reference: str = "pk") -> Expression:
    """The same for the task at `reference`: of its sessions' actions the one with the lowest rank."""
    from tasks.models import Session

    sessions = Session.objects.filter(task=OuterRef(reference))
    whens = [When(Exists(sessions.filter(kind.exists(OuterRef("pk")))), then=Value(kind.name)) for kind in kinds()]
    return Case(*whens, default=Value(""), output_field=CharField())


def blocked_since(session_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, dt.datetime]:
    """Since when each of these sessions waits for a person; those that do not are left out."""
    found: dict[uuid.UUID, dt.datetime] = {}
    for kind in kinds() if session_ids else ():
        for session_id, since in kind.since(session_ids).items():
            found[session_id] = min(since, found.get(session_id, since))
    return found


def pending_action_of(session_id: uuid.UUID) -> str | None:
    """The pending action of one session, read now."""
    from tasks.models import Session

    rows: QuerySet[Session, str] = Session.objects.filter(pk=session_id).values_list(pending_kind(), flat=True)
    return rows.first() or None
