"""How a lower layer calls a higher one: it owns a hook, the higher layer connects to it.

Each hook says whether it runs inside the transaction of the change (and then may only write to the database)
or after its commit. Receivers run in the order in which they were connected.
"""

import logging
from collections.abc import Callable
from typing import Any, Generic, ParamSpec

logger = logging.getLogger(__name__)

P = ParamSpec("P")


class Hook(Generic[P]):
    """A list of receivers. `run` calls each; an exception of one ends the run and reaches the caller."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._receivers: list[Callable[P, Any]] = []

    def connect(self, receiver: Callable[P, Any]) -> Callable[P, Any]:
        if receiver not in self._receivers:
            self._receivers.append(receiver)
        return receiver

    def run(self, *args: P.args, **kwargs: P.kwargs) -> list[Any]:
        return [receiver(*args, **kwargs) for receiver in self._receivers]

    def run_each(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """For hooks after a commit: what happened stands, so a failing receiver is logged and the others still run."""
        for receiver in self._receivers:
            try:
                receiver(*args, **kwargs)
            except Exception:
                logger.exception("a receiver of %s failed", self.name)
