"""What the OpenAPI page says of this layer's views: who calls, pages, and every error that a view may give."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers

STATUS_TEXTS = {
    400: "Invalid",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    413: "TooLarge",
}
STATUS_TEXTS |= {415: "UnsupportedType", 429: "TooMany", 500: "Failed", 503: "Unavailable"}


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "tasks.authentication.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "kdv_pat_ (a person), kdv_ses_ (a session's agent)"}


class CookieScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "tasks.authentication.CookieAuthentication"
    name = "cookie"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "signed in; writing needs the CSRF header",
        }


def _error(status: int) -> Any:
    fields: dict[str, Any] = {"error": serializers.CharField(), "code": serializers.CharField()}
    if status == 400:
        fields["fields"] = serializers.DictField()
    if status in (500, 503):
        fields["retryable"] = serializers.BooleanField()
    return inline_serializer(f"{STATUS_TEXTS[status]}Error", fields)


ERRORS = {status: _error(status) for status in STATUS_TEXTS}


def responses(success: dict[int, Any], *errors: int) -> dict[int, Any]:
    """The answers of a view: what it gives, the errors named, and those that any authenticated view may give."""
    return {**success, **{status: ERRORS[status] for status in sorted({401, 404, 429, 500, 503, *errors})}}


BODY_ERRORS = (400, 403, 413, 415)


def page_of(name: str, item: type[serializers.Serializer[Any]]) -> Any:
    return inline_serializer(
        f"{name}Page",
        {
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": item(many=True),
        },
    )


def query(name: str, kind: OpenApiTypes, description: str, enum: list[str] | None = None) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, description=description, enum=enum)


def path_id(name: str = "id") -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.UUID, OpenApiParameter.PATH)


PAGE = [
    query("cursor", OpenApiTypes.STR, "From `next` or `previous`."),
    OpenApiParameter(
        "limit", {"type": "integer", "minimum": 1}, OpenApiParameter.QUERY, description="At most 200, 50 by default."
    ),
]


def text_path(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, OpenApiParameter.PATH, description=description)
