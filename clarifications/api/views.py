"""`/clarification/…` (contract 3-5), but for `wait`, which is served beside Django (`clarifications.api.wait`)."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clarifications import asking, bundles, closing, late, responding, shapes
from clarifications.api import schemas
from tasks import openapi
from tasks.api.base import Api, caller
from tasks.errors import Invalid
from turns.api.views import AdmittedOut

PENDING = openapi.text_path("pending_id", "the request's id")


class Ask(Api):
    @extend_schema(
        request=schemas.AskIn,
        responses=openapi.responses({200: schemas.AskedOut, 201: schemas.AskedOut}, 409, *openapi.BODY_ERRORS),
    )
    def post(self, request: Request) -> Response:
        """Stores the questions in the session's current turn (201), or joins the same active ones (200)."""
        body = _object(request)
        asked = asking.ask(
            caller(request),
            body.get("session_id"),
            body.get("questions"),
            body.get("context") or _text(body, "context"),
        )
        return Response({"pending_id": asked.pending_id}, 201 if asked.created else 200)


class OneBundle(Api):
    @extend_schema(parameters=[PENDING], responses=openapi.responses({200: schemas.BundleOut}))
    def get(self, request: Request, pending_id: str) -> Response:
        """The bundle, also when nobody waits any more."""
        bundle = bundles.reach(caller(request), pending_id)
        state = bundles.state_of(bundle)
        return Response(shapes.bundle(bundle.rows, state, bundle.session.task_id, bundle.turn_id))


class Respond(Api):
    @extend_schema(
        parameters=[PENDING],
        request=schemas.AnswerIn,
        responses=openapi.responses({200: schemas.OutcomeOut}, 409, *openapi.BODY_ERRORS),
    )
    def post(self, request: Request, pending_id: str) -> Response:
        """Answers or rejects; exactly one caller wins, the others are told what the winner said."""
        return Response(responding.respond(caller(request), pending_id, request.data))


class Cancel(Api):
    @extend_schema(
        parameters=[PENDING], request=None, responses=openapi.responses({200: schemas.CancelledOut}, 403, 409)
    )
    def post(self, request: Request, pending_id: str) -> Response:
        """Ends a live request; 404 without a waiter, 409 `not_active` when an answer won first."""
        closing.cancel(caller(request), pending_id)
        return Response({"success": True})


class LateAnswer(Api):
    @extend_schema(
        parameters=[PENDING],
        request=schemas.LateIn,
        responses=openapi.responses({200: AdmittedOut, 201: AdmittedOut}, 409, *openapi.BODY_ERRORS),
    )
    def post(self, request: Request, pending_id: str) -> Response:
        """Sends an answer to a superseded or expired question as one ordinary message to its own session."""
        key = request.data.get("client_message_id") if isinstance(request.data, dict) else None
        admitted = late.answer(caller(request), pending_id, request.data, key)
        return Response(admitted.body, admitted.status)


def _object(request: Request) -> dict[str, Any]:
    if not isinstance(request.data, dict):
        raise Invalid("the body must be an object")
    return request.data


def _text(body: dict[str, Any], key: str) -> object:
    return "" if body.get(key) is None else body[key]
