"""`/task-sessions/{id}/turns`, `/task-sessions/{id}/messages`, `/messages/{id}` (contract 3)."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from tasks import access, fields, openapi, pagination
from tasks.api.base import Api, caller, given
from tasks.errors import invalid
from tasks.principals import Need
from turns import admitting, removing, shapes
from turns.models import Author, Message, MessageType, Turn

ADMISSION = openapi.query(
    "admission", OpenApiTypes.STR, "queued: only while the message waits in the queue", ["queued"]
)


class TurnOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    session_id = serializers.UUIDField()
    started_at = serializers.DateTimeField()
    completed_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class MessageOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    session_id = serializers.UUIDField()
    task_id = serializers.UUIDField()
    turn_id = serializers.UUIDField(allow_null=True)
    author_type = serializers.ChoiceField(choices=Author.choices)
    type = serializers.ChoiceField(choices=MessageType.choices)
    content = serializers.CharField(allow_blank=True)
    metadata = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class MessageIn(serializers.Serializer[Any]):
    content = fields.Text(trim_whitespace=False)
    client_message_id = fields.Key()


class AdmittedOut(serializers.Serializer[Any]):
    message = MessageOut()
    admission = serializers.ChoiceField(choices=["sent", "queued"])


class Turns(Api):
    @extend_schema(
        parameters=[openapi.path_id(), *openapi.PAGE],
        responses=openapi.responses({200: openapi.page_of("Turn", TurnOut)}, 400),
    )
    def get(self, request: Request, pk: str) -> Response:
        """Durable turns, oldest first; a reservation is hidden until it is published or a row references it."""
        session = access.session(caller(request), pk)
        rows = Turn.objects.filter(session=session).published()
        found, following, preceding = pagination.page(request, rows, ("started_at", "created_at", "id"))
        return pagination.response([shapes.turn(row) for row in found], following, preceding)


class Messages(Api):
    @extend_schema(
        parameters=[openapi.path_id(), *openapi.PAGE],
        responses=openapi.responses({200: openapi.page_of("Message", MessageOut)}, 400),
    )
    def get(self, request: Request, pk: str) -> Response:
        """The transcript, oldest first."""
        session = access.session(caller(request), pk)
        found, following, preceding = pagination.page(request, Message.objects.filter(session=session))
        return pagination.response([shapes.message(row, session) for row in found], following, preceding)

    @extend_schema(
        parameters=[openapi.path_id()],
        request=MessageIn,
        responses=openapi.responses({200: AdmittedOut, 201: AdmittedOut}, 409, *openapi.BODY_ERRORS),
    )
    def post(self, request: Request, pk: str) -> Response:
        """Sends a prompt to an idle session or queues it for a busy one, once per `client_message_id`."""
        session = access.session(caller(request), pk, Need.WRITE)
        data = given(request, MessageIn)
        admitted = admitting.admit(session.pk, data["content"], data["client_message_id"])
        return Response(admitted.body, admitted.status)


class OneMessage(Api):
    @extend_schema(parameters=[openapi.path_id(), ADMISSION], responses=openapi.responses({204: None}, 400, 403, 409))
    def delete(self, request: Request, pk: str) -> Response:
        """Removes one message; a bundle whose last pending row goes is over, a prompt in the queue leaves it.

        With `?admission=queued` only while it waits in the queue, else 409 `not_queued`.
        """
        wanted = request.query_params.get("admission", "")
        if wanted not in ("", "queued"):
            raise invalid("admission", "must be queued")
        removing.remove(caller(request), pk, only_queued=wanted == "queued")
        return Response(status=204)
