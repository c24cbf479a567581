"""Wait: an agent's call that is held open. A coroutine, a lease row and a wake-up; no thread and no connection
meanwhile (B6).

`wait` registers, then looks, then sleeps until a hint or the slow poll. What ends it is decided by the database alone:
a claim it can confirm, a claim confirmed by a fellow waiter, or a lease that something took away.
"""

import asyncio
import datetime as dt
import logging
import threading
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from clarifications import confirming, holding, leases, standing
from clarifications.leases import Held
from clarifications.models import LeaseKind
from clarifications.signals import Signal
from clarifications.standing import Ended
from tasks import hints
from tasks.principals import Principal
from tasks.threads import in_thread

logger = logging.getLogger(__name__)
Keepalive = Callable[[float], Awaitable[None]]

_leaving: set[asyncio.Future[Ended | None]] = set()

# Set when the process is told to end: every waiter gets a retryable end (R27).
stopping = threading.Event()


def stop() -> None:
    """From any thread: ends every wait of this process, retryably; nothing is written as a rejection."""
    stopping.set()
    holding.wake_all()


@dataclass(frozen=True)
class Waited:
    """How a wait ended: `code` is answered or rejected with the `response` object of contract 4, or says why nothing
    came.
    """

    code: str
    response: dict[str, Any] | None = None
    claim_id: uuid.UUID | None = None
    lease: Held | None = None


async def wait(
    principal: Principal,
    pending_id: str,
    kind: str,
    timeout_s: float | None,
    gone: Signal,
    on_keepalive: Keepalive | None = None,
) -> Waited:
    """Waits for the bundle's answer. `gone` is set when the client's connection is lost; `timeout_s` bounds the wait.

    Codes without a response: timeout, detached, cancelled, expired, superseded, temporarily_unavailable (the process
    ends), gone. Raises UnknownClarification, Forbidden. After the bytes were written call `returned`.
    """
    begun = await in_thread(standing.begin, principal, pending_id, LeaseKind(kind))
    del principal  # its token and person are the larger part of what a wait would keep
    if isinstance(begun, Ended):
        return Waited(begun.code, begun.response, begun.claim_id)
    limit = settings.KANDEV_WAIT_TIMEOUT_S if timeout_s is None else min(timeout_s, settings.KANDEV_WAIT_TIMEOUT_S)
    try:
        return await _hold(begun, limit, gone, on_keepalive)
    except asyncio.CancelledError:
        _leave_behind(begun)
        raise


def _leave_behind(lease: Held) -> None:
    """The caller was cancelled: its lease is given up as one whose client is gone, by a task that nobody can cancel.
    What a thread does for it at this moment (a confirm perhaps) ends by itself; the session's lock orders the two.
    """
    task = asyncio.ensure_future(in_thread(confirming.leave, lease, True))
    _leaving.add(task)
    task.add_done_callback(_left)


def _left(task: asyncio.Future[Ended | None]) -> None:
    _leaving.discard(task)
    if not task.cancelled() and task.exception() is not None:
        logger.warning("a cancelled wait kept its lease, the sweep takes it: %s", task.exception())


async def _hold(lease: Held, limit: float, gone: Signal, on_keepalive: Keepalive | None) -> Waited:
    loop = asyncio.get_running_loop()
    woken = Signal()
    gone.then = woken.set

    def wake() -> None:
        loop.call_soon_threadsafe(woken.set)

    topic = leases.topic(lease.pending_id)
    hints.listen(topic, wake)
    holding.add(lease.pk, lease.pending_id, wake)
    started, told = loop.time(), loop.time()
    try:
        woken.set()
        while True:
            left = started + limit - loop.time()
            if woken.is_set() or left <= 0:  # a keepalive alone asks nothing: ten thousand waits would ask all the time
                woken.clear()
                ended = await _look(lease, woken)
                if ended is not None:
                    return Waited(ended.code, ended.response, ended.claim_id, lease)
            if gone.is_set() or stopping.is_set() or left <= 0:
                return await _give_up(lease, gone)
            if on_keepalive is None:
                await woken.wait(left)
                continue
            await woken.wait(min(left, max(0.01, told + settings.KANDEV_KEEPALIVE_S - loop.time())))
            if loop.time() - told >= settings.KANDEV_KEEPALIVE_S and not gone.is_set():
                told = loop.time()
                await on_keepalive(told - started)
    finally:
        gone.then = None
        holding.discard(lease.pk)
        hints.unlisten(topic, wake)


async def _look(lease: Held, woken: Signal) -> Ended | None:
    """What became of this waiter. A database that cannot be asked now is asked again: an outage ends no wait."""
    try:
        return await in_thread(confirming.look, lease)
    except DatabaseError as error:
        logger.warning("the wait on %s could not be looked after, again in a moment: %s", lease.pending_id, error)
        await asyncio.sleep(hints.POLL_S)
        woken.set()
        return None


async def _give_up(lease: Held, gone: Signal) -> Waited:
    """The wait ends without an answer, unless one was confirmed in this very moment for this waiter."""
    lost = gone.is_set() or stopping.is_set()
    ended = await in_thread(confirming.leave, lease, lost)
    if ended is not None:
        return Waited(ended.code, ended.response, ended.claim_id, lease)
    if gone.is_set():
        return Waited("gone")
    return Waited("temporarily_unavailable" if stopping.is_set() else "timeout")


async def returned(waited: Waited, written_at: dt.datetime | None = None) -> None:
    """The response was written to a connected client: frames since then close the watchdog (RETURN_BEFORE_ACTIVITY).

    `written_at` is the clock just before the bytes went out; a frame that overtakes this record still counts.
    """
    if waited.claim_id is not None:
        await in_thread(confirming.record_return, waited.claim_id, waited.lease, written_at or timezone.now())


async def failed(waited: Waited) -> None:
    """The client was gone when the response was to be written: the watchdog stays armed and the agent may ask again."""
    if waited.lease is not None:
        await in_thread(confirming.forget_lease, waited.lease.pk, waited.claim_id)
