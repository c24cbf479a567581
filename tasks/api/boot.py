"""`/boot`: what a client needs to start."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from tasks import openapi, shapes
from tasks.api.base import Api, caller
from tasks.api.sessions import SessionOut, shown_sessions
from tasks.api.tasks import TaskOut, shown_tasks
from tasks.api.workspaces import WorkspaceOut
from tasks.models import Session, Task, Workspace


class BootOut(serializers.Serializer[Any]):
    workspaces = WorkspaceOut(many=True)
    tasks = TaskOut(many=True)
    sessions = SessionOut(many=True)


class Boot(Api):
    @extend_schema(operation_id="boot", responses=openapi.responses({200: BootOut}))
    def get(self, request: Request) -> Response:
        """Workspaces, tasks that are not archived with their summaries repaired, and their sessions' projections."""
        principal = caller(request)
        workspaces = Workspace.objects.reachable(principal).with_people()
        tasks = Task.objects.reachable(principal).filter(archived_at__isnull=True)
        sessions = Session.objects.reachable(principal).filter(task__archived_at__isnull=True)
        return Response(
            {
                "workspaces": [shapes.workspace(row) for row in workspaces],
                "tasks": shown_tasks(tasks.order_by("created_at", "id")),
                "sessions": shown_sessions(sessions.order_by("created_at", "id")),
            }
        )
