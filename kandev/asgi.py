"""The ASGI application: Django, and beside it what is held open for long (waits, MCP, sockets).

Importing this module makes the process a server: it registers itself and recovers before anything is admitted.
"""

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kandev.settings")
gc.disable()  # what is loaded stays; walking it again and again would be an eighth of the time of loading

from django.core.asgi import get_asgi_application  # noqa: E402

django_application = get_asgi_application()

from clarifications.api import wait  # noqa: E402
from clarifications.mcp.apps import external_app, session_app  # noqa: E402
from kandev import probes, server, singleuser  # noqa: E402
from kandev.handling import Handler  # noqa: E402
from tasks import sockets  # noqa: E402
from turns.runner_socket import RunnerSocket  # noqa: E402

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

api_application = Handler()
runner_application = RunnerSocket.as_asgi()
MCP: dict[str, App] = {"/mcp": external_app, "/mcp/session": session_app}


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Routes by path. The loop's part starts with the first scope when no server hook started it before."""
    server.on_loop(asyncio.get_running_loop())
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
    elif scope["type"] == "websocket":
        await _websocket(scope, receive, send)
    elif singleuser.admits(scope):
        await _http(scope)(scope, receive, _bodiless(send) if scope["method"] == "HEAD" else send)
    else:
        await probes.answer(send, 403, singleuser.REFUSAL)


def _http(scope: Scope) -> App:
    path = scope["path"]
    if path in probes.PATHS:
        return probes.application
    if path.rstrip("/") in MCP:
        return MCP[path.rstrip("/")]
    if wait.matches(path):
        return wait.application
    return cast(App, api_application if Handler.serves(path) else django_application)


def _bodiless(send: Send) -> Send:
    """The answer to HEAD has headers alone; what a view writes in several pieces would follow them onto the wire."""

    async def sender(message: Any) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return sender


async def _websocket(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/ws/runner/":
        await runner_application(scope, receive, send)
    elif scope["path"] == "/ws/":
        await sockets.application(scope, receive, send)
    else:
        await receive()
        await send({"type": "websocket.close", "code": 4404})


async def _lifespan(receive: Receive, send: Send) -> None:
    """For servers that do serve it."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            server.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return


def _start() -> None:
    """Recovery now; the loop's part as soon as Daphne's reactor runs, without waiting for a first request."""
    server.start()
    import sys

    if "daphne.server" in sys.modules:
        from daphne.server import twisted_loop
        from twisted.internet import reactor

        from kandev import pacing, plainerrors

        pacing.install()
        plainerrors.install()
        reactor.callWhenRunning(server.on_loop, twisted_loop)


gc.enable()
_start()
