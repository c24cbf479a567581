"""`notifications/cancelled`: a POST of its own, perhaps to another process, so it travels as a hint (R27).

A running call listens for the topic of its credential, client and request id. A hint that is lost leaves the wait as it
is: the question stands, and the client's own end of the stream ends the wait as well.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp_types import RequestId

from clarifications.mcp import clients
from tasks import hints
from tasks.principals import Principal

METHOD = "notifications/cancelled"


def topic(principal: Principal, client: str, request_id: RequestId) -> str:
    """As the SDK has it, 7 and "7" are one id."""
    key = f"{clients.credential(principal)}\n{client}\n{coerce_request_id(request_id)!r}"
    return "mcp-cancel:" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def tell(principal: Principal, client: str, params: Mapping[str, Any] | None) -> None:
    """Passes a cancellation on; one without a request id means nothing."""
    request_id = as_request_id((params or {}).get("requestId"))
    if request_id is not None:
        hints.send(topic(principal, client, request_id))


def listen(name: str, cancel: Callable[[], None]) -> Callable[[], None]:
    """Calls `cancel` on the running loop when the topic is told, from whichever thread; the result ends that."""
    loop = asyncio.get_running_loop()

    def told() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the call with it
            loop.call_soon_threadsafe(cancel)

    hints.listen(name, told)
    return partial(hints.unlisten, name, told)
