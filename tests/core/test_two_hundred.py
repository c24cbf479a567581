"""Two people answer at the same moment, 200 times, through the whole of `respond` and down to the agent (G1)."""

from functools import partial

import pytest

from clarifications.models import ClaimState, WaiterLease
from tests.support.climbing import Outcome, Question, Stage, answers
from tests.support.waiting import at_once
from turns import background

ROUNDS = 200


@pytest.mark.scenario("G1", "G2", "D1")
@pytest.mark.timeout(600)
def test_one_wins_one_answer_is_handed_over_and_the_loser_hears_the_winner(running_session: Stage) -> None:
    stage = running_session
    for round_ in range(1, ROUNDS + 1):
        question = detached(stage)
        found = at_once(*[partial(question.respond, answers(pick=pick, text=pick)) for pick in ("a", "b")])
        heard = [outcome for outcome in found if isinstance(outcome, Outcome)]
        assert sorted(outcome.short for outcome in heard) == [(200, False), (200, True)], found
        winner, loser = sorted(heard, key=lambda outcome: not outcome.body["claimed"])
        assert loser.body["response"] == winner.body["response"]
        assert [claim.state for claim in question.claims] == [ClaimState.FINALIZED]
        assert len(stage.runner.got("dispatch")) == round_ + 1
        said = winner.body["response"]["answers"][0]["custom_text"]
        assert f"   > {said}\n" in stage.dispatched["prompt"] + "\n"


def detached(stage: Stage) -> Question:
    """Asked in the running turn, which then ends."""
    question = stage.ask()
    WaiterLease.objects.all().delete()
    stage.ready()
    background.settle()
    return question
