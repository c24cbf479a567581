"""One server process: its instance row, recovery before it admits anything (promise E8), and what runs beside requests.

`start` is called when `kandev.asgi` is imported by an ASGI server, before it listens; a failure ends the process with a
message and exit code 1. Daphne serves no lifespan, so the loop's part starts through `on_loop`.
"""

import asyncio
import atexit
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType

from django.db import OperationalError, connections

from clarifications import holding, waiting
from kandev import layerlink, publisher, recovery, singleuser, sweeping
from tasks import instances

logger = logging.getLogger(__name__)

LEAVE_S, END_S, PATIENCE_S = 7.0, 8.5, 20.0
GC_THRESHOLD = 10_000


class _State:
    ready = False
    begun = False


def is_ready() -> bool:
    """Whether recovery is done and the loop's part runs."""
    return _State.ready and _State.begun


def start() -> None:
    """Registers this process and recovers what dead ones left; exits non-zero when that fails."""
    try:
        singleuser.check_addresses()
        for step in (instances.register, sweeping.bury_dead, recovery.recover, instances.mark_ready):
            _patiently(step)
    except Exception as error:
        what = "" if isinstance(error, singleuser.ListensElsewhereError) else "recovery failed, "
        logger.error("the server does not start", exc_info=error if what else None)
        sys.stderr.write(f"kandev: {what}the server does not start: {error}\n")
        sys.stderr.flush()
        os._exit(1)
    finally:
        connections.close_all()
    _State.ready = True
    sweeping.start()
    atexit.register(_leave)


def _leave() -> None:
    """An ordinary end is no death: the next start, or a peer, need not find it out. Threads of requests are over by
    now, and what they left is taken over as after any end.
    """
    sweeping.stop()
    with suppress(Exception):  # the database is away: it is found out after all
        instances.end()


def _patiently(step: Callable[[], object]) -> None:
    """A database that is busy (SQLite has one writer) or just being restarted is no reason not to start: such a step is
    taken again for a while. Every step may be; what else it raises is a failure at once.
    """
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            step()
        except OperationalError as error:
            if time.monotonic() > until or not _passes(error):
                raise
            logger.warning("the start waits for the database: %s", str(error).strip())
            connections.close_all()
            time.sleep(0.5)
        else:
            return


def _passes(error: OperationalError) -> bool:
    """Not a table that is missing, which SQLite reports in the same way."""
    name: str = getattr(error.__cause__, "sqlite_errorname", "SQLITE_BUSY")
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def on_loop(loop: asyncio.AbstractEventLoop) -> None:
    """What needs the running event loop; once."""
    if _State.begun:
        return
    _State.begun = True
    layerlink.start(loop)
    publisher.start(loop)
    _collect_less()
    _end_waits_on_sigterm(loop)


def _collect_less() -> None:
    """What was loaded to serve stays for good: the collector need not walk it again and again, which is most of the
    slowest answers' time. Cycles that requests leave are still collected, a little later.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 20)


def _end_waits_on_sigterm(loop: asyncio.AbstractEventLoop) -> None:
    """SIGTERM ends the waits first, retryably (R27), then does what the server would have done."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGTERM)

    def handler(number: int, frame: FrameType | None) -> None:
        stop()
        threading.Thread(target=_end_at_last, name="kandev-end", daemon=True).start()
        if callable(before):
            asyncio.run_coroutine_threadsafe(_after_waits(partial(before, number, frame)), loop)

    signal.signal(signal.SIGTERM, handler)


def _end_at_last() -> None:
    """A thread of a request that Daphne cancelled can wait for the stopped loop for ever, and Python waits for it.
    Whatever is open then is as after a crash: the next process, or a peer, finds it.
    """
    threading.main_thread().join(END_S)
    threading.Event().wait(1.0)
    logger.warning("the process ends with requests still open")
    os._exit(0)


async def _after_waits(go_on: Callable[[], object]) -> None:
    """Daphne cancels its requests at once and without waiting; before it does, each waiter is told to ask again."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LEAVE_S
    while holding.count() and loop.time() < deadline:  # noqa: ASYNC110 - counted by threads as well
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.05)  # the last bytes of those that have just ended
    go_on()


def stop() -> None:
    """Ends the waits of this process; nothing is written as a rejection, questions stand."""
    waiting.stop()
    sweeping.stop()
