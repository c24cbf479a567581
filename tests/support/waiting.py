"""Waiting in tests: for an event where there is one, else for a condition within a bound."""

import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
NOT_YET = (ConnectionError, FileNotFoundError, TimeoutError)


def until(look: Callable[[], T], *, within: float = 10.0, every: float = 0.03, what: str = "") -> T:
    """Looks until the result is truthy and returns it; a refused connection or a missing file is "not yet"."""
    pause, deadline = threading.Event(), time.monotonic() + within
    seen: T | None = None
    while True:
        with suppress(*NOT_YET):
            seen = look()
            if seen:
                return seen
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what or 'the condition'} did not hold within {within:g} s (last: {seen!r})")
        pause.wait(every)


async def auntil(look: Callable[[], Awaitable[T]], *, within: float = 10.0, every: float = 0.03, what: str = "") -> T:
    """The same for a coroutine function, without blocking the loop."""
    import asyncio

    seen: T | None = None
    try:
        async with asyncio.timeout(within):
            while not (seen := await look()):  # noqa: ASYNC110 - a condition, not an event
                await asyncio.sleep(every)
            return seen
    except TimeoutError:
        raise AssertionError(f"{what or 'the condition'} did not hold within {within:g} s (last: {seen!r})") from None


def never(look: Callable[[], object], *, seconds: float, what: str = "") -> None:
    """Watches that something does not happen: `look` must stay falsy for that long (absence has no event)."""
    pause, deadline = threading.Event(), time.monotonic() + seconds
    while time.monotonic() < deadline:
        seen = look()
        assert not seen, f"{what or 'unexpected'}: {seen!r}"
        pause.wait(0.03)


def at_once(*calls: Callable[[], T]) -> list[T | Exception]:
    """Runs all calls from one starting line, a thread each; an exception is returned in its call's place."""
    line = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T | Exception:
        line.wait()
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - the test judges it
            return error
        finally:
            _close_django_connections()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def _close_django_connections() -> None:
    """A thread's connection would keep the test database from being dropped."""
    from django.db import connections

    connections.close_all()
