"""`/tasks`, `/tasks/{id}` and its move."""

from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from tasks import (
    access,
    creating,
    deleting,
    editing,
    fields,
    moving,
    openapi,
    pagination,
    queries,
    registry,
    shapes,
    summaries,
)
from tasks.api.base import Api, caller, given
from tasks.errors import NotFound, ProjectionFailed, invalid
from tasks.models import Task, TaskState
from tasks.principals import Need, Principal

ACTIONS = ("clarification", "permission")
STATE = "May be repeated, not changed: tasks are moved by `POST /tasks/{id}/move`."


class SummaryOut(serializers.Serializer[Any]):
    revision = serializers.IntegerField()
    pending_action = serializers.CharField(allow_null=True)
    primary_session_pending_action = serializers.CharField(allow_null=True)


class TaskOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    workspace = serializers.UUIDField(allow_null=True)
    title = serializers.CharField()
    description = serializers.CharField()
    state = serializers.ChoiceField(choices=TaskState.choices)
    archived = serializers.BooleanField()
    primary_session = serializers.UUIDField(allow_null=True)
    pending_action = serializers.CharField(allow_null=True)
    primary_session_pending_action = serializers.CharField(allow_null=True)
    status_summary = SummaryOut(allow_null=True)
    status_summary_revision = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class TaskIn(serializers.Serializer[Any]):
    workspace = fields.Id()
    title = fields.Text(max_length=500)
    description = fields.OptionalText(trim_whitespace=False)
    agent = fields.OptionalText(max_length=200)
    prompt = fields.OptionalText(trim_whitespace=False)
    state = fields.Choice(choices=TaskState.choices, required=False, help_text=STATE)


class TaskChange(serializers.Serializer[Any]):
    workspace = fields.Id(required=False)
    title = fields.Text(max_length=500, required=False)
    description = fields.Text(allow_blank=True, trim_whitespace=False, required=False)
    archived = fields.Flag(required=False)
    primary_session = fields.Id(required=False)
    state = fields.Choice(choices=TaskState.choices, required=False, help_text=STATE)


class MoveIn(serializers.Serializer[Any]):
    state = fields.Choice(choices=TaskState.choices)


FILTERS = [
    openapi.query("workspace", OpenApiTypes.UUID, "Tasks of this workspace; of a foreign one there are none."),
    openapi.query("pending_action", OpenApiTypes.STR, "`none`: tasks that wait for nobody.", [*ACTIONS, "none"]),
    openapi.query("state", OpenApiTypes.STR, "Tasks in this column.", list(TaskState.values)),
    openapi.query("archived", OpenApiTypes.BOOL, "Archived tasks instead of the others."),
]


class Tasks(Api):
    @extend_schema(
        operation_id="tasks_list",
        parameters=[*FILTERS, *openapi.PAGE],
        responses=openapi.responses({200: openapi.page_of("Task", TaskOut)}, 400),
    )
    def get(self, request: Request) -> Response:
        """Tasks that the caller sees, oldest first, their summaries repaired on the way."""
        with ProjectionFailed.guard():
            rows = _filtered(request, Task.objects.reachable(caller(request)).with_pending())
            found, following, preceding = pagination.page(request, rows)
        return pagination.response(_shapes(found), following, preceding)

    @extend_schema(
        operation_id="tasks_create", request=TaskIn, responses=openapi.responses({201: TaskOut}, *openapi.BODY_ERRORS)
    )
    def post(self, request: Request) -> Response:
        """A task; `agent` makes its primary session and `prompt` starts that.

        When no runner can take the prompt now, task and session are kept and the prompt waits in the session's queue.
        """
        principal, data = caller(request), given(request, TaskIn)
        _keep_state(data, TaskState.TODO)
        workspace = access.workspace(principal, str(data["workspace"]), Need.WRITE)
        if data["prompt"] and not data["agent"]:
            raise invalid("agent", "a prompt needs an agent")
        made = creating.create_task(
            principal, workspace.pk, data["title"], data["description"], data["agent"], data["prompt"]
        )
        return Response(shown_task(made), 201)


class OneTask(Api):
    @extend_schema(
        operation_id="tasks_read", parameters=[openapi.path_id()], responses=openapi.responses({200: TaskOut})
    )
    def get(self, request: Request, pk: str) -> Response:
        return Response(shown_task(access.task(caller(request), pk)))

    @extend_schema(
        operation_id="tasks_change",
        parameters=[openapi.path_id()],
        request=TaskChange,
        responses=openapi.responses({200: TaskOut}, *openapi.BODY_ERRORS),
    )
    def patch(self, request: Request, pk: str) -> Response:
        """Changes what is given; the state has its own address. Archiving cancels the live sessions."""
        principal = caller(request)
        task = access.task(principal, pk, Need.WRITE)
        data = given(request, TaskChange)
        _keep_state(data, task.state)
        editing.edit_task(task.pk, **_changes(principal, data))
        return Response(shown_task(task))

    @extend_schema(
        operation_id="tasks_delete",
        parameters=[openapi.path_id()],
        request=None,
        responses=openapi.responses({204: None}, 403),
    )
    def delete(self, request: Request, pk: str) -> Response:
        """With its sessions, which are cancelled first."""
        deleting.delete_task(access.task(caller(request), pk, Need.WRITE).pk)
        return Response(status=204)


class Move(Api):
    @extend_schema(
        operation_id="tasks_move",
        parameters=[openapi.path_id()],
        request=MoveIn,
        responses=openapi.responses({200: TaskOut}, 409, *openapi.BODY_ERRORS),
    )
    def post(self, request: Request, pk: str) -> Response:
        """409 `pending_input` while a question of the task waits; 503 when that cannot be read."""
        task = access.task(caller(request), pk, Need.WRITE)
        moving.move(task.pk, TaskState(given(request, MoveIn)["state"]))
        return Response(shown_task(task))


def shown_task(task: Task) -> dict[str, Any]:
    """A task, read anew."""
    shown = shown_tasks(Task.objects.filter(pk=task.pk))
    if not shown:
        raise NotFound
    return shown[0]


def shown_tasks(rows: QuerySet[Task]) -> list[dict[str, Any]]:
    """Tasks with their pending actions and repaired summaries; ProjectionFailed when those cannot be read."""
    with ProjectionFailed.guard():
        tasks = list(rows.with_pending())  # type: ignore[attr-defined]
    return _shapes(tasks)


def _shapes(tasks: list[Task]) -> list[dict[str, Any]]:
    repaired = summaries.repair(tasks)
    return [shapes.task(task, repaired[task.pk]) for task in tasks]


def _filtered(request: Request, rows: QuerySet[Task]) -> QuerySet[Task]:
    workspace = queries.identifier(request, "workspace")
    state = queries.choice(request, "state", TaskState.values)
    rows = rows.filter(archived_at__isnull=not queries.flag(request, "archived"))
    rows = rows.filter(workspace=workspace) if workspace else rows
    rows = rows.filter(state=state) if state else rows
    names = dict.fromkeys((*ACTIONS, *(kind.name for kind in registry.kinds()), "none"))
    action = queries.choice(request, "pending_action", names)
    return rows.filter(Q(pending_kind="" if action == "none" else action)) if action else rows


def _keep_state(data: dict[str, Any], state: str) -> None:
    """Takes the state out; another one than the task's is refused, since only a move asks what holds the task."""
    if data.pop("state", state) != state:
        raise invalid("state", "is changed by POST /tasks/{id}/move alone")


def _changes(principal: Principal, data: dict[str, Any]) -> dict[str, Any]:
    """A new workspace is one where the caller may write as well."""
    if "workspace" in data:
        data["workspace_id"] = access.workspace(principal, str(data.pop("workspace")), Need.WRITE).pk
    return data
