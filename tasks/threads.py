"""Database work of coroutines: in a small pool of threads, each giving its connection back at once (promises B6, B11).

A waiter or an idle socket holds neither a thread nor a connection. The pool is smaller than the database's, so that
any number of waiting coroutines leaves connections for the requests that answer them.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.conf import settings

from tasks import hints

P = ParamSpec("P")
T = TypeVar("T")


def half_of_database_pool() -> int:
    return max(2, int(settings.KANDEV_DB_POOL) // 2)


class Pool:
    """Named threads, made at the first use. `size` is asked then, when the settings are there."""

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self.name = name
        self._size = size
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._size(), thread_name_prefix=self.name)
            return self._executor

    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`fn(*args, **kwargs)` in a thread of this pool; what it raises is raised here.

        A caller that is cancelled does not stop a function that has begun (its transaction ends one way or the other);
        one that has not begun is dropped. Work that must be done whatever becomes of the caller belongs into a task
        of its own, shielded.
        """
        context = contextvars.copy_context()
        call = partial(context.run, _and_release, partial(fn, *args, **kwargs))
        return await asyncio.get_running_loop().run_in_executor(self._threads(), call)


def _and_release(call: Callable[[], T]) -> T:
    with hints.connection_released():
        return call()


_shared = Pool("kandev-db", half_of_database_pool)


async def in_thread(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs `fn` in the shared pool; see Pool.run. The way from a coroutine to the database."""
    return await _shared.run(fn, *args, **kwargs)
