"""Every guarded step called a second time: nothing is written, nothing is told (F1, E10)."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from clarifications import closing, confirming, detaching, leases, recovering, restoring, watching
from clarifications.models import Claim, WaiterLease, Watchdog
from tasks import ending as session_ending
from tasks.models import Event, Session, SessionState, Task
from tests.core.test_races import a_runner, claimed, detached, live, reserved
from tests.support.climbing import Stage, add_row, by_hand
from turns import attempting, completing, draining, ending, pausing, publishing, runners, settling, timers
from turns import recovering as dispatch_recovering
from turns.models import Admission, Dispatch, DispatchState, EndReason, Message, RunnerFrame, Timer, TimerKind, Turn

TABLES: list[type[Model]] = [
    Turn,
    Message,
    Claim,
    Dispatch,
    Session,
    Task,
    Event,
    WaiterLease,
    Watchdog,
    Timer,
    Admission,
    RunnerFrame,
]
Step = Callable[[], object]


def everything() -> dict[str, list[dict[str, Any]]]:
    return {table.__name__: list(table.objects.order_by("pk").values()) for table in TABLES}  # type: ignore[attr-defined]


def end_turn(scene: Stage) -> Step:
    detached(scene)
    live(scene)
    return lambda: ending.end_turn(scene.session.pk, scene.turn.pk, EndReason.READY, timezone.now())


def cancel_turn(scene: Stage) -> Step:
    live(scene)
    return lambda: pausing.cancel_turn(scene.session.pk, scene.turn.pk, "test", timezone.now())


def interrupt(scene: Stage) -> Step:
    return lambda: pausing.interrupt(scene.session.pk, scene.turn.pk, timezone.now())


def leave(scene: Stage) -> Step:
    _, lease = live(scene)
    return lambda: detaching.leave(lease, timezone.now(), grace=False)


def end_lease(scene: Stage) -> Step:
    _, lease = live(scene)
    return lambda: leases.end(lease.pk)


def confirm(scene: Stage) -> Step:
    question, lease = live(scene)
    claimed(question)
    return lambda: confirming.confirm(lease)


def restore(scene: Stage) -> Step:
    made = claimed(detached(scene))
    return lambda: restoring.restore(made.pk)


def recover_claim(scene: Stage) -> Step:
    made = claimed(detached(scene))
    Claim.objects.update(owner=987_654)
    made.refresh_from_db()
    return lambda: recovering.recover_claim(made)


def recover_confirmed(scene: Stage) -> Step:
    question, lease = live(scene)
    made = claimed(question)
    confirming.confirm(lease)
    Claim.objects.update(owner=987_654)
    made.refresh_from_db()
    return lambda: recovering.recover_claim(made)


def attempt(scene: Stage) -> Step:
    dispatch, runner = reserved(scene, detached(scene)), a_runner(scene)
    return lambda: attempting.attempt(dispatch.pk, runner, timezone.now())


def attempted(scene: Stage) -> Dispatch:
    dispatch, runner = reserved(scene, detached(scene)), a_runner(scene)
    assert attempting.attempt(dispatch.pk, runner, timezone.now())
    return dispatch


def accept(scene: Stage) -> Step:
    dispatch = attempted(scene)
    return lambda: settling.accept(dispatch.pk, scene.runner.runner_id)


def refuse(scene: Stage) -> Step:
    dispatch = attempted(scene)
    return lambda: settling.refuse(dispatch.pk, scene.runner.runner_id, DispatchState.REJECTED, "busy", "busy")


def withdraw(scene: Stage) -> Step:
    dispatch = reserved(scene, detached(scene))
    return lambda: settling.withdraw(dispatch.pk, code="x", reason="y")


def publish(scene: Stage) -> Step:
    dispatch = attempted(scene)
    settling.accept(dispatch.pk, scene.runner.runner_id)
    return lambda: publishing.publish(dispatch.pk)


def recover_dispatch(scene: Stage) -> Step:
    dispatch = attempted(scene)
    settling.accept(dispatch.pk, scene.runner.runner_id)
    Dispatch.objects.update(owner=987_654)
    dispatch.refresh_from_db()
    return lambda: dispatch_recovering.recover_dispatch(dispatch)


def expire(scene: Stage) -> Step:
    detached(scene)
    Session.objects.filter(pk=scene.session.pk).update(state=SessionState.CANCELLED)
    return lambda: closing.expire_session(scene.session.pk, timezone.now())


def announce_ended(scene: Stage) -> Step:
    ending.end_turn(scene.session.pk, scene.turn.pk, EndReason.SESSION_ENDED, timezone.now())
    Turn.objects.update(completion_unpublished=True)
    return lambda: ending.announce_ended(scene.session.pk, timezone.now())


def end_session(scene: Stage) -> Step:
    detached(scene)
    return lambda: session_ending.end_session(scene.session.pk, SessionState.FAILED)


def begin_fallback(scene: Stage) -> Step:
    question, lease = live(scene)
    made = claimed(question)
    confirming.confirm(lease)
    WaiterLease.objects.all().delete()
    now = timezone.now()
    Watchdog.objects.update(due_at=now)
    return lambda: watching._begin(made.pk, now)


def run_timer(scene: Stage) -> Step:
    timer = Timer.objects.create(
        kind=TimerKind.PAUSE, session=scene.session, turn_id=scene.turn.pk, due_at=timezone.now()
    )
    return lambda: timers._run(timer, timezone.now())


def judge(scene: Stage) -> Step:
    Turn.objects.update(completed_at=timezone.now(), end_reason=EndReason.READY)
    Task.objects.update(state="in_progress")
    return lambda: completing.judge(scene.task.pk)


def reattach(scene: Stage) -> Step:
    row = add_row(scene.session, scene.turn.pk, {"agent_disconnected": True})

    def step() -> None:
        with transaction.atomic():
            detaching.reattach(scene.session.pk, row.metadata["pending_id"], timezone.now())

    return step


def detach(scene: Stage) -> Step:
    add_row(scene.session, scene.turn.pk)

    def step() -> None:
        with transaction.atomic():
            detaching.detach(scene.session.pk, Message.objects.filter(session=scene.session), timezone.now())

    return step


def disconnect(scene: Stage) -> Step:
    a_runner(scene)
    return lambda: runners.disconnect(scene.runner.runner_id, scene.runner.connection_id)


STEPS: list[Callable[[Stage], Step]] = [
    end_turn, cancel_turn, interrupt, leave, end_lease, confirm, restore, recover_claim, recover_confirmed, attempt,
    accept, refuse, withdraw, publish, recover_dispatch, expire, announce_ended, end_session, begin_fallback,
    run_timer, judge, reattach, detach, disconnect,
]  # fmt: skip


@pytest.mark.scenario("F1", "E10", "R11a", "R28")
@pytest.mark.parametrize("prepare", STEPS, ids=[step.__name__ for step in STEPS])
def test_a_second_call_writes_and_tells_nothing(
    serving: None, prepare: Callable[[Stage], Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turns.background.submit", lambda *args: None)
    step = prepare(by_hand())
    before = everything()
    first = step()
    after = everything()
    assert first or first is None
    assert before != after or prepare is disconnect
    assert not step()
    assert everything() == after


@pytest.mark.scenario("E10", "R11a")
@pytest.mark.parametrize("prepare", [attempt, withdraw, accept, refuse, publish, restore, confirm])
def test_a_step_of_something_that_is_gone_changes_nothing(
    serving: None, prepare: Callable[[Stage], Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session was deleted meanwhile, with all that hangs on it."""
    monkeypatch.setattr("turns.background.submit", lambda *args: None)
    scene = by_hand()
    step = prepare(scene)
    Session.objects.filter(pk=scene.session.pk).delete()
    before = everything()
    try:
        assert not step() or prepare is confirm
    except Dispatch.DoesNotExist:
        assert prepare is attempt
    assert everything() == before


def test_draining_an_empty_queue_does_nothing(serving: None) -> None:
    assert not draining.drain(uuid.uuid4())
    assert not draining.drain(by_hand().session.pk)
