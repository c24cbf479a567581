"""`/permissions/{id}/answer`: a person decides what an agent asked leave for."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from tasks import fields, openapi, rates
from tasks.api.base import Api, caller, given
from turns import permitting


class PermissionIn(serializers.Serializer[Any]):
    option_id = fields.Text(trim_whitespace=False)


class PermissionOut(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    claimed = serializers.BooleanField()
    option_id = serializers.CharField()


class AnswerPermission(Api):
    @extend_schema(
        parameters=[openapi.path_id()],
        request=PermissionIn,
        responses=openapi.responses({200: PermissionOut}, 409, *openapi.BODY_ERRORS),
    )
    def post(self, request: Request, pk: str) -> Response:
        """Picks one offered option; exactly one caller wins, the others are told the winner's choice.

        `id` is the id of the message of type `permission_request`.
        """
        asked = permitting.reach(caller(request), pk)
        rates.count_answer(caller(request))
        return Response(permitting.answer(asked, given(request, PermissionIn)["option_id"]))
