"""What a client hears: a status and a body, or that the connection was lost."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import httpx2

LOST = 0
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Told:
    """`status` LOST: nobody knows what became of the request."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))


class Client:
    """Requests to whichever of the servers the dice choose. `kept` connections stay open, where servers do."""

    def __init__(self, urls: Sequence[str], random: Random, kept: int = 0) -> None:
        self.urls, self._random = list(urls), random
        limits = httpx2.Limits(max_connections=200, max_keepalive_connections=kept)
        self._http = httpx2.AsyncClient(timeout=30, trust_env=False, limits=limits)

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, method: str, path: str, token: str, body: Any = None, timeout_s: float = 30) -> Told:
        url = f"{self._random.choice(self.urls)}/api/v1{path}"
        headers = {"Authorization": f"Bearer {token}"}
        try:
            got = await self._http.request(method, url, json=body, headers=headers, timeout=timeout_s)
            return Told(got.status_code, got.json() if got.content else {})
        except (httpx2.TransportError, ValueError):
            return Told(LOST, {})

    async def tool(self, path: str, token: str, name: str, arguments: dict[str, Any], timeout_s: float = 30) -> Told:
        """A tool call over MCP: 200 with its structured content, 400 with its error, or LOST."""
        params = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {**MCP_HEADERS, "Authorization": f"Bearer {token}"}
        url = self._random.choice(self.urls) + path
        try:
            got = await self._http.post(url, json=body, headers=headers, timeout=timeout_s)
        except httpx2.TransportError:
            return Told(LOST, {})
        result = _result(got.text)
        if result is None:
            return Told(LOST, {})
        if result.get("isError"):
            return Told(400, {"error": "".join(part.get("text", "") for part in result.get("content", []))})
        return Told(200, dict(result.get("structuredContent") or {}))


def _result(text: str) -> dict[str, Any] | None:
    """The result in a JSON or an event-stream body; None when the stream ended without one."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("data: ", "{"))]
    for line in reversed(lines):
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and isinstance(message.get("result"), dict):
            return dict(message["result"])
    return None
