"""`/tasks/{id}/task-sessions`, `/task-sessions/{id}` and the three ways in which a session ends."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from tasks import access, creating, ending, fields, openapi, pagination, shapes
from tasks.api.base import Api, caller, given
from tasks.errors import NotFound, ProjectionFailed
from tasks.models import Session, SessionState
from tasks.principals import Need

ENDS = {"complete": SessionState.COMPLETED, "fail": SessionState.FAILED, "cancel": SessionState.CANCELLED}


class RevisionOut(serializers.Serializer[Any]):
    epoch = serializers.RegexField(r"^\d+$")
    sequence = serializers.IntegerField()


class SessionOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    task_id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=SessionState.choices)
    is_primary = serializers.BooleanField()
    input_capable = serializers.BooleanField()
    agent = serializers.CharField()
    pending_action = serializers.CharField(allow_null=True)
    pending_action_revision = RevisionOut()
    created_at = serializers.DateTimeField()
    last_activity_at = serializers.DateTimeField()


class SessionIn(serializers.Serializer[Any]):
    agent = fields.Text(max_length=200)
    prompt = fields.OptionalText(trim_whitespace=False)
    is_primary = fields.Flag(required=False, allow_null=True)


class TaskSessions(Api):
    @extend_schema(
        operation_id="sessions_list",
        parameters=[openapi.path_id(), *openapi.PAGE],
        responses=openapi.responses({200: openapi.page_of("Session", SessionOut)}, 400),
    )
    def get(self, request: Request, pk: str) -> Response:
        """The task's sessions, oldest first. If the projection fails, the whole answer is 500 `projection_failed`."""
        principal = caller(request)
        rows = Session.objects.reachable(principal).filter(task=access.task(principal, pk))
        with ProjectionFailed.guard():
            found, following, preceding = pagination.page(request, rows.projected())
        return pagination.response([shapes.session(row) for row in found], following, preceding)

    @extend_schema(
        operation_id="sessions_create",
        parameters=[openapi.path_id()],
        request=SessionIn,
        responses=openapi.responses({201: SessionOut}, 409, *openapi.BODY_ERRORS),
    )
    def post(self, request: Request, pk: str) -> Response:
        """A session; its prompt is admitted once it exists, and an error of that leaves the session in place."""
        principal = caller(request)
        task, data = access.task(principal, pk, Need.WRITE), given(request, SessionIn)
        made = creating.create_session(principal, task.pk, data["agent"], data["prompt"], data.get("is_primary"))
        return Response(shown_session(made), 201)


class OneSession(Api):
    @extend_schema(
        operation_id="sessions_read", parameters=[openapi.path_id()], responses=openapi.responses({200: SessionOut})
    )
    def get(self, request: Request, pk: str) -> Response:
        return Response(shown_session(access.session(caller(request), pk)))


class EndSession(Api):
    @extend_schema(
        parameters=[openapi.path_id()], request=None, responses=openapi.responses({200: SessionOut}, 403, 409)
    )
    def post(self, request: Request, pk: str, verb: str) -> Response:
        """Ends the session, its open questions expire; again is a no-op, another end 409 `session_unavailable`."""
        session = access.session(caller(request), pk, Need.WRITE)
        ending.end_session(session.pk, ENDS[verb])
        return Response(shown_session(session))


def shown_session(session: Session) -> dict[str, Any]:
    """A session, read anew."""
    shown = shown_sessions(Session.objects.filter(pk=session.pk))
    if not shown:
        raise NotFound
    return shown[0]


def shown_sessions(rows: QuerySet[Session]) -> list[dict[str, Any]]:
    """Sessions with projection and revision; ProjectionFailed when those cannot be read."""
    with ProjectionFailed.guard():
        return [shapes.session(row) for row in rows.projected()]  # type: ignore[attr-defined]
