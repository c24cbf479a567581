"""What a row of the table says."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line: `met` says whether the goal was reached, None that it was not measured."""

    name: str
    goal: str
    figures: str
    met: bool | None

    def line(self) -> str:
        verdict = {True: "met", False: "MISSED", None: "not measured"}[self.met]
        return f"{self.name} | goal: {self.goal} | {verdict} | {self.figures}"


@dataclass(frozen=True)
class Plan:
    """How much is measured: `quick` ends within 50 s, `tiny` is for tests of the benchmark itself."""

    rounds: int = 5
    seconds: float = 4.0
    answers_per_second: int = 700  # an upper bound: each bundle can be answered once
    samples: int = 60
    messages: int = 1_000_000
    few_messages: int = 1_000
    wakes: int = 200
    waiters: int = 1_000
    warm_waiters: int = 100
    sockets: int = 1_000
    changes: int = 15
    tasks: int = 200


FULL = Plan()
QUICK = Plan(rounds=3, seconds=1.0, samples=40, messages=100_000, wakes=30, warm_waiters=50, sockets=200, changes=8)
TINY = Plan(
    rounds=1,
    seconds=0.3,
    samples=2,
    messages=50,
    few_messages=10,
    wakes=2,
    waiters=6,
    warm_waiters=2,
    sockets=3,
    changes=2,
    tasks=3,
)


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def spread(values: Iterable[float]) -> str:
    """Smallest to largest, so that a reader sees the noise."""
    found = list(values)
    return f"{min(found):.2f}-{max(found):.2f}"


PLANS = {"full": FULL, "quick": QUICK, "tiny": TINY}
ROWS = ("queries", "list", "answers", "waiters", "processes", "waking", "fanout", "sizes")
