"""The three ways in which an answer comes, in this process: a page's script, a REST client, an MCP tool."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from clarifications.mcp.apps import external_app
from tasks import tokens
from tasks.models import TokenKind
from tests.access.beside import MCP, send
from tests.access.cast import CSRF
from tests.support.climbing import Stage

Answer = Callable[[str, dict[str, Any]], dict[str, Any]]


def page(stage: Stage) -> Answer:
    """As the page's script sends it: cookie and CSRF header."""
    signed = Client()
    signed.force_login(_person(stage))
    cookie = signed.cookies[settings.SESSION_COOKIE_NAME].value

    def answer(pending_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        client = Client(enforce_csrf_checks=True, raise_request_exception=False, headers={"X-CSRFToken": CSRF})
        client.cookies["csrftoken"], client.cookies[settings.SESSION_COOKIE_NAME] = CSRF, cookie
        return _over_rest(client, pending_id, payload)

    return answer


def rest(stage: Stage) -> Answer:
    token = tokens.mint(TokenKind.PERSONAL, user=_person(stage))

    def answer(pending_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {token}"})
        return _over_rest(client, pending_id, payload)

    return answer


def mcp(stage: Stage) -> Answer:
    token = tokens.mint(TokenKind.PERSONAL, user=_person(stage))

    def answer(pending_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        got = asyncio.run(send(external_app, "POST", "/mcp", _headers(token), json=tool_call(pending_id, payload)))
        return heard(got.text, got.headers["content-type"])

    return answer


ENTRIES: dict[str, Callable[[Stage], Answer]] = {"page": page, "rest": rest, "mcp": mcp}
PAIRS = [("page", "page"), ("page", "rest"), ("page", "mcp"), ("rest", "rest"), ("rest", "mcp"), ("mcp", "mcp")]


def tool_call(pending_id: str, payload: dict[str, Any]) -> dict[str, Any]:
    arguments = {"pending_id": pending_id, **payload}
    if "reject_reason" in arguments:
        arguments["reason"] = arguments.pop("reject_reason")
    params = {"name": "answer_question_kandev", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def heard(text: str, kind: str) -> dict[str, Any]:
    """What the tool says of the outcome: the body that REST has."""
    raw = text if kind == "application/json" else text.rsplit("data: ", maxsplit=1)[-1]
    result: dict[str, Any] = json.loads(raw)["result"]["structuredContent"]
    return result


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **MCP}


def _person(stage: Stage) -> User:
    assert stage.person.user is not None
    return stage.person.user


def _over_rest(client: Client, pending_id: str, payload: dict[str, Any]) -> dict[str, Any]:
    address = f"/api/v1/clarification/{pending_id}/respond"
    body: dict[str, Any] = client.post(address, payload, content_type="application/json").json()
    return body
