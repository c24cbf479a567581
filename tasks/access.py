"""Access functions: every route, page, socket, MCP tool and admin action gets its row by one of these (H1, H3, R43).

Unknown, malformed and foreign ids raise the same NotFound. Visible but not allowed raises Forbidden. The row is read
with its visibility in one query, so that a foreign id takes the same path as an unknown one.
"""

import uuid
from typing import TypeVar

from django.db.models import Model, QuerySet

from tasks.errors import Forbidden, NotFound
from tasks.models import Session, Task, Workspace
from tasks.principals import Need, Principal

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
    row = Workspace.objects.reachable(principal).filter(pk=parse_id(pk)).first()
    return require(row, principal, need, Workspace.objects.reachable(principal, need))


def task(principal: Principal, pk: object, need: Need = Need.READ) -> Task:
    """A task that `principal` sees; an agent sees that of its session. NotFound or Forbidden as above."""
    row = Task.objects.reachable(principal).filter(pk=parse_id(pk)).first()
    return require(row, principal, need, Task.objects.reachable(principal, need))


def session(principal: Principal, pk: object, need: Need = Need.READ) -> Session:
    """A session with its task loaded. An agent reaches its own and may read and ask there, neither answer nor write."""
    row = Session.objects.reachable(principal).select_related("task").filter(pk=parse_id(pk)).first()
    return require(row, principal, need, Session.objects.reachable(principal, need))


def require(row: M | None, principal: Principal, need: Need, allowed: QuerySet[M]) -> M:
    """`row` when it is visible and among the `allowed` ones. Only what is visible costs the second query."""
    if row is None:
        raise NotFound
    if not principal.scope_allows(need):
        raise Forbidden("this token may not do that")
    if need is not Need.READ and not allowed.filter(pk=row.pk).exists():
        raise Forbidden
    return row
