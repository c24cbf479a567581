"""Answers through every pair of entry points at the same moment, in one process: one winner, one hand-over (G1, B22).

`RACE_ROUNDS=100` races each pair a hundred times; without it a hundred races are spread over the pairs.
"""

import os
from functools import partial
from typing import Any

import pytest

from tests.races.entries import ENTRIES, PAIRS
from tests.support.climbing import SKIP, Question, Stage, answers, questions
from tests.support.waiting import at_once
from turns import background

ROUNDS = int(os.environ.get("RACE_ROUNDS", "17"))
pytestmark = [pytest.mark.usefixtures("patient"), pytest.mark.timeout(600 if ROUNDS < 50 else 3600)]


def ask(stage: Stage, number: object) -> Question:
    """Never the same questions again: those would join."""
    return stage.ask(raw=[{**questions()[0], "prompt": f"Round {number}?"}])


def race(question: Question, *calls: tuple[str, dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The winner's outcome and the losers', who were told what he said."""
    made = {name: ENTRIES[name](question.stage) for name in dict(calls)}
    found = at_once(*[partial(made[name], question.pending_id, payload) for name, payload in calls])
    outcomes = [one for one in found if isinstance(one, dict)]
    assert len(outcomes) == len(calls), found
    won = [one for one in outcomes if one.get("claimed") is True]
    lost = [one for one in outcomes if one.get("claimed") is False]
    assert (len(won), len(lost)) == (1, len(calls) - 1), outcomes
    for one in lost:
        said = {key: value for key, value in won[0]["response"].items() if key != "reject_reason"}
        assert {key: value for key, value in one["response"].items() if key != "reject_reason"} == said
        assert one["status"] == won[0]["status"]
    return won[0], lost


def picks(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two payloads that differ; every third time one of them is a refusal."""
    return answers(pick="a", text="first"), SKIP if number % 3 == 2 else answers(pick="b", text="second")


@pytest.mark.scenario("G1", "G2", "C1", "C2")
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_a_waiting_agent_is_handed_the_one_winner(running_session: Stage, pair: tuple[str, str]) -> None:
    stage = running_session
    for number in range(ROUNDS):
        question = ask(stage, number)
        agent = question.waits()
        won, _ = race(question, *zip(pair, picks(number), strict=True))
        assert (agent.ended().response or {}) == won["response"]
        assert len(question.claims) == 1
    assert stage.turns() == 1
    assert len(stage.runner.got("dispatch")) == 1


@pytest.mark.scenario("G1", "G2", "D1")
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_a_detached_question_is_answered_by_one_new_prompt(running_session: Stage, pair: tuple[str, str]) -> None:
    stage = running_session
    for number in range(ROUNDS):
        before = len(stage.runner.got("dispatch"))
        question = ask(stage, number).detach()
        won, _ = race(question, *zip(pair, picks(3 * number), strict=True))
        background.settle()
        fresh = stage.runner.got("dispatch")[before:]
        assert len(fresh) == 1
        assert won["response"]["answers"][0]["custom_text"] in fresh[0]["prompt"]
        assert len(question.claims) == 1


@pytest.mark.scenario("G1", "G2")
@pytest.mark.parametrize("live", [True, False], ids=["live", "detached"])
def test_fifty_mixed_answers_at_once_are_one_answer(running_session: Stage, live: bool) -> None:
    stage = running_session
    question = ask(stage, "of fifty")
    agent = question.waits() if live else None
    if not live:
        question.detach()
    names = list(ENTRIES)
    calls = [(names[n % 3], SKIP if n % 5 == 4 else answers(pick="ab"[n % 2], text=f"caller {n}")) for n in range(50)]
    won, lost = race(question, *calls)
    background.settle()
    assert len(lost) == 49
    stored = question.rows[0].metadata
    assert stored["status"] == won["status"]
    assert stored.get("response") == (won["response"]["answers"] or [None])[0]
    resumed = not live and won["status"] == "answered"
    assert len(stage.runner.got("dispatch")) == (2 if resumed else 1)
    assert stage.turns() == (2 if resumed else 1)
    if agent is not None:
        assert agent.ended().response == won["response"]
