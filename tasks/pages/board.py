"""The board: columns by state, a card a task, and who needs a person."""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Case, Prefetch, Q, QuerySet, Value, When
from django.http import HttpResponse

from tasks import access, registry, summaries
from tasks.errors import NotFound
from tasks.models import Session, Task, TaskState, Workspace
from tasks.pages.base import PageRequest, page, show
from tasks.principals import Need, Principal

COLUMN_LIMIT = 100
ALONE_LIMIT = 1_000  # of a column that is looked at by itself
MOST = 10_000  # those that wait come first


@dataclass(frozen=True)
class Column:
    state: TaskState
    cards: list[Task]
    more: int


@page
def board(request: PageRequest, principal: Principal) -> HttpResponse:
    workspaces = list(Workspace.objects.reachable(principal))
    chosen = _chosen(request, principal)
    tasks = cards(principal, chosen)
    needs_me, alone = request.GET.get("filter") == "needs-me", _alone(request)
    context = {
        "columns": columns(needing(principal, tasks) if needs_me else tasks, alone),
        "needs_me": needs_me,
        "alone": alone,
        "waiting": needing(principal, tasks).count(),
        "workspaces": workspaces,
        "workspace": chosen,
        "writable": [row for row in Workspace.objects.reachable(principal, Need.WRITE) if chosen in (None, row)],
    }
    return show(request, principal, "tasks/columns.html" if request.htmx else "tasks/board.html", context)


def _chosen(request: PageRequest, principal: Principal) -> Workspace | None:
    given = request.GET.get("workspace", "")
    return access.workspace(principal, given) if given else None


def _alone(request: PageRequest) -> TaskState | None:
    """`?state=`: one column by itself, with more of its cards."""
    given = request.GET.get("state", "")
    if given and given not in TaskState:
        raise NotFound
    return TaskState(given) if given else None


def cards(principal: Principal, workspace: Workspace | None) -> QuerySet[Task]:
    """Tasks with their pending action, those that wait for somebody first, then the last changed."""
    rows = Task.objects.reachable(principal).filter(archived_at__isnull=True).with_pending()
    rows = rows.filter(workspace=workspace) if workspace else rows
    first = Case(When(pending_kind="", then=Value(1)), default=Value(0))
    return rows.order_by(first, "-updated_at", "-id")


def needing(principal: Principal, tasks: QuerySet[Task]) -> QuerySet[Task]:
    """Those with an action that this person may take."""
    mine = Task.objects.reachable(principal, Need.ANSWER).values("pk")
    return tasks.exclude(Q(pending_kind="")).filter(pk__in=mine)


def columns(tasks: QuerySet[Task], alone: TaskState | None = None) -> list[Column]:
    """Each column with its first cards and the number of the others, which are counted and not read."""
    limit, states = (ALONE_LIMIT, [alone]) if alone else (COLUMN_LIMIT, list(TaskState))
    tasks = tasks.filter(state__in=states)
    index = list(tasks.values_list("pk", "state", "pending_kind"))  # type: ignore[misc]
    totals, chosen = Counter(state for _, state, _ in index), _first(index, limit)
    sessions = Prefetch("sessions", Session.objects.order_by("-is_primary", "created_at", "id"))
    rows = list(tasks.filter(pk__in=chosen).select_related("workspace").prefetch_related(sessions))
    summaries.repair(rows)
    rows = _longest_blocked_first(rows)
    return [_column(state, [task for task in rows if task.state == state], totals[state], limit) for state in states]


def _first(index: list[tuple[UUID, str, str]], limit: int) -> list[UUID]:
    """Of each state the first `limit`, and all that wait: who has waited longest is found out afterwards."""
    seen: Counter[str] = Counter()
    chosen = []
    for pk, state, kind in index:
        seen[state] += 1
        if kind or seen[state] <= limit:
            chosen.append(pk)
    return chosen[:MOST]


def _longest_blocked_first(rows: list[Task]) -> list[Task]:
    """Each that waits for somebody learns since when."""
    waiting = [task for task in rows if task.pending_kind]
    since = registry.blocked_since([session.pk for task in waiting for session in task.sessions.all()])
    for task in waiting:
        times = [since[session.pk] for session in task.sessions.all() if session.pk in since]
        task.blocked_since = min(times, default=None)
    waiting.sort(key=lambda task: task.blocked_since or task.updated_at)
    return waiting + [task for task in rows if not task.pending_kind]


def _column(state: TaskState, rows: list[Task], total: int, limit: int) -> Column:
    shown = rows[:limit]
    return Column(state, shown, max(0, total - len(shown)))
