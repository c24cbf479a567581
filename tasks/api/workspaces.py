"""`/workspaces`, `/workspaces/{id}` and its board."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from tasks import access, deleting, fields, openapi, pagination, shapes, sharing
from tasks.api.base import Api, caller, given
from tasks.api.tasks import TaskOut, shown_tasks
from tasks.errors import Forbidden
from tasks.models import Role, Task, TaskState, Workspace
from tasks.principals import Need, Principal


class MemberIO(serializers.Serializer[Any]):
    user = fields.Text(max_length=150)
    role = fields.Choice(choices=Role.choices)


class WorkspaceIn(serializers.Serializer[Any]):
    name = fields.Text(max_length=200)
    members = MemberIO(many=True, required=False)
    owner = fields.Text(max_length=150, allow_null=True, required=False)


class WorkspaceChange(serializers.Serializer[Any]):
    name = fields.Text(max_length=200, required=False)
    members = MemberIO(many=True, required=False)
    owner = fields.Text(max_length=150, allow_null=True, required=False)


class WorkspaceOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    owner = serializers.CharField(allow_null=True)
    members = MemberIO(many=True)
    created_at = serializers.DateTimeField()


class ColumnOut(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=TaskState.choices)
    tasks = TaskOut(many=True)


class BoardOut(serializers.Serializer[Any]):
    workspace = WorkspaceOut()
    columns = ColumnOut(many=True)


class Workspaces(Api):
    @extend_schema(
        operation_id="workspaces_list",
        parameters=openapi.PAGE,
        responses=openapi.responses({200: openapi.page_of("Workspace", WorkspaceOut)}, 400),
    )
    def get(self, request: Request) -> Response:
        """The caller's workspaces, oldest first."""
        rows = Workspace.objects.reachable(caller(request)).with_people()
        found, following, preceding = pagination.page(request, rows)
        return pagination.response([shapes.workspace(row) for row in found], following, preceding)

    @extend_schema(
        operation_id="workspaces_create",
        request=WorkspaceIn,
        responses=openapi.responses({201: WorkspaceOut}, *openapi.BODY_ERRORS),
    )
    def post(self, request: Request) -> Response:
        """A workspace that belongs to the caller, or to the `owner` he names."""
        principal = caller(request)
        if not (principal.user or principal.unscoped) or not principal.scope_allows(Need.WRITE):
            raise Forbidden("this token may not do that")
        data = given(request, WorkspaceIn)
        owner = sharing.owner_named(data["owner"]) if "owner" in data else principal.user
        made = sharing.create_workspace(owner, data["name"], _members(data) or ())
        return Response(_shown(made), 201)


class OneWorkspace(Api):
    @extend_schema(
        operation_id="workspaces_read", parameters=[openapi.path_id()], responses=openapi.responses({200: WorkspaceOut})
    )
    def get(self, request: Request, pk: str) -> Response:
        return Response(_shown(access.workspace(caller(request), pk)))

    @extend_schema(
        operation_id="workspaces_change",
        parameters=[openapi.path_id()],
        request=WorkspaceChange,
        responses=openapi.responses({200: WorkspaceOut}, *openapi.BODY_ERRORS),
    )
    def patch(self, request: Request, pk: str) -> Response:
        """Owner and admins may change what is given; `members` replaces all of them."""
        row = access.workspace(caller(request), pk, Need.WRITE)
        data = given(request, WorkspaceChange)
        sharing.change_workspace(
            row.pk,
            name=data.get("name"),
            owner=data.get("owner"),
            disown="owner" in data and data["owner"] is None,
            members=_members(data),
        )
        return Response(_shown(row))

    @extend_schema(
        operation_id="workspaces_delete",
        parameters=[openapi.path_id()],
        request=None,
        responses=openapi.responses({204: None}, 403),
    )
    def delete(self, request: Request, pk: str) -> Response:
        """With all its tasks; their live sessions are cancelled first."""
        deleting.delete_workspace(access.workspace(caller(request), pk, Need.WRITE).pk)
        return Response(status=204)


class Board(Api):
    @extend_schema(
        operation_id="workspaces_board", parameters=[openapi.path_id()], responses=openapi.responses({200: BoardOut})
    )
    def get(self, request: Request, pk: str) -> Response:
        """The workflow's columns with their tasks, archived ones left out."""
        principal = caller(request)
        row = access.workspace(principal, pk)
        return Response({"workspace": _shown(row), "columns": _columns(principal, row)})


def _columns(principal: Principal, workspace: Workspace) -> list[dict[str, Any]]:
    rows = Task.objects.reachable(principal).filter(workspace=workspace, archived_at__isnull=True)
    tasks = shown_tasks(rows.order_by("created_at", "id"))
    return [{"state": state.value, "tasks": [t for t in tasks if t["state"] == state]} for state in TaskState]


def _members(data: dict[str, Any]) -> list[sharing.Member] | None:
    return [sharing.Member(**member) for member in data["members"]] if "members" in data else None


def _shown(row: Workspace) -> dict[str, Any]:
    return shapes.workspace(Workspace.objects.with_people().get(pk=row.pk))
