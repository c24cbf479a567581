"""Work that follows a commit and that nobody waits for: draining a queue, publishing what was accepted late.

It may be lost with the process; the sweep finds what was due from the database.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from django.db import transaction

from tasks.hints import connection_released

logger = logging.getLogger(__name__)
_pool = ThreadPoolExecutor(max_workers=6, thread_name_prefix="kandev-after")
_open: set["Future[None]"] = set()
_lock = threading.Lock()


def submit(work: Callable[..., object], *args: object) -> None:
    """Runs `work(*args)` in a thread of its own connection; a failure is logged."""
    try:
        future = _pool.submit(_run, work, *args)
    except RuntimeError:  # the process is ending; the sweep of another one goes on
        return
    with _lock:
        _open.add(future)
    future.add_done_callback(_forget)


def after_commit(work: Callable[..., object], *args: object) -> None:
    """`submit` once the open transaction has committed."""
    transaction.on_commit(partial(submit, work, *args), robust=True)


def settle(timeout_s: float = 30) -> None:
    """Waits until nothing submitted is left; for tests and the end of a process."""
    while True:
        with _lock:
            left = list(_open)
        if not left:
            return
        for future in left:
            future.exception(timeout_s)


def _forget(future: "Future[None]") -> None:
    with _lock:
        _open.discard(future)


def _run(work: Callable[..., object], *args: object) -> None:
    with connection_released():
        try:
            work(*args)
        except Exception:
            logger.exception("background work %s failed", getattr(work, "__name__", work))
