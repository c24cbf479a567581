"""Claim, confirm, restore, detach, expire, new turns, deletion, crash and recovery in any order, against the model."""

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from clarifications import confirming, detaching, leases, standing
from clarifications.errors import UnknownClarification
from clarifications.leases import Held
from clarifications.models import LeaseKind, WaiterLease
from tasks import breaks, ending
from tasks.models import SessionState
from tasks.principals import Principal
from tests.recovery.crashing import killed_at, reborn, recover, sweep, time_passes
from tests.recovery.model import Model
from tests.recovery.steady import SteadyRunner
from tests.support import climbing
from tests.support.climbing import SKIP, Question, Stage, answers
from tests.support.waiting import until
from turns import background, removing
from turns.models import Admission, Timer, TimerKind

EXAMPLES, STEPS = 50, 40


class Machine(RuleBasedStateMachine):
    runner: SteadyRunner
    taken = 0

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.stage: Stage
        self.question: Question | None = None
        self.lease: Held | None = None
        self.mark = ""

    @initialize()
    def begin(self) -> None:
        self.stage = climbing.run(climbing.build(self.runner))

    def step(self) -> None:
        type(self).taken += 1
        self.calm()
        self.stand_still()

    def stand_still(self) -> None:
        """Only `budgets_end` lets time pass: on a slow machine the request's own wait must not run out by itself."""
        if self.question is not None and self.model.waits == "request":
            due, mine = timezone.now() + leases.budget(), self.question.pending_id
            WaiterLease.objects.filter(pending_id=mine, kind=LeaseKind.REQUEST).update(expires_at=due)
            Timer.objects.filter(pending_id=mine, kind=TimerKind.FIRST_WAIT).update(due_at=due)

    def calm(self) -> None:
        until(lambda: not self.runner.pending(), what="the runner has done what it was told", every=0.002)
        background.settle()

    # --- the agent

    @precondition(lambda self: self.model.turn and self.model.question not in {"open", "claimed"})
    @rule()
    def ask(self) -> None:
        self.question, self.lease = self.stage.ask(), None
        self.model.ask()
        self.step()

    @precondition(lambda self: self.question is not None and self.model.waits != "call")
    @rule()
    def wait(self) -> None:
        assert self.question is not None
        begun = standing.begin(self.stage.agent, self.question.pending_id, LeaseKind.REST)
        may = self.model.turn and not self.model.newer and self.model.question in ("open", "claimed")
        assert isinstance(begun, Held) == may, (begun, self.model)
        if isinstance(begun, Held):
            self.lease, self.model.waits = begun, "call"
        self.step()

    @precondition(lambda self: self.model.waits == "call")
    @rule()
    def time_out(self) -> None:
        """The wait ends: detached, and the turn is paused; its runner acknowledges at once (K5)."""
        assert self.lease is not None
        stands = self.model.question == "open"
        detaching.leave(self.lease, timezone.now(), grace=False)
        self.model.waits = ""
        if stands:
            self.model.end_turn()
        self.step()

    @precondition(lambda self: self.lease is not None)
    @rule()
    def look(self) -> None:
        """The waiter looks: only it takes the claim, and only while it still waits in its open turn (C3, C4)."""
        assert self.lease is not None
        found = confirming.look(self.lease)
        takes = self.model.waits == "call" and self.model.question == "claimed"
        assert (found is not None and found.response is not None) == takes, (found, self.model)
        if found is None:
            assert self.model.waits == "call"
        elif takes:
            confirming.record_return(self.question.claims[-1].pk, self.lease, timezone.now())  # type: ignore[union-attr]
            self.runner.talk()
            self.model.question, self.model.waits, self.lease = "answered", "", None
            time_passes()
            sweep()
        self.step()

    @precondition(lambda self: self.model.turn)
    @rule()
    def ready(self) -> None:
        self.stage.ready()
        self.model.end_turn()
        self.step()

    # --- people

    @precondition(lambda self: self.question is not None)
    @rule()
    def claim_and_die(self) -> None:
        """A responder claims and its task is gone."""
        assert self.question is not None
        may = self.model.question == "open"
        if not may:
            return
        self.mark = f"mark-{type(self).taken}"
        with killed_at("respond.after_claim"):
            self.question.respond(answers(text=self.mark))
        self.model.question = "claimed"
        self.step()

    @precondition(lambda self: self.model.question == "open" and not self.model.waits)
    @rule()
    def answer(self) -> None:
        """Nobody waits: the old turn ends, one dispatch, the answer is the newest turn's prompt (D1, D14)."""
        assert self.question is not None
        mark = f"answer-{type(self).taken}"
        said = self.question.respond(answers(text=mark))
        assert said.short == (200, True), said
        assert sum(mark in frame["prompt"] for frame in self.runner.taken) == 1
        self.model.end_turn()
        self.model.question = "answered"
        self.model.new_turn()
        self.step()

    @precondition(lambda self: self.model.question == "open" and not self.model.waits)
    @rule()
    def refused(self) -> None:
        """The runner refuses: everything is as before, except that the old turn was paused for it (D3)."""
        assert self.question is not None
        self.runner.refuses = True
        said = self.question.respond(answers(text="refused"))
        self.runner.refuses = False
        assert said.short == (503, "delivery_failed"), said
        self.model.end_turn()
        self.step()

    @precondition(lambda self: self.model.question == "open" and not self.model.waits)
    @rule()
    def skip(self) -> None:
        assert self.question is not None
        assert self.question.respond(SKIP).short == (200, True)
        self.model.question = "rejected"
        self.step()

    @precondition(lambda self: self.question is not None and self.model.question not in ("open", "none", "claimed"))
    @rule()
    def answer_too_late(self) -> None:
        """A winner's payload, or nobody won: never a second win (G2)."""
        assert self.question is not None
        said = self.question.respond(answers(text="too-late"))
        won = self.model.question in ("answered", "rejected", "retired")
        assert said.short == ((200, False) if won else (409, "not_active")), (said, self.model)
        self.step()

    @precondition(lambda self: self.question is not None and self.model.question != "none")
    @rule()
    def cancel(self) -> None:
        """200 with a waiter, 404 without, 409 when an answer won (F5, R11)."""
        assert self.question is not None
        said = self.question.cancel()
        if self.model.question == "open":
            assert said.status == (200 if self.model.waits else 404), (said, self.model)
            self.model.question = "cancelled" if self.model.waits else "open"
            self.model.waits = ""
        else:
            won = self.model.question in ("claimed", "answered", "rejected", "retired")
            assert said.status == (409 if won else 404), (said, self.model)
        self.step()

    @precondition(lambda self: self.model.question == "open")
    @rule()
    def delete(self) -> None:
        """The last pending row goes: the bundle is over for good (R40)."""
        assert self.question is not None
        removing.remove(Principal(user=self.stage.workspace.owner), self.question.rows[0].pk)
        with pytest.raises(UnknownClarification):
            _ = self.question.state
        self.model.question, self.model.waits, self.question = "none", "", None
        self.step()

    @rule()
    def write(self) -> None:
        """Sent to an idle session as a new turn; queued for a busy one, and taken back here so that it stays a step."""
        if self.model.ended:
            return
        said = self.stage.send(f"message {type(self).taken}")
        assert said.body["admission"] == ("queued" if self.model.busy else "sent"), (said, self.model)
        if self.model.busy:
            Admission.objects.filter(session=self.stage.session, state="queued").delete()
        else:
            self.model.new_turn()
        self.step()

    # --- trouble

    @rule()
    def crash(self) -> None:
        reborn()
        recover(self.runner)
        recover()
        self.model.crash()
        self.step()

    @rule()
    def budgets_end(self) -> None:
        """What a task left lying is swept (R14)."""
        time_passes()
        sweep()
        self.model.restore()
        self.step()

    @rule()
    def sweep_only(self) -> None:
        sweep()
        self.step()

    @precondition(lambda self: self.model.question != "none")
    @rule()
    def end(self) -> None:
        """The session ends; the next question is another session's."""
        ending.end_session(self.stage.session.pk, SessionState.CANCELLED)
        self.model.end_session()
        time_passes()
        sweep()
        self.model.restore()
        self.agree()
        self.begin()
        self.model, self.question, self.lease = Model(), None, None
        self.step()

    # --- what people see

    @invariant()
    def agree(self) -> None:
        if self.question is not None:
            assert {self.question.state} <= self.model.state, (self.question.state, self.model)
        if hasattr(self, "stage"):
            assert self.stage.pending_action() == self.model.pending_action, self.model
            turn = self.stage.turn
            assert (turn.completed_at is None) == self.model.turn, self.model


def play(runner: SteadyRunner, examples: int) -> int:
    """Plays that many games and returns the number of steps."""
    Machine.runner, Machine.taken = runner, 0
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
        print_blob=True,
    )
    run_state_machine_as_test(Machine, settings=chosen)
    return Machine.taken


@pytest.mark.scenario("E1", "E11", "A2", "F1", "G1", "R7", "R14", "R40")
@pytest.mark.timeout(900)
def test_every_order_of_steps_agrees_with_the_model(runner: SteadyRunner) -> None:
    taken = play(runner, EXAMPLES)
    print(f"{taken} steps; they are the same in every run (derandomized)")
    assert taken > 1000


def test_the_model_notices_when_a_guard_is_taken_away(runner: SteadyRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: claims that take whatever is there."""
    monkeypatch.setattr(breaks, "_broken", "one_winner")
    with pytest.raises(Exception):  # noqa: B017, PT011 - whichever assertion of the machine notices first
        play(runner, 20)
