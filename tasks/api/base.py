"""What every REST view shares: the caller, validated input, no metadata on OPTIONS, JSON for what does not exist."""

from typing import Any, cast

from django.http import HttpRequest
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tasks.errors import NotFound
from tasks.principals import Principal


class Api(APIView):
    metadata_class = None


def caller(request: Request) -> Principal:
    return cast(Principal, request.user)


def given(request: Request, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    """The validated body; Invalid names what is wrong, unknown fields are ignored."""
    made = serializer(data=request.data)
    made.is_valid(raise_exception=True)
    return dict(made.validated_data)


@extend_schema(exclude=True)
class Missing(Api):
    """Any address under /api/ that leads nowhere: the same bytes as an unknown id, whatever the method."""

    authentication_classes = ()
    permission_classes = ()

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        raise NotFound
