"""One request of the table: an address with the names of things in it, and a body where the method needs one."""

import json
from typing import Any

from django.db import transaction
from django.test import Client

from tests.access.cast import Cast
from tests.support import climbing

FORM = "application/x-www-form-urlencoded"

# What is sent along. Everything else goes without a body.
BODIES: dict[str, Any] = {
    "POST /api/v1/workspaces": {"name": "new"},
    "PATCH /api/v1/workspaces/{workspace}": {"name": "new"},
    "POST /api/v1/tasks": {"workspace": "{workspace}", "title": "new"},
    "PATCH /api/v1/tasks/{task}": {"title": "new"},
    "POST /api/v1/tasks/{task}/move": {"state": "todo"},
    "POST /api/v1/tasks/{task}/task-sessions": {"agent": "demo"},
    "POST /api/v1/task-sessions/{session}/messages": {"content": "more"},
    "POST /api/v1/clarification/request": {"session_id": "{session}", "questions": climbing.questions(2)},
    "POST /api/v1/clarification/{open}/respond": climbing.SKIP,
    "POST /api/v1/clarification/{past}/late-answer": climbing.answers(),
    "POST /api/v1/permissions/{permission}/answer": {"option_id": "yes"},
    "PUT /questions/{open}/draft": {"answers": []},
    "POST /questions/{open}/answer": "skip=1",
    "POST /accounts/login/": "username=a-viewer&password=pass-Zq7",
    "POST /settings/tokens": "name=mine&scope=read",
}

QUERIES = {"GET /admin/autocomplete/": "?app_label=tasks&model_name=membership&field_name=user"}


def place(text: Any, ids: dict[str, str]) -> Any:
    """The ids in place of their names, in an address or anywhere in a body."""
    if isinstance(text, dict):
        return {key: place(value, ids) for key, value in text.items()}
    if not isinstance(text, str):
        return text
    for name, value in ids.items():
        text = text.replace("{" + name + "}", value)
    return text


def ask(client: Client, row: str, ids: dict[str, str]) -> Any:
    """The response to a row as this client; nothing of it stays in the database."""
    method, path = row.split(" ", 1)
    body = place(BODIES.get(row), ids)
    kind = FORM if isinstance(body, str) else "application/json"
    raw = body if isinstance(body, str) else json.dumps(body) if body is not None else ""
    with transaction.atomic():
        response = client.generic(
            method, place(path, ids) + QUERIES.get(row, ""), raw, content_type=kind if raw else ""
        )
        getattr(response, "render", lambda: None)()
        transaction.set_rollback(True)
    return response


def status(cast: Cast, row: str, name: str, ids: dict[str, str]) -> int:
    return int(ask(cast.browser(name), row, ids).status_code)
