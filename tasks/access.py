"""Access functions: every route, page, socket, MCP tool and admin action gets its row by one of these (H1, H3, R43).

Unknown, malformed and foreign ids raise the same NotFound. Visible but not allowed raises Forbidden. The row is read
with its visibility in one query, so that a foreign id takes the same path as an unknown one.
"""

import uuid
from typing import TypeVar

from django.contrib.auth.models import User
from django.db.models import Case, Exists, Model, OuterRef, Q, QuerySet, When

from tasks import prepared
from tasks.errors import Forbidden, NotFound
from tasks.models import Session, Task, Workspace
from tasks.principals import Need, Principal
from tasks.querysets import session_condition, workspace_condition

M = TypeVar("M", bound=Model)


def read_id(text: object) -> uuid.UUID | None:
    """The UUID that `text` spells, with hyphens or without; None for everything else that Python's parser lets pass."""
    if not isinstance(text, str) or len(text) not in (32, 36):
        return None
    try:
        made = uuid.UUID(text)
    except ValueError:
        return None
    return made if text.lower() in (str(made), made.hex) else None


def parse_id(text: object) -> uuid.UUID:
    """A UUID from a path; NotFound for anything else, so that a malformed id looks like an unknown one."""
    made = read_id(str(text))
    if made is None:
        raise NotFound
    return made


def workspace(principal: Principal, pk: object, need: Need = Need.READ) -> Workspace:
    """A workspace that `principal` sees. NotFound, or Forbidden when he sees it and may not do `need`."""
    rows = Workspace.objects.reachable(principal)
    found = _one(rows, workspace_condition(principal, need), parse_id(pk), need)
    return _checked(found.first(), principal, need)


def task(principal: Principal, pk: object, need: Need = Need.READ) -> Task:
    """A task that `principal` sees; an agent sees that of its session. NotFound or Forbidden as above."""
    rows = Task.objects.reachable(principal)
    # Its sessions are many: a condition on them, taken as a column, would give a row for each.
    allowed = Q(Exists(Task.objects.reachable(principal, need).filter(pk=OuterRef("pk"))))
    return _checked(_one(rows, allowed, parse_id(pk), need).first(), principal, need)


def session(principal: Principal, pk: object, need: Need = Need.READ) -> Session:
    """A session with its task loaded. An agent reaches its own and may read and ask there, neither answer nor write."""
    made = parse_id(pk)
    if principal.user is not None and not principal.unscoped and principal.scope_allows(need):
        return _checked(_session_of_person.first(made, principal.user.pk, need), principal, need)
    return _checked(_sessions(principal, made, need).first(), principal, need)


@prepared.rows
def _session_of_person(pk: uuid.UUID, user_id: int, need: Need) -> QuerySet[Session]:
    """The commonest caller: one who sees by ownership or membership."""
    return _sessions(Principal(user=User(pk=user_id)), pk, need)


def _sessions(principal: Principal, pk: uuid.UUID, need: Need) -> QuerySet[Session]:
    rows = Session.objects.reachable(principal).select_related("task")
    return _one(rows, session_condition(principal, need, "pk", "task__workspace"), pk, need)


def _one(visible: QuerySet[M], allowed: Q, pk: uuid.UUID, need: Need) -> QuerySet[M]:
    """Sight and right in one statement: what is taken away or deleted in between cannot turn a 404 into a 403."""
    rows = visible.filter(pk=pk)
    if need is not Need.READ and allowed:  # an empty condition allows everything
        may = {"is_allowed": Case(When(allowed, then=True), default=False)}
        rows = rows.annotate(**may)
    return rows[:1]


def _checked(row: M | None, principal: Principal, need: Need) -> M:
    if row is None:
        raise NotFound
    if not principal.scope_allows(need):
        raise Forbidden("this token may not do that")
    if not getattr(row, "is_allowed", True):
        raise Forbidden
    return row
