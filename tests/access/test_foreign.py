"""What is not the caller's looks like what does not exist: the same bytes, and the same way through the database."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.access import calling, reading, table
from tests.access.cast import Cast, unknown

pytestmark = [pytest.mark.scenario("H1"), pytest.mark.timeout(300)]
ROWS = [row for row in reading.rows(table.REST + table.PAGES.lstrip()) if "{" in row and "{token}" not in row]
VARYING = re.compile(rb'(name="csrfmiddlewaretoken" value=|X-CSRFToken[^:]*: )"[^"]+"')


def heard(client: Client, row: str, ids: dict[str, str]) -> tuple[Any, int]:
    """Status, body and headers; and how many statements it took."""
    with CaptureQueriesContext(connection) as queries:
        response = calling.ask(client, row, ids)
    headers = {name: text for name, text in response.headers.items() if name not in ("Set-Cookie", "Expires")}
    return (response.status_code, VARYING.sub(b"", response.content), headers), len(queries)


def callers(cast: Cast, part: str) -> Iterator[tuple[str, Client]]:
    """Pages know cookies alone."""
    yield "stranger", cast.cookie("stranger")
    if part == "/api/":
        yield "foreign", cast.bearer("foreign")
        yield "runner", cast.bearer("runner")


@pytest.mark.parametrize("part", ["/api/", "/tasks", "/sessions", "/questions"])
def test_a_foreign_id_is_answered_as_an_unknown_one(cast: Cast, part: str) -> None:
    nothing = unknown(cast.ids)
    rows = [row for row in ROWS if row.split(" ")[1].startswith(part)]
    assert rows
    for name, client in callers(cast, part):
        for row in rows:
            foreign, missing = heard(client, row, cast.ids), heard(client, row, nothing)
            assert foreign == missing, (name, row)


def test_another_session_s_agent_is_told_the_same_of_this_one_and_of_none(cast: Cast) -> None:
    nothing = unknown(cast.ids)
    for row in (row for row in ROWS if "{task}" not in row and " /api/" in row):
        client = cast.bearer("other agent")
        assert heard(client, row, cast.ids) == heard(client, row, nothing), row


BODIES = {
    "POST /api/v1/tasks": {"workspace": "{workspace}", "title": "new"},
    "POST /api/v1/clarification/request": {"session_id": "{session}", "questions": []},
}
FILTERS = (
    "GET /api/v1/tasks?workspace={workspace}",
    "GET /api/v1/clarifications?workspace_id={workspace}",
    "GET /questions?workspace={workspace}",
    "GET /tasks?current={task}",
)


@pytest.mark.parametrize("row", [*BODIES, *FILTERS])
def test_an_id_in_a_body_or_a_filter_tells_as_little(cast: Cast, row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "BODIES", BODIES)
    client = cast.bearer("foreign") if " /api/" in row else cast.cookie("stranger")
    assert heard(client, row, cast.ids) == heard(client, row, unknown(cast.ids))


@pytest.mark.parametrize("row", sorted({row for row in ROWS if "{open}" in row or "{past}" in row}))
def test_a_malformed_id_is_answered_as_an_unknown_one(cast: Cast, row: str) -> None:
    client = cast.browser("stranger")
    unknown_one = heard(client, row, unknown(cast.ids))[0]
    for text in ("null", "-1", "9" * 30, "%00", "%ED%A0%80", "x" * 300, "%20"):
        assert heard(client, row, dict.fromkeys(cast.ids, text))[0] == unknown_one, text
