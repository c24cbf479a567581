"""An ASGI application that floods whoever opens a socket: `daphne tests.realtime.flood:application`.

`GET /` answers how many frames the server took so far. FLOOD_PACED=0 leaves Daphne as it is.
"""

import os
from typing import Any

from kandev import pacing

FRAME = "x" * 65_536
FRAMES = 256

if os.environ.get("FLOOD_PACED", "1") == "1":
    pacing.install()
taken = 0


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await _flood(receive, send)
    elif scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(taken).encode()})


async def _flood(receive: Any, send: Any) -> None:
    global taken  # noqa: PLW0603 - one socket writes it
    await receive()
    await send({"type": "websocket.accept"})
    for _ in range(FRAMES):
        await send({"type": "websocket.send", "text": FRAME})
        taken += 1
    await receive()
