"""One server process: its instance row, recovery before it admits anything (promise E8), and what runs beside requests.

`start` is called when `kandev.asgi` is imported by an ASGI server, before it listens; a failure ends the process with a
message and exit code 1. Daphne serves no lifespan, so the loop's part starts through `on_loop`.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from types import FrameType

from django.db import connections

from clarifications import recovering as claims
from clarifications import waiting
from kandev import layerlink, publisher, singleuser, sweeping
from tasks import instances
from turns import recovering as dispatches

logger = logging.getLogger(__name__)


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
        instances.register()
        sweeping.bury_dead()
        recover()
        instances.mark_ready()
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


def recover() -> None:
    """In this order: reservations, delivery intents, the event outbox; each before anything is admitted (E8)."""
    dispatches.recover_reservations()
    claims.recover_claims()
    publisher.adopt()
    dispatches.forget_dead_sockets()
    claims.detach_dead_waiters()
    claims.expire_ended()


def on_loop(loop: asyncio.AbstractEventLoop) -> None:
    """What needs the running event loop; once."""
    if _State.begun:
        return
    _State.begun = True
    layerlink.start(loop)
    publisher.start(loop)
    _end_waits_on_sigterm()


def _end_waits_on_sigterm() -> None:
    """SIGTERM ends the waits first, retryably (R27), then does what the server would have done."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGTERM)

    def handler(number: int, frame: FrameType | None) -> None:
        stop()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGTERM, handler)


def stop() -> None:
    """Ends the waits of this process; nothing is written as a rejection, questions stand."""
    waiting.stop()
    sweeping.stop()
