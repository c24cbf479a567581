"""The same for what is served beside Django: straight on the ASGI applications, each call on threads of its own."""

import json
from typing import Any

import httpx2
from channels.testing import WebsocketCommunicator
from django.conf import settings

from clarifications.api import wait
from clarifications.mcp.apps import external_app, session_app
from kandev import probes
from tasks import sockets
from tasks.threads import in_thread
from tests.access.cast import Cast
from turns.runner_socket import RunnerSocket

HOST = "127.0.0.1"
MCP = {"Accept": "application/json, text/event-stream"}
CODES = {"not_found": 404, "forbidden": 403, None: 200}


async def status(cast: Cast, row: str, name: str, ids: dict[str, str]) -> int:
    """What this caller hears: an HTTP status, or for a tool and a subscription the status that its code stands for."""
    method, path, *more = row.split(" ")
    headers = await in_thread(_credentials, cast, name, path)
    if method == "WS":
        return await _socket(path, headers, ids)
    if path in probes.PATHS:
        return (await send(probes.application, method, path, headers)).status_code
    if path.startswith("/mcp"):
        return await _tool(path, more[0], headers, ids)
    bounded = path.replace("{open}", ids["open"]) + "?timeout_s=0.05"
    return (await send(wait.application, method, bounded, headers)).status_code


def _credentials(cast: Cast, name: str, path: str) -> dict[str, str]:
    """MCP and runners know tokens alone; elsewhere people come with their cookie, as in a browser."""
    if name in cast.people and not path.startswith(("/mcp", "/ws/runner/")):
        return {"Cookie": f"{settings.SESSION_COOKIE_NAME}={cast.sign_in(name)}"}
    return {"Authorization": f"Bearer {cast.tokens[name]}"} if name in cast.tokens else {}


async def send(app: Any, method: str, path: str, headers: dict[str, str], **body: Any) -> httpx2.Response:
    link = httpx2.ASGITransport(app=app, client=(HOST, 1))
    async with httpx2.AsyncClient(transport=link, base_url=f"http://{HOST}") as client:
        return await client.request(method, path, headers=headers, **body)


async def _tool(path: str, tool: str, headers: dict[str, str], ids: dict[str, str]) -> int:
    arguments = {
        "answer_question_kandev": {"pending_id": ids["open"], "rejected": True},
        "ask_user_question_kandev": {"questions": []},  # nothing that would be waited for
    }.get(tool, {})
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    app = session_app if path == "/mcp/session" else external_app
    got = await send(app, "POST", path, {**headers, **MCP}, json=call)
    if got.status_code != 200:
        return got.status_code
    text = got.text if got.headers["content-type"] == "application/json" else got.text.split("data: ")[-1]
    result = json.loads(text)["result"]
    code = result["structuredContent"].get("code") if result.get("isError") else None
    return CODES.get(code, 400)


async def _socket(path: str, headers: dict[str, str], ids: dict[str, str]) -> int:
    app = sockets.application if path == "/ws/" else RunnerSocket.as_asgi()
    packed = [(name.lower().encode(), text.encode()) for name, text in {"Host": HOST, **headers}.items()]
    wire = WebsocketCommunicator(app, path, headers=packed)
    wire.scope["client"] = [HOST, 1]
    opened, _ = await wire.connect(timeout=20)
    if not opened:
        return 403
    try:
        return await _subscribed(wire, ids) if path == "/ws/" else 101
    finally:
        await wire.disconnect()


async def _subscribed(wire: WebsocketCommunicator, ids: dict[str, str]) -> int:
    asked = {"id": 1, "type": "request", "action": "subscribe", "payload": {"task_id": ids["task"]}}
    await wire.send_json_to(asked)
    reply = await wire.receive_json_from(20)
    return CODES[reply["payload"].get("code") if reply["type"] == "error" else None]
