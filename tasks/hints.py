"""Wake-ups. A hint says "look again"; the database decides, and a slow poll makes a lost hint harmless.

Topics are short strings: `bundle:<pending id>`, `dispatch:<id>`, `session:<id>`, `runner:<id>`, `outbox`, `access`.
`send` wakes this process' listeners and hands the topic to the transmitter (Channels), which wakes the other
processes'. Threads wait with `Waiting`, coroutines register a callback.
"""

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial

from django.db import connection, transaction

POLL_S = 0.5
ACCESS = "access"  # after a change of members, people or tokens: `tasks.socketwatch` looks at once

_lock = threading.Lock()
_listeners: dict[str, set[Callable[[], None]]] = defaultdict(set)
_transmit: Callable[[str], None] | None = None


def set_transmitter(transmit: Callable[[str], None] | None) -> None:
    """Connects the other processes; `transmit(topic)` must not block and must not raise."""
    global _transmit  # noqa: PLW0603 - one transmitter a process
    _transmit = transmit


def listen(topic: str, callback: Callable[[], None]) -> None:
    with _lock:
        _listeners[topic].add(callback)


def unlisten(topic: str, callback: Callable[[], None]) -> None:
    with _lock:
        _listeners[topic].discard(callback)
        if not _listeners[topic]:
            del _listeners[topic]


def wake(topic: str) -> None:
    """Wakes this process' listeners of `topic`."""
    with _lock:
        callbacks = list(_listeners.get(topic, ()))
    for callback in callbacks:
        callback()


def send(topic: str) -> None:
    """Wakes every process' listeners of `topic`."""
    wake(topic)
    if _transmit is not None:
        _transmit(topic)


def after_commit(*topics: str) -> None:
    """Sends each topic once the open transaction has committed; robust, so that one failure cannot stop the rest."""
    for topic in topics:
        transaction.on_commit(partial(send, topic), robust=True)


class Waiting:
    """A thread's subscription to topics, opened before the state is read so that no wake-up falls in between."""

    def __init__(self, *topics: str) -> None:
        self.topics = topics
        self.event = threading.Event()

    def __enter__(self) -> "Waiting":
        for topic in self.topics:
            listen(topic, self.event.set)
        return self

    def __exit__(self, *exc: object) -> None:
        for topic in self.topics:
            unlisten(topic, self.event.set)

    def wait(self, timeout_s: float) -> None:
        """Returns at a hint, after the slow poll's interval, or after `timeout_s`; holds no connection meanwhile."""
        release_connection()
        self.event.wait(max(0.0, min(timeout_s, POLL_S)))
        self.event.clear()


def release_connection() -> None:
    """Gives this thread's connection back to the pool; outside a transaction only."""
    if not connection.in_atomic_block:
        connection.close()


@contextlib.contextmanager
def connection_released() -> Iterator[None]:
    """For work in a thread that is not a request: its connection goes back to the pool at the end."""
    try:
        yield
    finally:
        release_connection()
