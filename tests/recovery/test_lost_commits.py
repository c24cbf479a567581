"""A step was stored and its caller saw an error, or was not stored at all: at every claim, confirm, attempt, publish,
finalize and undo. What the caller was told is true in the end, nothing is lost and nothing is received twice.
"""

from collections.abc import Callable
from typing import Any

import pytest

from clarifications import claiming, confirming, delivering, finalizing, restoring
from tests.recovery.crashing import Fault, commits_fail, sweep, time_passes
from tests.recovery.steady import SteadyRunner
from tests.support.climbing import Outcome, Question, Stage, answers
from tests.support.threads import Agent
from tests.support.waiting import until
from turns import admitting, attempting, background, draining, publishing, reserving, settling
from turns.models import Admission

FAULTS = ("lost", "failed")
DETACHED: tuple[tuple[Any, str], ...] = (
    (claiming, "_try"),
    (delivering, "_detach"),
    (reserving, "when_free"),
    (attempting, "attempt"),
    (settling, "accept"),
    (publishing, "_announce"),
    (publishing, "_clear"),
)
UNDOING: tuple[tuple[Any, str], ...] = ((settling, "refuse"), (settling, "undo"), (restoring, "restore"))
LIVE: tuple[tuple[Any, str], ...] = ((claiming, "_try"), (confirming, "confirm"), (finalizing, "finalize"))
PROMPTS: tuple[tuple[Any, str], ...] = ((admitting, "_enter"), *DETACHED[3:])


def steps(found: tuple[tuple[Any, str], ...]) -> pytest.MarkDecorator:
    names = [f"{module.__name__.rpartition('.')[2]}.{name.strip('_')}" for module, name in found]
    return pytest.mark.parametrize(("module", "step"), found, ids=names)


both = pytest.mark.parametrize("fault", FAULTS)


@both
@steps(DETACHED)
@pytest.mark.scenario("D4", "D6", "D9", "E11")
def test_a_detached_answer(
    detached_: Question, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, fault: Fault
) -> None:
    failed = commits_fail(monkeypatch, fault, module, step)
    said = detached_.respond(answers(text="first"))
    assert failed == [step]
    settle(detached_.stage)
    judge(detached_, said, lambda marker: prompted(detached_.stage, marker))


@both
@steps(UNDOING)
@pytest.mark.scenario("D3", "D9", "D10")
def test_a_refused_answer(
    detached_: Question, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, fault: Fault
) -> None:
    """The runner refuses, or (for the restore) there is none."""
    runner = steady(detached_.stage)
    if module is restoring:
        runner.disconnect()
    runner.refuses = True
    commits_fail(monkeypatch, fault, module, step)
    said = detached_.respond(answers(text="first"))
    runner.refuses = False
    if module is restoring:
        runner.connect(runner.entries())
    settle(detached_.stage)
    assert said.status != 200
    judge(detached_, said, lambda marker: prompted(detached_.stage, marker))


@both
@steps(LIVE)
@pytest.mark.scenario("C3", "C4", "K3")
def test_a_live_answer(asked_: Question, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, fault: Fault) -> None:
    agent = asked_.waits()
    failed = commits_fail(monkeypatch, fault, module, step)
    said = asked_.respond(answers(text="first"))
    assert failed == [step]

    def received(marker: str) -> int:
        if asked_.claims and asked_.claims[-1].state in ("confirmed", "finalized"):
            agent.ended()
            steady(asked_.stage).talk()  # so no watchdog barks
        return live(agent, marker) + prompted(asked_.stage, marker)

    received("")
    settle(asked_.stage)
    judge(asked_, said, received)


@both
@steps(PROMPTS)
@pytest.mark.scenario("R17", "D4")
def test_an_ordinary_prompt(
    running_session: Stage, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, fault: Fault
) -> None:
    """Sent again with its own client id, it reaches the agent once in the end, whatever the first try was told."""
    running_session.ready()
    background.settle()
    failed = commits_fail(monkeypatch, fault, module, step)
    first = sent(running_session)
    assert failed == [step]
    settle(running_session)
    assert not (first == 503 and prompted(running_session, "ordinary") and fault == "failed")
    until(lambda: sent(running_session) in (200, 201), what="the same client id is answered")
    settle(running_session)
    assert prompted(running_session, "ordinary") == 1
    assert Admission.objects.filter(client_message_id="key-1").count() == 1
    serves(running_session)


def sent(stage: Stage) -> int:
    from tasks.errors import translate

    try:
        return stage.send("ordinary", "key-1").status
    except Exception as error:  # noqa: BLE001 - as DRF's handler takes it
        return translate(error).status


def steady(stage: Stage) -> SteadyRunner:
    assert isinstance(stage.runner, SteadyRunner)
    return stage.runner


def settle(stage: Stage) -> None:
    """All budgets end; the sweep of a living process does what is left, and the runner says what it knows."""
    for _ in range(3):
        time_passes()
        sweep()
        until(lambda: not steady(stage).pending(), what="the runner has done what it was told")
        background.settle()


def judge(question: Question, said: Outcome, received: Callable[[str], int]) -> None:
    assert question.state != "delivery_claimed", question.claims
    count = received("first")
    if said.status == 200:
        assert (said.body["claimed"], count) == (True, 1)
    elif said.status == 503 and said.code in ("delivery_failed", "convergence_failed"):
        assert count == 0
        assert question.state in ("active_live", "active_detached")
    else:
        # Nobody could know (500), or nothing was claimed as far as the caller was told: received once or not at all.
        assert said.status in (500, 503), said
        assert count in (0, 1)
    if question.state.startswith("active"):
        assert count == 0
        again = question.respond(answers(text="second"))
        assert again.short == (200, True), again
        received("")
        settle(question.stage)
        assert received("second") == 1
    else:
        assert count == 1
        assert question.respond(answers(text="second")).body["delivery"] == "delivered"
    assert {claim.state for claim in question.claims} <= {"finalized", "restored"}
    serves(question.stage)


def serves(stage: Stage) -> None:
    """The session is not stuck: an ordinary message is taken and given to the agent."""
    stage.ready()
    background.settle()
    assert stage.send("and now this").status == 201
    draining.drain(stage.session.pk)
    background.settle()
    until(lambda: prompted(stage, "and now this") == 1, what="an ordinary message is served")


def prompted(stage: Stage, text: str) -> int:
    """How many prompts with this text the runner took."""
    return sum(text in frame["prompt"] for frame in steady(stage).taken)


def live(agent: Agent, marker: str) -> int:
    if agent.waits:
        return 0
    response = agent.ended().response
    return 0 if response is None else [entry["custom_text"] for entry in response["answers"]].count(marker)
