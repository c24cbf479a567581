"""What D3 promises after a refusal, and that the next try works."""

from clarifications.models import ClaimState
from tasks.models import SessionState
from tests.support.climbing import Outcome, Question
from turns import background, busy
from turns.models import DispatchState


def as_before(question: Question, got: Outcome) -> None:
    """What D3 says: retryable, rows pending, nothing left of the reservation; the next try makes one dispatch."""
    stage = question.stage
    assert (got.status, got.body["retryable"]) == (503, True)
    assert question.statuses == ["pending"] * question.count
    assert not any("response" in row.metadata or "claim_id" in row.metadata for row in question.rows)
    assert (stage.turns(), stage.fresh().state, busy.is_busy(stage.session.pk)) == (1, SessionState.WAITING, False)
    assert (question.state, stage.pending_action(), stage.listed()) == (
        "active_detached",
        "clarification",
        [question.pending_id],
    )
    assert question.claims[-1].state == ClaimState.RESTORED


def retries(question: Question) -> None:
    """The same answer again makes exactly one accepted dispatch."""
    stage = question.stage
    stage.runner.on_dispatch = stage.runner.accept
    before = len(stage.runner.got("dispatch"))
    assert question.respond().short == (200, True)
    background.settle()
    assert len(stage.runner.got("dispatch")) == before + 1
    assert stage.dispatches()[-1] == DispatchState.PUBLISHED
    assert stage.turns() == 2
