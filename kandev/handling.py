"""Django's handler for the API, with one way into a thread and back a request.

Django's own goes there five times (its signals, the middleware, the view, the end) and starts a thread for each
request. Ours are all synchronous, so a thread that was there before does the whole and gives its connection back.
"""

from collections.abc import Awaitable, Callable
from typing import IO, Any

from asgiref.sync import ThreadSensitiveContext
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from tasks.threads import Pool

Send = Callable[[Any], Awaitable[None]]

# An answer holds its thread until it was handed over, and what it waits for are other requests: no fewer than can come.
THREADS = 1_000


class Handler(ASGIHandler):
    """A client that leaves changes nothing: the request runs to its end (promise D11), its response is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._pool = Pool("kandev-request", lambda: THREADS)

    @staticmethod
    def serves(path: str) -> bool:
        """Pages and static files have Django's own handler."""
        return path.startswith("/api/")

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def handle(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        response = await self._pool.run(self._whole, scope, body)
        await self.send_response(response, send)
        if response.streaming:
            await self._pool.run(response.close)

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        await self.handle(scope, receive, send)

    async def send_response(self, response: HttpResponseBase, send: Send) -> None:
        if response.streaming:
            async with ThreadSensitiveContext():  # its pieces are read in a thread of their own
                await super().send_response(response, send)
        else:
            await super().send_response(response, send)

    def _whole(self, scope: Any, body: IO[bytes]) -> Any:
        """The response, closed unless its pieces are still to be read."""
        with body:
            set_script_prefix(get_script_prefix(scope))
            signals.request_started.send(sender=type(self), scope=scope)
            request, refused = self.create_request(scope, body)
            response: Any = refused if request is None else self.get_response(request)
            response._handler_class = type(self)  # noqa: SLF001 - as Django's own handler does
            if isinstance(response, FileResponse):
                response.block_size = self.chunk_size
            if not response.streaming:
                response.close()
            return response
