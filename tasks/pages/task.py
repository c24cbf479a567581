"""The task page: its sessions as tabs, and for the chosen one the places that higher layers fill."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from django.urls import reverse

from tasks import access, registry
from tasks.errors import NotFound
from tasks.models import Session, Task, TaskState
from tasks.pages import activation
from tasks.pages.base import PageRequest, may, page, show
from tasks.principals import Need, Principal


@page
def task(request: PageRequest, principal: Principal, task_id: str) -> HttpResponse:
    row = access.task(principal, task_id)
    sessions = sessions_of(principal, row)
    chosen = _chosen(request, principal, row, sessions)
    context = _context(principal, row, sessions, chosen)
    response = show(request, principal, "tasks/head.html" if request.htmx else "tasks/task.html", context)
    if chosen is not None:
        activation.remember(response, chosen)
    return response


def sessions_of(principal: Principal, task: Task) -> list[Session]:
    """Oldest first, each with its pending action and the revision that was read in the same statement."""
    rows = Session.objects.reachable(principal).filter(task=task).with_pending().order_by("created_at", "id")
    return list(rows)


def _chosen(request: PageRequest, principal: Principal, task: Task, sessions: Sequence[Session]) -> Session | None:
    """The session of the address; without one the remembered, then the primary one. A foreign id is not found (R43)."""
    given = request.GET.get("session", "")
    if not given:
        wanted = activation.preferred(request, principal, task)
        return next((row for row in sessions if row == wanted), None)
    wanted_id = access.parse_id(given)
    found = next((row for row in sessions if row.pk == wanted_id), None)
    if found is None:
        raise NotFound
    return found


def _context(principal: Principal, task: Task, sessions: list[Session], chosen: Session | None) -> dict[str, Any]:
    return {
        "task": task,
        "sessions": sessions,
        "session": chosen,
        "states": TaskState,
        "may_write": may(access.task, principal, task.pk, Need.WRITE),
        "may_answer": may(access.task, principal, task.pk, Need.ANSWER),
        "pending_fragments": [reverse(kind.fragment, args=[chosen.pk]) for kind in registry.kinds()] if chosen else [],
    }


@page
def switcher(request: PageRequest, principal: Principal) -> HttpResponse:
    """The short list of tasks beside a task page, on a phone in a sheet: those that wait first."""
    from tasks.pages.board import cards

    over = Q(state=TaskState.DONE, pending_kind="")
    rows = cards(principal, None).exclude(over)[:60]
    return show(request, principal, "tasks/switcher.html", {"tasks": rows, "current": request.GET.get("current", "")})
