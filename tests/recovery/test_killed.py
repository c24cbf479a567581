"""A process is killed at every failpoint (contract 8) and started again, or its peer takes over (E1-E4, E9, E11).

Whatever the point: no answer is lost, none is received twice, every claim is resolved, and the session serves the next
message. The table of what became of each stands at the end of the run.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.recovery.conftest import MakeWorld, reported
from tests.recovery.world import DEAD, Told, World, answer
from tests.support.threads import beside
from tests.support.waiting import until

KILLED = 137
PENDING, DELIVERED, FALLBACK, EXPIRED, SERVED = "pending again", "delivered", "by the fallback", "expired", "served"
AS_IT_SAYS = "as the runner's journal says"


@dataclass(frozen=True)
class Kill:
    """`point` is where `home` dies while `scene` plays; `outcome` is what the promise says of it then."""

    point: str
    scene: Callable[[World], str]
    outcome: str
    promises: tuple[str, ...]
    # Who reads the runner's word passes the point, so the runner must speak to the process that dies.
    runner_at_home: bool = False
    # With two processes the other half of the hand-over lives on and ends it.
    with_peer: str = ""

    @property
    def name(self) -> str:
        return f"{self.point}-{self.scene.__name__.strip('_')}"


def _detached(world: World) -> str:
    """A detached question is answered."""
    pending_id = world.detach()
    assert world.respond(pending_id, answer("first-answer")) == DEAD
    return pending_id


def _refused(world: World) -> str:
    """The runner refuses the dispatch of a detached answer; its restore is one transaction with the undo."""
    pending_id = world.detach()
    world.runner.refuses = "busy"
    assert world.respond(pending_id, answer("first-answer")) == DEAD
    world.runner.refuses = ""
    return pending_id


def _live(world: World) -> str:
    """A waiting agent's question is answered; the waiter is in the process that dies, the person at the other."""
    pending_id = world.ask(world.home)
    waiter = world.wait(pending_id, world.home)
    said = beside(world.respond, pending_id, answer("first-answer"), world.peer)
    assert waiter.result(30) == DEAD
    said.result(30)
    return pending_id


def _live_responder(world: World) -> str:
    """A waiting agent's question is answered at the process that dies; the waiter is at the other."""
    pending_id = world.ask()
    waiter = world.wait(pending_id, world.peer)
    assert world.respond(pending_id, answer("first-answer")) == DEAD
    waiter.result(30)
    return pending_id


def _timeout(world: World) -> str:
    """The agent's wait ends without an answer."""
    pending_id = world.ask(world.home)
    assert world.wait(pending_id, world.home, timeout_s=0.5).result(30) == DEAD
    return pending_id


def _ended(world: World) -> str:
    """The session is cancelled while a question is open."""
    pending_id = world.ask()
    assert world.owner("POST", f"/task-sessions/{world.session}/cancel", {}, world.home) == DEAD
    return pending_id


def _prompt(world: World) -> str:
    """An ordinary message to an idle session."""
    world.ready()
    until(lambda: world.turns()[-1]["completed_at"], what="the turn ends")
    assert world.say("ordinary", "key-1", world.home) == DEAD
    return ""


def _queue(world: World) -> str:
    """A message waits in the queue; the end of the turn takes it out."""
    assert world.say("ordinary", "key-1", world.home)[1]["admission"] == "queued"
    world.ready()
    return ""


KILLS = (
    Kill("respond.after_claim", _detached, PENDING, ("E1",)),
    Kill("respond.after_claim", _live_responder, PENDING, ("E1",), with_peer=DELIVERED),
    Kill("live.after_wake", _live, PENDING, ("C3", "E1", "E12"), with_peer=DELIVERED),
    Kill("live.after_confirm", _live, FALLBACK, ("K6",)),
    Kill("respond.before_finalize", _live_responder, DELIVERED, ("R16",)),
    Kill("dispatch.after_reserve", _detached, PENDING, ("E2",)),
    Kill("dispatch.after_attempt", _detached, AS_IT_SAYS, ("E3",)),
    Kill("dispatch.after_accept", _detached, DELIVERED, ("E4",)),
    Kill("dispatch.after_publish", _detached, DELIVERED, ("E4",)),
    Kill("restore.before_commit", _refused, PENDING, ("D3", "D9"), runner_at_home=True),
    Kill("detach.before_commit", _timeout, PENDING, ("F4", "E12")),
    Kill("expire.before_commit", _ended, EXPIRED, ("F3", "R30")),
    Kill("dispatch.after_reserve", _prompt, SERVED, ("R17",)),
    Kill("dispatch.after_attempt", _prompt, SERVED, ("R17",)),
    Kill("dispatch.after_accept", _prompt, SERVED, ("R17", "E4")),
    Kill("dispatch.after_publish", _prompt, SERVED, ("R17", "E4")),
    Kill("queue.after_pop", _queue, SERVED, ("L7", "R17"), runner_at_home=True),
)
CASES = [pytest.param(kill, id=kill.name, marks=pytest.mark.scenario("E11", *kill.promises)) for kill in KILLS]


@pytest.mark.parametrize("kill", CASES)
def test_killed_and_started_again(make_world: MakeWorld, database: str, kill: Kill) -> None:
    # The session's first prompt has passed the dispatch points once.
    point = f"{kill.point}:2" if kill.point.startswith("dispatch.") else kill.point
    world = make_world(failpoints=point, KANDEV_WATCHDOG_S="2", KANDEV_INSTANCE_LEASE_S="60")
    pending_id = kill.scene(world)
    assert world.home.ended() == KILLED
    world.home.restart()
    judge(world, kill, pending_id, database)


@pytest.mark.scenario("E9", "R39")
@pytest.mark.parametrize("kill", CASES)
def test_killed_and_taken_over_by_the_peer(make_world: MakeWorld, database: str, kill: Kill) -> None:
    world = make_world(2, failpoints=kill.point, runner_at_home=kill.runner_at_home, KANDEV_WATCHDOG_S="2")
    pending_id = kill.scene(world)
    assert world.home.ended() == KILLED
    world.runner.urls = [world.peer.url]
    judge(world, kill, pending_id, database, processes=2)


@pytest.mark.scenario("E11", "E1")
def test_killed_again_while_it_recovers(make_world: MakeWorld, database: str) -> None:
    world = make_world(failpoints="respond.after_claim", KANDEV_INSTANCE_LEASE_S="60")
    pending_id = _detached(world)
    assert world.home.ended() == KILLED
    world.home.restart(ready=False, KANDEV_FAILPOINTS="recovery.after_claim_restore")
    assert world.home.ended() == KILLED
    world.home.restart()
    kill = Kill("recovery.after_claim_restore", _detached, PENDING, ())
    judge(world, kill, pending_id, database)


@pytest.mark.scenario("E9", "E11", "E1")
def test_killed_while_it_recovers_a_peers_claim_and_another_peer_lives(make_world: MakeWorld, database: str) -> None:
    """The peer that lives on is frozen for as long as the other one takes the claim over, so that it is not first."""
    world = make_world(2, failpoints="recovery.after_claim_restore", KANDEV_INSTANCE_LEASE_S="60")
    third = world.product.start(KANDEV_FAILPOINTS="respond.after_claim")
    pending_id = world.detach()
    world.freeze(world.peer)
    until(lambda: world.respond(pending_id, answer("first-answer"), third) == DEAD, within=30, what="it dies")
    assert (third.ended(), world.home.ended()) == (KILLED, KILLED)
    world.peer.thaw()
    kill = Kill("recovery.after_claim_restore", _detached, PENDING, ())
    judge(world, kill, pending_id, database, processes=2)


def judge(world: World, kill: Kill, pending_id: str, database: str, processes: int = 1) -> None:
    """The outcome that the promise names, then the promise of every row: nothing lost, nothing twice, nothing stuck."""
    until(lambda: world.runner.connected, what="the runner is back")
    outcome = kill.with_peer if kill.with_peer and processes > 1 else kill.outcome
    OUTCOMES[outcome](world, pending_id)
    if outcome != EXPIRED:
        world.serves()
    world.tidy()
    scene = (kill.scene.__doc__ or "").partition(";")[0].rstrip(".")
    reported.append(f"| `{kill.point}` | {scene} | {database} | {processes} | {outcome} |")


def _is_pending(world: World, pending_id: str) -> None:
    """The same question is answered again, and only that answer arrives."""
    # Until the runner's journal has decided it may stand as terminal (contract 4).
    until(lambda: world.state(pending_id).startswith("active"), within=30, what="the question is pending again")
    said = until(lambda: _answered(world, pending_id), within=30, what="it is answered again")
    assert [(status, body["claimed"], body["delivery"]) for status, body in said] == [(200, True, "delivered")]
    world.once("second-answer")
    assert world.received("first-answer") == 0


def _answered(world: World, pending_id: str) -> list[Told]:
    """Nothing while the answer is refused for now."""
    said = world.respond(pending_id, answer("second-answer"), world.peer)
    return [] if said[0] == 503 else [said]


def _is_delivered(world: World, pending_id: str) -> None:
    until(lambda: world.received("first-answer"), within=30, what="the answer was received")
    assert world.settled(pending_id) == "terminal"
    status, body = world.respond(pending_id, answer("second-answer"), world.peer)
    assert (status, body["claimed"], body["delivery"]) == (200, False, "delivered"), body
    assert body["response"]["answers"][0]["custom_text"] == "first-answer"
    assert (_heard_once(world, "first-answer"), world.received("second-answer")) == (True, 0)


def _heard_once(world: World, text: str) -> bool:
    """Once, or once more as the fallback: a process that died between the write of a live answer and its record leaves
    nobody who knows that it arrived (R24).
    """
    return (world.live.count(text), len(world.prompted(text))) in {(1, 0), (0, 1), (1, 1)}


def _is_settled(world: World, pending_id: str) -> None:
    """The frame got out, now or with the runner's next connection, or it died with the socket: the runner knows."""

    def known() -> bool:
        return world.received("first-answer") == 1 or world.state(pending_id).startswith("active")

    until(known, within=30, what="the runner has said what it did")
    (_is_delivered if world.received("first-answer") else _is_pending)(world, pending_id)


def _is_expired(world: World, pending_id: str) -> None:
    until(lambda: world.bundle(pending_id)["questions"][0]["status"] == "expired", what="the question expires")
    assert world.state(pending_id) == "terminal"
    assert world.respond(pending_id, answer("second-answer"), world.peer)[1]["code"] == "not_active"


def _is_served(world: World, pending_id: str) -> None:
    """The prompt reaches the agent once; its own client id, sent again, makes no second one."""
    until(lambda: world.say("ordinary", "key-1", world.peer)[0] in (200, 201), within=20, what="its id is known")
    world.served("ordinary")


OUTCOMES = {
    PENDING: _is_pending,
    DELIVERED: _is_delivered,
    FALLBACK: _is_delivered,
    AS_IT_SAYS: _is_settled,
    EXPIRED: _is_expired,
    SERVED: _is_served,
}
