"""`GET /clarifications`: the rows of the MCP list tool over REST (contract 3)."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from clarifications import discovering
from clarifications.api import schemas
from tasks import openapi
from tasks.api.base import Api, caller
from tasks.errors import invalid


class ListedQuestion(schemas.QuestionOut):
    """A listed question is open: it has no response."""

    response = None  # type: ignore[assignment]


class ListedBundle(serializers.Serializer[Any]):
    pending_id = serializers.CharField()
    task_id = serializers.UUIDField()
    session_id = serializers.UUIDField()
    created_at = serializers.DateTimeField()
    age_seconds = serializers.FloatField(min_value=0)
    context = serializers.CharField(allow_blank=True)  # type: ignore[assignment]
    questions = ListedQuestion(many=True)


class PendingOut(serializers.Serializer[Any]):
    bundles = ListedBundle(many=True)
    count = serializers.IntegerField(min_value=0)
    next_cursor = serializers.CharField(allow_blank=True, help_text="Empty on the last page.")


FILTERS = [
    openapi.query("workspace_id", OpenApiTypes.UUID, "Questions of this workspace; of a foreign one there are none."),
    openapi.query("created_since", OpenApiTypes.DATETIME, "Questions since then (RFC 3339)."),
    openapi.query("cursor", OpenApiTypes.STR, "`next_cursor` of the page before, with the same filters."),
    openapi.query("limit", OpenApiTypes.INT, "50 if absent or below 1, at most 200."),
]


class Pending(Api):
    @extend_schema(
        operation_id="clarifications_pending",
        summary="Open questions that the caller may see, oldest first",
        parameters=FILTERS,
        responses=openapi.responses({200: PendingOut}, 400),
    )
    def get(self, request: Request) -> Response:
        given = request.query_params
        page = discovering.list_pending(
            caller(request),
            given.get("workspace_id", ""),
            given.get("created_since", ""),
            given.get("cursor", ""),
            _limit(given.get("limit", "")),
        )
        return Response(page)


def _limit(text: str) -> int:
    """A whole number of any size; nothing is the default."""
    digits = text.removeprefix("-")
    if text and not (digits.isascii() and digits.isdigit()):
        raise invalid("limit", "must be a whole number")
    return int(text[:9] or 0)
