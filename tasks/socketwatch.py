"""Ends what a socket may no longer do: a subscription whose access was lost, a socket whose credential died (H6, B15).

One round for all sockets of the process every two seconds, in a thread of its own, so that neither the number of
sockets nor busy database threads can push the bound of five seconds. The hint `access` starts a round at once.
"""

import asyncio
import contextlib
import logging
from collections.abc import Set
from typing import Protocol

from tasks import envelopes, hints, reach, socketauth
from tasks.hub import Key
from tasks.socketauth import Caller
from tasks.threads import Pool

logger = logging.getLogger(__name__)

ACCESS = hints.ACCESS
EVERY_S = 2.0
DEAD_CREDENTIAL = 4401


class Watched(Protocol):
    caller: Caller

    @property
    def followed(self) -> Set[Key]: ...
    def push_text(self, text: str) -> None: ...
    def close(self, code: int) -> None: ...
    def unfollow(self, key: Key) -> None: ...


_pool = Pool("kandev-access", lambda: 1)


class Watch:
    """The open sockets of this process. Touched on the event loop only."""

    def __init__(self) -> None:
        self._sockets: set[Watched] = set()
        self._rounds: asyncio.Task[None] | None = None

    def add(self, socket: Watched) -> None:
        """The first socket starts the rounds, the last one ends them."""
        self._sockets.add(socket)
        if self._rounds is None or self._rounds.done():
            self._rounds = asyncio.get_running_loop().create_task(self._run())

    def remove(self, socket: Watched) -> None:
        self._sockets.discard(socket)
        if not self._sockets and self._rounds is not None:
            self._rounds.cancel()
            self._rounds = None

    def count(self) -> int:
        return len(self._sockets)

    def close_all(self, code: int) -> None:
        for socket in self._sockets:
            socket.close(code)

    async def _run(self) -> None:
        loop, poked = asyncio.get_running_loop(), asyncio.Event()

        def poke() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody is left to look after
                loop.call_soon_threadsafe(poked.set)

        hints.listen(ACCESS, poke)
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(poked.wait(), EVERY_S)
                poked.clear()
                await self._round()
        finally:
            hints.unlisten(ACCESS, poke)

    async def _round(self) -> None:
        """A round that cannot read is logged and repeated; without the database no event is told either."""
        seen = [(socket, socket.caller, frozenset(socket.followed)) for socket in self._sockets]
        try:
            verdicts = await _pool.run(judge, [(caller, keys) for _, caller, keys in seen])
        except Exception:
            logger.exception("access of %d sockets could not be checked", len(seen))
            return
        for (socket, _, _), (caller, lost) in zip(seen, verdicts, strict=True):
            _apply(socket, caller, lost)


def judge(watched: list[tuple[Caller, frozenset[Key]]]) -> list[tuple[Caller | None, set[Key]]]:
    """For each: the caller as he is now (None = dead credential) and the keys that he may no longer follow."""
    callers = socketauth.refresh(caller for caller, _ in watched)
    reached = reach.read(
        [caller.principal for caller in callers if caller], {key for _, keys in watched for key in keys}
    )
    return [
        (caller, {key for key in keys if not reached.sees(caller.principal, key)} if caller else set())
        for caller, (_, keys) in zip(callers, watched, strict=True)
    ]


def _apply(socket: Watched, caller: Caller | None, lost: set[Key]) -> None:
    if caller is None:
        socket.close(DEAD_CREDENTIAL)
        return
    socket.caller = caller
    for key in lost & socket.followed:
        socket.unfollow(key)
        socket.push_text(envelopes.notification("unsubscribed", dict(envelopes.named(key))))


watch = Watch()
