"""Calls beside the test's own thread, and agents that wait for an answer."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from django.db import connection

from clarifications import waiting
from clarifications.models import WaiterLease
from clarifications.signals import Signal
from clarifications.waiting import Waited
from tasks.principals import Principal
from tests.support.waiting import until

T = TypeVar("T")


def beside(call: Callable[..., T], *args: Any, **kwargs: Any) -> "Future[T]":
    """Starts the call in a thread on a connection of its own; `.result(20)` waits for it."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - handed to the test
            future.set_exception(error)
        finally:
            connection.close()

    threading.Thread(target=run, daemon=True).start()
    return future


_waiting: "list[Agent]" = []


def dismiss_all() -> None:
    """Ends every wait that a test left behind."""
    while _waiting:
        agent = _waiting.pop()
        if agent.waits:
            agent.hang_up()
            agent.ended()


class Agent:
    """One waiting call of an agent. `writes` False: the answer is put into its hands and never gets out."""

    def __init__(
        self,
        principal: Principal,
        pending_id: str,
        timeout_s: float = 30,
        *,
        writes: bool = True,
        on_keepalive: waiting.Keepalive | None = None,
    ) -> None:
        self.principal, self.pending_id, self.timeout_s, self.writes = principal, pending_id, timeout_s, writes
        self.on_keepalive = on_keepalive
        self._loop = asyncio.new_event_loop()
        self._gone = Signal()
        before = self._leases()
        self._result = beside(self._run)
        _waiting.append(self)
        until(lambda: self._result.done() or self._leases() - before, what="the wait is registered")

    def hang_up(self) -> None:
        """The client's connection is lost."""
        self._loop.call_soon_threadsafe(self._gone.set)

    def ended(self, within: float = 20) -> Waited:
        return self._result.result(within)

    @property
    def waits(self) -> bool:
        return not self._result.done()

    def _leases(self) -> set[Any]:
        rows = WaiterLease.objects.filter(pending_id=self.pending_id).exclude(kind="request")
        return set(rows.values_list("pk", flat=True))

    def _run(self) -> Waited:
        try:
            return self._loop.run_until_complete(self._wait())
        finally:
            self._loop.close()

    async def _wait(self) -> Waited:
        waited = await waiting.wait(
            self.principal, self.pending_id, "rest", self.timeout_s, self._gone, self.on_keepalive
        )
        if waited.response is not None and self.writes:
            await waiting.returned(waited)
        return waited
