"""What each layer must offer so that a dead process' work is found again, and the order in which it is asked for (E8).

A layer that lacks a step fails the type check here, and the start with a clear message (promise E13).
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from clarifications import recovering as claims
from clarifications import watching
from kandev import publisher
from turns import recovering as dispatches


class IncompleteStore(Exception):
    """A layer came without its recovery: nothing may be admitted."""


@runtime_checkable
class TurnStore(Protocol):
    """Reservations and what is left of them when nothing but the turn row is there (E2-E6, R45)."""

    def recover_reservations(self) -> None: ...
    def forget_dead_sockets(self) -> None: ...
    def sweep_dispatches(self) -> None: ...


@runtime_checkable
class AnswerStore(Protocol):
    """Delivery intents, waiters and questions of ended sessions (E1, E7, E12, A7)."""

    def recover_claims(self) -> None: ...
    def detach_dead_waiters(self) -> None: ...
    def expire_ended(self) -> None: ...
    def sweep(self) -> None: ...


@runtime_checkable
class Outbox(Protocol):
    """Events that a dead process did not publish (E4)."""

    def adopt(self) -> int: ...


turn_store: TurnStore = dispatches
answer_store: AnswerStore = claims
outbox: Outbox = publisher


def check() -> None:
    """IncompleteStore names the layer whose recovery is not whole."""
    for store, kind in ((turn_store, TurnStore), (answer_store, AnswerStore), (outbox, Outbox)):
        if not isinstance(store, kind):
            raise IncompleteStore(f"{getattr(store, '__name__', store)} has no whole recovery ({kind.__name__})")


def steps() -> tuple[Callable[[], object], ...]:
    """Reservations, then delivery intents, then the event outbox, then what only wakes or tells."""
    return (
        turn_store.recover_reservations,
        answer_store.recover_claims,
        outbox.adopt,
        turn_store.forget_dead_sockets,
        answer_store.detach_dead_waiters,
        answer_store.expire_ended,
        watching.take_over,
    )


def recover() -> None:
    """Everything that dead processes left, each before anything is admitted; raises on the first failure."""
    check()
    for step in steps():
        step()
