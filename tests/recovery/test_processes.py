"""What only real processes show: frozen ones, refused starts, an ordered end, an outage of the database."""

import threading
from concurrent.futures import Future

import pytest
from psycopg import connect

from tests.conftest import MakeProduct
from tests.recovery.conftest import MakeWorld
from tests.recovery.world import DEAD, WAITERS, Told, World, answer, questions, told
from tests.support.processes import Product
from tests.support.threads import beside
from tests.support.waiting import at_once, until

BROKEN = """
from django.utils import timezone
from tasks.models import Session
from turns.models import Turn
now = timezone.now()
Turn.objects.create(session=Session.objects.get(), started_at=now, created_at=now, metadata={
    "prompt_dispatch_pending": True, "owner_instance": 0, "claimed_message_ids": "no list"})
"""
MENDED = """
from turns.models import Turn
Turn.objects.filter(dispatch_pending=True).update(metadata={"prompt_dispatch_pending": True})
"""


def run(product: Product, code: str) -> None:
    product.manage("shell", "-v0", "-c", code)


@pytest.mark.scenario("E6", "E8")
def test_a_start_whose_recovery_fails_ends_with_a_message_and_is_mended_by_hand(make_world: MakeWorld) -> None:
    world = make_world()
    world.ready()
    world.home.kill9()
    run(world.product, BROKEN)
    world.home.relaunch()
    assert world.home.ended() == 1
    assert "recovery failed" in world.home.logs()
    assert "claimed_message_ids" in world.home.logs()
    assert world.owner("GET", "/boot") == DEAD
    run(world.product, MENDED)
    world.home.restart()
    world.serves()


@pytest.mark.scenario("E10", "E9")
def test_a_frozen_process_that_wakes_finds_its_answer_given_by_another(make_world: MakeWorld) -> None:
    """It is frozen while it waits for the runner's word on its dispatch, past its lease; its peer takes over."""
    world = make_world(2, KANDEV_INSTANCE_LEASE_S="2", KANDEV_DELIVERY_TIMEOUT_S="8")
    pending_id = world.detach()
    world.runner.replies = False
    frozen = beside(world.respond, pending_id, answer("first-answer"), world.home)
    until(lambda: [f for f in world.runner.seen if f["type"] == "dispatch"][1:], what="the dispatch is sent")
    world.freeze(world.home)
    until(lambda: [f for f in world.runner.seen if f["type"] == "revoke"], within=20, what="the peer asks")
    # The runner never took the dispatch; now it says so, and the bundle is pending again.
    world.runner.replies = True
    revoke = next(frame for frame in world.runner.seen if frame["type"] == "revoke")
    world.loop.call(world.runner.say({"type": "revoked", "dispatch_id": revoke["dispatch_id"]}))
    until(lambda: world.state(pending_id) == "active_detached", what="the question is pending again")
    status, body = world.respond(pending_id, answer("second-answer"), world.peer)
    assert (status, body["claimed"]) == (200, True)
    world.home.thaw()
    assert frozen.result(40)[0] in (0, 500, 503)
    world.once("second-answer")
    assert world.received("first-answer") == 0
    assert world.bundle(pending_id)["questions"][0]["response"]["custom_text"] == "second-answer"
    until(lambda: "declared dead" in world.home.logs(), what="it notices that it was declared dead")
    assert world.owner("GET", "/boot", server=world.home)[0] == 200
    world.serves()
    world.tidy()


@pytest.mark.scenario("E10", "E12")
def test_a_frozen_waiter_that_wakes_returns_no_answer(make_world: MakeWorld) -> None:
    world = make_world(2, KANDEV_INSTANCE_LEASE_S="2", KANDEV_DELIVERY_TIMEOUT_S="12")
    pending_id = world.ask(world.home)
    waiter = world.wait(pending_id, world.home)
    world.freeze(world.home)
    until(lambda: world.state(pending_id) == "active_detached", within=20, what="the peer detaches the question")
    said = until(lambda: _accepted(world, pending_id), within=30, what="the answer is taken")
    assert said[0]["delivery"] == "delivered"
    world.home.thaw()
    assert waiter.result(40)[0] in (0, 503, 504)
    world.once("first-answer")
    assert world.live == []
    world.serves()
    world.tidy()


@pytest.mark.scenario("E10")
def test_the_runner_of_a_frozen_process_is_served_again_when_it_wakes(make_world: MakeWorld) -> None:
    """Declared dead meanwhile, it tells the runner to connect anew: the old socket speaks for nobody."""
    world = make_world(2, runner_at_home=True, KANDEV_INSTANCE_LEASE_S="2")
    world.ready()
    world.freeze(world.home)
    until(lambda: "is dead" in world.peer.logs(), within=20, what="the peer declares it dead")
    world.home.thaw()
    until(lambda: world.runner.connections > 1, within=20, what="the runner has connected anew")
    world.serves()


@pytest.mark.scenario("R27", "E9")
def test_an_ordinary_end_is_no_death(make_world: MakeWorld) -> None:
    """The control: after a kill the next start finds a dead instance."""
    world = make_world()
    world.home.term(10)
    world.home.restart()
    assert "is dead" not in world.home.logs()
    world.home.kill9()
    world.home.restart()
    assert "is dead" in world.home.logs()


@pytest.mark.scenario("R27")
def test_sigterm_ends_a_hundred_waiters_within_ten_seconds_and_the_questions_stand(make_world: MakeWorld) -> None:
    world = make_world()
    pending_id = world.ask()
    path = f"{world.home.url}/api/v1/clarification/{pending_id}/wait"
    waiters: list[Future[Told]] = [beside(told, "GET", path, world.token, None, 60) for _ in range(100)]
    until(lambda: world.gauge(WAITERS) == 100, within=30, what="a hundred wait")
    world.home.term(10)
    ended = [waiter.result(10) for waiter in waiters]
    assert {status for status, _ in ended} == {503}, {status for status, _ in ended}
    assert all(body["retryable"] and body["code"] == "temporarily_unavailable" for _, body in ended)
    world.home.restart()
    bundle = world.bundle(pending_id)
    assert bundle["state"].startswith("active")
    assert [question["status"] for question in bundle["questions"]] == ["pending"]
    until(lambda: world.runner.connected, what="the runner is back")
    again = world.wait(pending_id)
    assert world.respond(pending_id, answer("kept"))[0] == 200
    assert again.result(20)[0] == 200


@pytest.mark.scenario("E12", "C6")
def test_a_waiter_whose_process_is_killed_is_detached_within_the_lease(make_world: MakeWorld) -> None:
    world = make_world(2, KANDEV_INSTANCE_LEASE_S="5")
    pending_id = world.ask(world.home)
    waiter = world.wait(pending_id, world.home)
    world.home.kill9()
    assert waiter.result(10) == DEAD
    until(lambda: world.state(pending_id) == "active_detached", within=5, what="the question is detached")
    assert world.respond(pending_id, answer("first-answer"), world.peer)[0] == 200
    world.once("first-answer")


@pytest.mark.scenario("E11", "R14")
def test_an_outage_of_the_database_ends_no_wait_and_loses_no_word(make_world: MakeWorld, database: str) -> None:
    """Every connection is cut while an agent waits and its runner is connected; then both go on."""
    world = make_world()
    pending_id = world.ask()
    waiter = world.wait(pending_id)
    for _ in range(5):
        cut(world, database)
    until(lambda: world.owner("GET", "/boot")[0] == 200, what="the server has a connection again")
    assert waiter.done() is False
    said = until(lambda: _accepted(world, pending_id), within=20, what="the answer is taken")
    assert said[0]["claimed"]
    assert waiter.result(20)[0] == 200
    world.message()
    cut(world, database)
    world.ready()
    until(
        lambda: world.turns() and world.turns()[-1]["completed_at"], within=20, what="the end of the turn is not lost"
    )
    world.serves()
    world.tidy()


def cut(world: World, database: str) -> None:
    """PostgreSQL ends every connection of the product; SQLite is locked for a moment."""
    if database == "sqlite":
        import sqlite3

        file = sqlite3.connect(world.product.database_url.removeprefix("sqlite:///"), isolation_level=None, timeout=20)
        file.execute("BEGIN IMMEDIATE")
        threading.Event().wait(0.5)
        file.execute("ROLLBACK")
        file.close()
        return
    ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
    with connect(world.product.database_url, autocommit=True) as link:
        link.execute(ends, (link.info.backend_pid,))


def _accepted(world: World, pending_id: str) -> list[dict[str, object]]:
    status, body = world.respond(pending_id, answer("first-answer"), world.peer)
    return [body] if status == 200 else []


@pytest.mark.scenario("R39", "G1")
def test_two_processes_on_sqlite_or_postgresql_give_one_winner(make_world: MakeWorld) -> None:
    world = make_world(2)
    for number in range(5):
        pending_id = world.ask(questions=questions(f"number {number}"))
        waiter = world.wait(pending_id, world.home if number % 2 else world.peer)
        first, second = at_once(
            lambda pk=pending_id: world.respond(pk, answer(f"one-{pk}"), world.home),  # type: ignore[misc]
            lambda pk=pending_id: world.respond(pk, answer(f"two-{pk}"), world.peer),  # type: ignore[misc]
        )
        assert not isinstance(first, Exception)
        assert not isinstance(second, Exception)
        assert {first[0], second[0]} == {200}
        assert sorted(body["claimed"] for _, body in (first, second)) == [False, True]
        assert first[1]["response"] == second[1]["response"]
        assert waiter.result(20)[1] == first[1]["response"]
        world.message()
    world.serves()


@pytest.mark.scenario("R15")
def test_the_doctor_names_what_is_stuck_and_says_so_with_its_exit_code(make_product: MakeProduct) -> None:
    product = make_product()
    done = product.manage("doctor", "--idle")
    assert "settled" in done.stdout
    run(
        product,
        "from tasks.models import Event; from django.utils import timezone; import datetime as dt, uuid;"
        "Event.objects.create(action='x', task_id=uuid.uuid4(), created_at=timezone.now() - dt.timedelta(minutes=5))",
    )
    done = product.manage("doctor", check=False)
    assert done.returncode == 1
    assert "OVERDUE" in done.stdout
    assert "events" in done.stdout
