"""Going from a task to the session that matters (promises J1-J4, J8, ruling R41): decided here, read anew each time.

What the person saw comes along as the task's summary revision and action. When it still holds, the newest input-capable
session with that action is chosen, before remembered and primary ones. When it changed, or nobody owns it, the task is
opened without a guess.
"""

import uuid

from django.db.models import Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse

from tasks import access
from tasks.models import Session, Task
from tasks.pages.base import PageRequest, page, wants_json
from tasks.principals import Principal

REMEMBER_S = 90 * 24 * 3600


@page
def open_task(request: PageRequest, principal: Principal, task_id: str) -> HttpResponse:
    task = access.task(principal, task_id)
    url = address(task, choose(request, principal, task))
    return JsonResponse({"url": url}) if wants_json(request) else redirect(url)


def choose(request: HttpRequest, principal: Principal, task: Task) -> Session | None:
    """The session to open, None = the task alone."""
    action, revision = current_action(task), str(task.summary_revision)
    seen = request.GET.get("action", action), request.GET.get("revision", revision)
    if seen != (action, revision):
        return None
    return owner_of(principal, task, action) if action else preferred(request, principal, task)


def current_action(task: Task) -> str:
    row = Task.objects.with_pending().filter(pk=task.pk).first()
    return row.pending_kind if row else ""


def owner_of(principal: Principal, task: Task, action: str) -> Session | None:
    """The newest input-capable session whose pending action is `action`."""
    mine = Session.objects.reachable(principal).filter(task=task).projected()
    return mine.filter(Q(input_capable=True, pending_kind=action)).newest_first().first()


def preferred(request: HttpRequest, principal: Principal, task: Task) -> Session | None:
    """The remembered session, else the primary one, else the newest."""
    sessions = list(Session.objects.reachable(principal).filter(task=task).newest_first())
    remembered = request.COOKIES.get(cookie_of(task.pk), "")
    by_id = {str(session.pk): session for session in sessions}
    primary = next((session for session in sessions if session.is_primary), None)
    return by_id.get(remembered) or primary or next(iter(sessions), None)


def address(task: Task, session: Session | None) -> str:
    url = reverse("tasks:task", args=[task.pk])
    return f"{url}?session={session.pk}" if session else url


def cookie_of(task_id: uuid.UUID) -> str:
    return f"session_{task_id.hex}"


def remember(response: HttpResponse, session: Session) -> None:
    """The browser keeps the choice, for this task's addresses only."""
    path = reverse("tasks:task", args=[session.task_id])
    response.set_cookie(
        cookie_of(session.task_id), str(session.pk), REMEMBER_S, path=path, httponly=True, samesite="Lax"
    )
