"""Publishes the outbox: one thread a process sends the rows that this process owns, in id order, at least once (R18).

Sockets of this process hear at once; the other processes through the link. A dead layer refuses nothing and stops
nothing here: rows stay until the layer took them, so a process that dies meanwhile leaves them to a living one.
Nothing in a request ever waits for this thread.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from kandev import layerlink, notifications
from kandev.layerlink import LinkDownError
from tasks import hints, hub, instances, prepared
from tasks.events import OUTBOX
from tasks.hub import Notification
from tasks.models import Event

logger = logging.getLogger(__name__)

BATCH = 200
POLL_S = 1.0
LINGER_S = 0.005  # lets the rows of simultaneous changes share a batch
MAX_HELD = 2_000
MAX_PAUSE_S = 5.0
LOOP_S = 10.0


@dataclass(frozen=True)
class Batch:
    """Rows that this process' sockets have heard of, until the layer took them."""

    ids: list[int]
    notifications: list[Notification]


class Publisher:
    """`step` is one round; `run` repeats it until `stop`. Only its own thread touches its state."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._held: deque[Batch] = deque()
        self._layer_failures = 0
        self._layer_retry_at = 0.0
        self._adopt_at = 0.0
        self._poked = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self.run, name="kandev-publisher", daemon=True)

    def start(self) -> None:
        hints.listen(OUTBOX, self._poked.set)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ends the thread after its round; what it did not publish stays in the outbox."""
        self._stopping = True
        self._poked.set()
        self._thread.join(timeout_s)
        hints.unlisten(OUTBOX, self._poked.set)

    def run(self) -> None:
        failures = 0
        while not self._stopping:
            try:
                more = self.step()
                failures = 0
            except Exception:
                failures, more = failures + 1, False
                logger.exception("publishing failed %d times, trying again", failures)
                time.sleep(min(0.1 * 2**failures, MAX_PAUSE_S))
            finally:
                hints.release_connection()
            if not more:
                self._wait()

    def _wait(self) -> None:
        self._poked.wait(POLL_S)
        if self._poked.is_set() and not self._stopping:
            time.sleep(LINGER_S)
        self._poked.clear()

    def step(self) -> bool:
        """Takes over what dead processes left, tells the next rows; whether there may be more at once."""
        self._adopt_now_and_then()
        rows = self._next_rows()
        if rows:
            self._tell_here(rows)
        sent = self._tell_others()
        if rows:
            notifications.refresh_summaries(rows)
        if sent:
            # The owner is restated: rows that another process took over meanwhile are its to delete.
            _delete(sent, instances.generation())
        return len(rows) == BATCH

    def _adopt_now_and_then(self) -> None:
        if time.monotonic() >= self._adopt_at:
            adopt()
            self._adopt_at = time.monotonic() + POLL_S

    def _next_rows(self) -> list[Event]:
        held = [pk for batch in self._held for pk in batch.ids]
        if len(held) >= MAX_HELD:
            return []
        mine = instances.generation()
        return list(_oldest(mine).exclude(pk__in=held)[:BATCH]) if held else _next(mine)

    def _tell_here(self, rows: list[Event]) -> None:
        batch = Batch([row.pk for row in rows], notifications.build(rows))
        self._loop.call_soon_threadsafe(hub.deliver, batch.notifications)
        self._held.append(batch)

    def _tell_others(self) -> list[int]:
        """The ids of the rows that the layer took; those that it did not take stay held, in order."""
        sent: list[int] = []
        if time.monotonic() < self._layer_retry_at:
            return sent
        try:
            while self._held:
                self._send(self._held[0])
                sent += self._held.popleft().ids
            self._layer_failures = 0
        except LinkDownError as error:
            self._layer_failures += 1
            self._layer_retry_at = time.monotonic() + min(0.1 * 2**self._layer_failures, MAX_PAUSE_S)
            logger.warning("the channel layer took nothing (%s); %d batches wait", error, len(self._held))
        return sent

    def _send(self, batch: Batch) -> None:
        future = asyncio.run_coroutine_threadsafe(layerlink.publish(batch.notifications), self._loop)
        try:
            future.result(LOOP_S)
        except TimeoutError:
            future.cancel()
            raise LinkDownError("the event loop did not answer") from None


def _oldest(owner: int) -> QuerySet[Event]:
    return Event.objects.filter(owner=owner).order_by("id")


@prepared.rows
def _next(owner: int) -> QuerySet[Event]:
    return _oldest(owner)[:BATCH]


@prepared.delete
def _delete(ids: list[int], owner: int) -> QuerySet[Event]:
    return Event.objects.filter(pk__in=ids, owner=owner)


def adopt() -> int:
    """Takes over rows of management commands (owner 0) and of dead processes; how many.

    One guarded update: two processes that adopt at once share the rows, none is told twice for it.
    """
    mine = instances.generation()
    owners = set(Event.objects.exclude(owner=mine).order_by().values_list("owner", flat=True).distinct())
    dead = owners - set(instances.alive_ids()) if owners else set()
    return Event.objects.filter(owner__in=dead).exclude(owner=mine).update(owner=mine) if dead else 0


class _Process:
    """The publisher of this process."""

    publisher: Publisher | None = None


def start(loop: asyncio.AbstractEventLoop) -> None:
    """Starts publishing on behalf of this process' generation; from any thread, after the outbox was recovered."""
    stop()
    _Process.publisher = Publisher(loop)
    _Process.publisher.start()


def stop() -> None:
    """Ends the thread; not from the event loop's thread while a message is on its way, which it would block."""
    publisher, _Process.publisher = _Process.publisher, None
    if publisher is not None:
        publisher.stop()


def state() -> dict[str, Any]:
    """For `/metrics` and `doctor`: whether the thread lives and how many batches the layer has not taken."""
    publisher = _Process.publisher
    if publisher is None:
        return {"running": False, "held": 0}
    return {"running": publisher._thread.is_alive(), "held": len(publisher._held)}  # noqa: SLF001 - same module
