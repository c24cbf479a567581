"""Worlds: one process on the database under test, or two of them with Redis (R39: also on SQLite)."""

from collections.abc import Callable, Iterator

import pytest

from kandev.torture.runner import Runner
from tests.conftest import MakeProduct
from tests.core.conftest import MakeStage as MakeStage
from tests.core.conftest import asked_ as asked_
from tests.core.conftest import detached_ as detached_
from tests.core.conftest import make_stage as make_stage
from tests.core.conftest import running_session as running_session
from tests.core.conftest import serving as serving
from tests.core.conftest import stage as stage
from tests.recovery.steady import SteadyRunner
from tests.recovery.world import Loop, World
from turns import background


@pytest.fixture
def runner(serving: None) -> Iterator[SteadyRunner]:
    """Instead of tests/core's: one with a journal."""
    made = SteadyRunner()
    made.start()
    yield made
    made.stop()
    background.settle()


MakeWorld = Callable[..., World]
reported: list[str] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of docs/concurrency.md: where a process was killed, and what became of it."""
    if reported:
        head = "| killed at | while | database | processes | outcome |\n| --- | --- | --- | --- | --- |"
        terminalreporter.write_line("\n".join([head, *sorted(reported)]))


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


@pytest.fixture
def make_world(make_product: MakeProduct, loop: Loop) -> Iterator[MakeWorld]:
    """`make_world(processes=2, failpoints="dispatch.after_accept:2", KANDEV_WATCHDOG_S="1")`: a running session."""
    runners: list[Runner] = []

    def make(processes: int = 1, failpoints: str = "", *, runner_at_home: bool = False, **environment: str) -> World:
        product = make_product(redis=processes > 1, **environment)
        home = product.start(ready=False, **({"KANDEV_FAILPOINTS": failpoints} if failpoints else {}))
        peer = product.start() if processes > 1 else home
        home.ready()
        spoken_to = home if runner_at_home else peer
        runner = Runner([spoken_to.url], product.tokens["runner-1"], lambda frame: None)
        runners.append(runner)
        loop.loop.call_soon_threadsafe(runner.start)
        return World(product, home, peer, loop, runner).begin()

    yield make
    for runner in runners:
        loop.call(runner.stop())
