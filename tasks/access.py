"""Access functions: every route, page, socket, MCP tool and admin action gets its row through one of these (H1, H3, R43).

Unknown, malformed and foreign ids raise the same NotFound. Visible but not allowed raises Forbidden. The row is read with
its visibility in one query, so that a foreign id takes the same path as an unknown one.
"""

import uuid
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from tasks.errors import Forbidden, NotFound
from tasks.models import Session, Task, Workspace
from tasks.principals import Need, Principal
from tasks.querysets import workspace_condition

M = TypeVar("M", bound=Model)


def parse_id(text: object) -> uuid.UUID:
    """A UUID from a path; NotFound for anything else, so that a malformed id looks like an unknown one."""
    try:
        return uuid.UUID(str(text)) if len(str(text)) in (32, 36) else _not_found()
    except ValueError:
        return _not_found()


def _not_found() -> uuid.UUID:
    raise NotFound


def require(row: M | None, principal: Principal, need: Need, allowed: bool) -> M:
    """`row` when it is visible and `need` is allowed; NotFound or Forbidden else."""
    if row is None:
        raise NotFound
    if not principal.scope_allows(need):
        raise Forbidden("this token may not do that")
    if not allowed:
        raise Forbidden
    return row


def workspace(principal: Principal, pk: object, need: Need = Need.READ) -> Workspace:
    row = Workspace.objects.reachable(principal).filter(pk=parse_id(pk)).first()
    return require(row, principal, need, need is Need.READ or _allowed(Workspace.objects.filter(pk=row and row.pk), principal, need, ""))


def task(principal: Principal, pk: object, need: Need = Need.READ) -> Task:
    row = Task.objects.reachable(principal).filter(pk=parse_id(pk)).first()
    return require(row, principal, need, _task_allowed(row, principal, need))


def session(principal: Principal, pk: object, need: Need = Need.READ) -> Session:
    """A session with its task loaded. An agent reaches its own session and may write there what its token allows."""
    rows = Session.objects.reachable(principal).select_related("task").filter(pk=parse_id(pk))
    row = rows.first()
    return require(row, principal, need, row is not None and _task_allowed(row.task, principal, need))


def _task_allowed(row: Task | None, principal: Principal, need: Need) -> bool:
    if row is None or need is Need.READ or principal.unscoped:
        return row is not None
    if principal.is_agent:
        return False
    return _allowed(Task.objects.filter(pk=row.pk), principal, need, "workspace")


def _allowed(rows: QuerySet[Any], principal: Principal, need: Need, path: str) -> bool:
    return rows.filter(workspace_condition(principal, need, path)).exists()
