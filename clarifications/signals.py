"""A wake-up for one coroutine."""

import asyncio
from collections.abc import Callable

# Of the loop: one reads the socket, one wakes the task that waits for its end, one runs it; one to spare.
PASSES = 4


class Signal:
    """As asyncio.Event, for one listener and of a tenth of its size: ten thousand waits have two each.

    Set and awaited on the loop. `then` is called whenever it is set.
    """

    __slots__ = ("_is_set", "_listener", "then")

    def __init__(self) -> None:
        self._is_set = False
        self._listener: asyncio.Future[None] | None = None
        self.then: Callable[[], None] | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        if self._listener is not None:
            _end(self._listener)
        if self.then is not None:
            self.then()

    async def caught_up(self) -> bool:
        """Whether it is set once everything that has reached this process was looked at.

        An end that lies at the socket unread, or in a task that is not yet awake, is older than what comes next: after
        a freeze, or on a busy loop, bytes written without this look would count as taken by a client long gone.
        """
        for _ in range(PASSES):
            if self._is_set:
                break
            await asyncio.sleep(0)
        return self._is_set

    def clear(self) -> None:
        self._is_set = False

    async def wait(self, seconds: float) -> None:
        """Returns when it is set, or after `seconds`. A timer instead of `asyncio.wait_for`, which starts a task."""
        if self._is_set:
            return
        loop = asyncio.get_running_loop()
        self._listener = loop.create_future()
        timer = loop.call_later(seconds, _end, self._listener)
        try:
            await self._listener
        finally:
            timer.cancel()
            self._listener = None


def _end(listener: asyncio.Future[None]) -> None:
    if not listener.done():
        listener.set_result(None)
