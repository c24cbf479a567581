"""Retries of a sweep: what failed is tried again later and later, and does not keep the others from
their turn (R15)."""

import logging
import time
import uuid
from collections.abc import Callable

logger = logging.getLogger(__name__)
FIRST_S, LONGEST_S = 1.0, 60.0


class Backoff:
    """Remembers this process' failures by id; a success forgets them. One thread uses it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._failed: dict[uuid.UUID, tuple[int, float]] = {}

    def run(self, key: uuid.UUID, work: Callable[[], object]) -> None:
        """Does the work unless it failed a short while ago; a failure is logged and remembered."""
        failures, not_before = self._failed.get(key, (0, 0.0))
        if time.monotonic() < not_before:
            return
        try:
            work()
        except Exception:
            wait = min(FIRST_S * 2**failures, LONGEST_S)
            self._failed[key] = (failures + 1, time.monotonic() + wait)
            logger.exception("%s %s could not be recovered; the next try is in %g s", self._what, key, wait)
        else:
            self._failed.pop(key, None)
