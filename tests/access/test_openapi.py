"""The OpenAPI page tells the truth: whatever is sent by it, everything that comes back is described in it.

Each operation is asked as owner and as viewer, with valid and with invalid data, in this process.
"""

import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.access.cast import Cast

pytestmark = [pytest.mark.timeout(300)]
TRUE = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
CALLERS = ("owner", "viewer")
THINGS = {"workspaces": "workspace", "tasks": "task", "task-sessions": "session", "messages": "message"}
THINGS |= {"permissions": "permission"}


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """Requests come by WSGI here, and their end must not close what the test's transaction is on."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@cache
def described() -> Any:
    schema = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(public=True))  # type: ignore[no-untyped-call]
    schema.app = get_wsgi_application()
    return schema


def operations() -> list[tuple[str, str]]:
    paths = SchemaGenerator().get_schema(public=True)["paths"]  # type: ignore[no-untyped-call]
    return [(path, method) for path, methods in paths.items() for method in methods]


@pytest.mark.parametrize(("path", "method"), operations(), ids=lambda part: part.removeprefix("/api/v1/"))
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
def test_every_answer_is_described(cast: Cast, path: str, method: str, mode: GenerationMode) -> None:
    operation = described()[path][method]

    @settings(max_examples=5, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Case[Any]) -> None:
        for name in CALLERS:
            _fill(case, path, cast)
            bearer = {"Authorization": f"Bearer {cast.tokens[name]}"} if name in cast.tokens else {}
            with transaction.atomic():
                case.call_and_validate(checks=TRUE, headers=bearer)
                transaction.set_rollback(True)

    ask()


def _fill(case: Case[Any], path: str, cast: Cast) -> None:
    """Names something that is there; without, every call would be a 404."""
    if "id" in case.path_parameters:
        case.path_parameters["id"] = cast.ids[THINGS[path.split("/")[3]]]
    if "pending_id" in case.path_parameters:
        case.path_parameters["pending_id"] = cast.ids["past" if path.endswith("late-answer") else "open"]
    if isinstance(case.body, dict):
        named = {"session_id": cast.ids["session"], "workspace": cast.ids["workspace"]}
        case.body.update({key: value for key, value in named.items() if _is_id(case.body.get(key))})


def _is_id(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(uuid.UUID(value))
    except ValueError:
        return False
