"""The OpenAPI page tells the truth: whatever is sent by it, everything that comes back is described in it.

Each operation is asked as owner and as viewer, with valid and with invalid data, in this process; also the one that is
served beside Django.
"""

import asyncio
import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx2
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

from clarifications import responding
from clarifications.api import wait
from tasks import instances
from tasks.threads import in_thread
from tests.access import beside
from tests.access.cast import Cast, gather
from tests.support import climbing

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
WAIT = "/api/v1/clarification/{pending_id}/wait"


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
    """Of Django's views; what is served beside them has a test of its own."""
    paths = SchemaGenerator().get_schema(public=True)["paths"]  # type: ignore[no-untyped-call]
    return [(path, method) for path, methods in paths.items() for method in methods if path != WAIT]


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


def waits(mode: GenerationMode, examples: int) -> list[Case[Any]]:
    made: list[Case[Any]] = []

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None)
    @given(case=described()[WAIT]["get"].as_strategy(generation_mode=mode))
    def take(case: Case[Any]) -> None:
        made.append(case)

    take()
    return made


async def heard(case: Case[Any], pending_id: str, bearer: dict[str, str], bound: float = 0.05) -> httpx2.Response:
    """What is served beside Django answers; a wait that is valid is not held for as long as it asks."""
    query = dict(case.query or {})
    if isinstance(query.get("timeout_s", bound), int | float):
        query["timeout_s"] = min(query.get("timeout_s", bound), bound)
    address = WAIT.replace("{pending_id}", quote(pending_id, safe=""))
    return await beside.send(wait.application, case.method, address, bearer, params=query)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
async def test_every_answer_to_a_wait_is_described(transactional_db: None, mode: GenerationMode) -> None:
    cast, statuses = await in_thread(_gather), set()
    for case in await in_thread(waits, mode, 8):
        for name in (*CALLERS, "agent", "stranger", "revoked", "nobody"):
            bearer = {"Authorization": f"Bearer {cast.tokens[name]}"} if name in cast.tokens else {}
            for pending_id in (cast.ids["open"], cast.ids["past"], str(case.path_parameters["pending_id"])):
                got = await heard(case, pending_id, bearer)
                case.validate_response(got, checks=TRUE[1:])  # a 504 is how a wait ends
                assert got.status_code not in (500, 503)
                statuses.add(got.status_code)
    assert statuses >= {401, 403, 404, 504}


async def test_a_wait_that_is_answered_is_described(transactional_db: None) -> None:
    cast = await in_thread(_gather)
    (case,) = await in_thread(waits, GenerationMode.POSITIVE, 1)
    bearer = {"Authorization": f"Bearer {cast.tokens['agent']}"}
    case.query = {"timeout_s": 20}
    waiting = asyncio.ensure_future(heard(case, cast.ids["live"], bearer, bound=20))
    won = await in_thread(responding.respond, cast.stage.person, cast.ids["live"], climbing.answers())
    got = await waiting
    assert (got.status_code, got.json()) == (200, won["response"])
    case.validate_response(got, checks=TRUE)


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_a_wait_is_a_get_alone(transactional_db: None, method: str) -> None:
    """HEAD too: it would be taken for a waiter, get the answer and drop it."""
    cast = await in_thread(_gather)
    address = WAIT.replace("{pending_id}", cast.ids["open"])
    got = await beside.send(wait.application, method, address, {"Authorization": f"Bearer {cast.tokens['owner']}"})
    assert (got.status_code, got.headers["allow"]) == (405, "GET")
    assert method == "HEAD" or got.json()["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        *(
            (text, 400)
            for text in ("", "0", "-1", "nan", "inf", "1_0", "1e9", "abc", "\u0661", "+0.1", " 0.1", "9" * 400)
        ),
        *((text, 504) for text in ("0.05", "5e-2", ".05", "0.05&timeout_s=0.06", "x&timeout_s=0.05")),
    ],
)
async def test_the_bound_of_a_wait_is_a_plain_number(transactional_db: None, query: str, status: int) -> None:
    """Of two the last one counts, as everywhere."""
    cast = await in_thread(_gather)
    address = f"{WAIT.replace('{pending_id}', cast.ids['open'])}?timeout_s={quote(query, safe='&=')}"
    got = await beside.send(wait.application, "GET", address, {"Authorization": f"Bearer {cast.tokens['owner']}"})
    assert got.status_code == status
    assert status == 504 or list(got.json()["fields"]) == ["timeout_s"]


async def test_a_wait_at_an_unknown_host_is_refused_as_elsewhere(transactional_db: None) -> None:
    cast = await in_thread(_gather)
    address = WAIT.replace("{pending_id}", cast.ids["open"])
    headers = {"Authorization": f"Bearer {cast.tokens['owner']}", "Host": "evil.example"}
    got = await beside.send(wait.application, "GET", address, headers)
    assert (got.status_code, got.json()["code"]) == (400, "unknown_host")


def _gather() -> Cast:
    instances.register()
    return gather()
