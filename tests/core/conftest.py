"""States of a question, from a running session upwards, in this process and on the database under test."""

from collections.abc import Callable, Iterator

import pytest
from pytest_django import Settings

from tasks import instances
from tests.support import climbing, threads
from tests.support.climbing import Question, Stage
from tests.support.scripted import ScriptedRunner
from turns import background

MakeStage = Callable[[], Stage]


@pytest.fixture
def serving(transactional_db: None, settings: Settings) -> Iterator[None]:
    """This process is a server with a lease that outlives the test; budgets are short."""
    settings.KANDEV_INSTANCE_LEASE_S = 3600
    settings.KANDEV_RUNNER_LEASE_S = 3600
    settings.KANDEV_CLAIM_TIMEOUT_S = 2
    settings.KANDEV_DELIVERY_TIMEOUT_S = 6
    settings.KANDEV_RATE_ANSWER = "100000/m"
    before = instances.generation()
    instances.register()
    instances.mark_ready()
    yield
    threads.dismiss_all()
    background.settle()
    instances._generation = before


@pytest.fixture
def runner(serving: None) -> Iterator[ScriptedRunner]:
    """A runner that offers the agent "demo" and does what it is told."""
    made = ScriptedRunner().start()
    yield made
    made.stop()
    background.settle()


@pytest.fixture
def make_stage(runner: ScriptedRunner) -> MakeStage:
    return lambda: climbing.build(runner)


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """A session that has not begun."""
    return make_stage()


@pytest.fixture
def running_session(stage: Stage) -> Stage:
    """Its first prompt was taken: the turn runs."""
    return climbing.run(stage)


@pytest.fixture
def asked_(running_session: Stage) -> Question:
    """A live question: the request's own first moment of waiting counts."""
    return running_session.ask()


@pytest.fixture
def detached_(asked_: Question) -> Question:
    """The turn has ended, the question stands."""
    return asked_.detach()


@pytest.fixture
def answered_(detached_: Question) -> Question:
    """It was answered by a new prompt, which runs."""
    assert detached_.respond().short == (200, True)
    background.settle()
    return detached_
