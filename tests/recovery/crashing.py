"""Crashes inside the test's process: work stops in the middle, the process' generation dies, another one recovers."""

import contextlib
import datetime as dt
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from clarifications import recovering as claims
from clarifications import watching
from clarifications.models import Claim, Watchdog
from kandev import recovery
from tasks import failpoints, instances
from tests.recovery.steady import SteadyRunner
from turns import background, timers
from turns import recovering as dispatches
from turns.models import Dispatch

Fault = Literal["lost", "failed"]
_here = threading.local()


class Crash(BaseException):
    """Nothing in the product catches it, so nothing is tidied up: as good as os._exit."""


@contextlib.contextmanager
def killed_at(point: str, at: int = 1) -> Iterator[None]:
    """Within the block the n-th pass of the failpoint is the end of whatever passes it; the block's own end, too."""
    passes = [0]
    before = failpoints.reach

    def reach(name: str) -> None:
        if name == point:
            passes[0] += 1
            if passes[0] == at:
                raise Crash(name)
        before(name)

    failpoints.reach = reach
    try:
        yield
    except Crash:
        return
    finally:
        failpoints.reach = before
    raise AssertionError(f"{point} was passed {passes[0]} times")


def reborn() -> int:
    """The process is dead and another one takes its place: a new generation, nothing recovered yet."""
    dead = instances.generation()
    instances.end(dead)
    instances.register()
    instances.mark_ready()
    return dead


def recover(runner: SteadyRunner | None = None) -> None:
    """What a starting server does before it listens; then the runner connects to it."""
    recovery.recover()
    background.settle()
    if runner is not None:
        runner.connect(runner.entries())
        background.settle()


def sweep(ready_since: dt.datetime | None = None) -> None:
    """One round of what a running server does beside requests."""
    since = ready_since or timezone.now() - dt.timedelta(hours=1)
    timers.run_due(since)
    watching.run_due()
    dispatches.sweep_dispatches()
    claims.sweep()
    claims.detach_dead_waiters()
    claims.expire_ended()
    watching.take_over()
    background.settle()


def time_passes() -> None:
    """All budgets of what is under way are over, as if nobody had attended for long (R14)."""
    old = timezone.now() - dt.timedelta(seconds=60)
    Dispatch.objects.unsettled().update(attended_until=old)
    Claim.objects.open().update(attended_until=old)
    Watchdog.objects.exclude(state="closed").update(due_at=old)


def commits_fail(monkeypatch: pytest.MonkeyPatch, fault: Fault, module: Any, name: str, times: int = 1) -> list[str]:
    """The commits of `module.name` fail `times` times: "lost" = it was stored and the caller sees an error; "failed" =
    it was not stored. Returns the list of those that did.
    """
    real: Callable[..., Any] = getattr(module, name)
    failed: list[str] = []

    def step(*args: Any, **kwargs: Any) -> Any:
        outer = getattr(_here, "fault", None)
        _here.fault = fault if len(failed) < times else None
        _here.failed, _here.name = failed, name
        try:
            return real(*args, **kwargs)
        finally:
            _here.fault = outer

    monkeypatch.setattr(module, name, step)
    if not getattr(BaseDatabaseWrapper.commit, "is_faulty", False):
        monkeypatch.setattr(BaseDatabaseWrapper, "commit", _faulty(BaseDatabaseWrapper.commit))
    return failed


def _faulty(real: Callable[[BaseDatabaseWrapper], None]) -> Callable[[BaseDatabaseWrapper], None]:
    def commit(self: BaseDatabaseWrapper) -> None:
        fault = getattr(_here, "fault", None)
        if fault is None:
            real(self)
            return
        _here.fault = None
        _here.failed.append(_here.name)
        if fault == "lost":
            real(self)
        raise OperationalError("the connection was lost at the commit")

    commit.is_faulty = True  # type: ignore[attr-defined]
    return commit
