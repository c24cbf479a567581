"""The OpenAPI page tells the truth about this layer: requests made from it get answers that it describes."""

from functools import cache
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.tasks.conftest import Scene

pytestmark = pytest.mark.once

TRUE = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
MINE = (
    ("/boot", "get"),
    ("/workspaces", "get post"),
    ("/workspaces/{id}", "get patch delete"),
    ("/workspaces/{id}/board", "get"),
    ("/tasks", "get post"),
    ("/tasks/{id}", "get patch delete"),
    ("/tasks/{id}/move", "post"),
    ("/tasks/{id}/task-sessions", "get post"),
    ("/task-sessions/{id}", "get"),
    ("/task-sessions/{id}/{verb}", "post"),
)


@cache
def described() -> Any:
    schema = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(public=True))  # type: ignore[no-untyped-call]
    schema.app = get_wsgi_application()
    return schema


@pytest.mark.parametrize(("path", "method"), [(path, one) for path, methods in MINE for one in methods.split()])
def test_answers_are_as_described(real_scene: Scene, path: str, method: str) -> None:
    operation = described()[f"/api/v1{path}"][method]
    mine = {"workspaces": real_scene.workspace.pk, "tasks": real_scene.task.pk, "task-sessions": real_scene.session.pk}

    @settings(max_examples=10, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def ask(case: Case[Any]) -> None:
        if "id" in case.path_parameters:
            case.path_parameters["id"] = str(mine[path.split("/")[1]])
        case.call_and_validate(checks=TRUE, headers={"Authorization": f"Bearer {real_scene['owner'].token}"})

    ask()


def test_every_operation_of_this_layer_is_described() -> None:
    paths = SchemaGenerator().get_schema(public=True)["paths"]  # type: ignore[no-untyped-call]
    for path, methods in MINE:
        assert set(paths[f"/api/v1{path}"]) == set(methods.split())
