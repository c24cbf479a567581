"""Which session a task is opened with (J1-J4, J8): decided on the server from what is true now."""

import pytest
from django.test import Client

from tasks.models import Session, SessionState, Task
from tests.pages.conftest import Signed, World


def opened(client: Client, world: World, **query: str) -> str | None:
    """The chosen session, None = the task alone."""
    answer = client.get(f"/tasks/{world.task.pk}/open", query)
    assert answer.status_code == 302
    path, _, session = answer.headers["Location"].partition("?session=")
    assert path == f"/tasks/{world.task.pk}"
    return session or None


def seen(world: World) -> dict[str, str]:
    """What a person saw of the task just now."""
    row = Task.objects.with_pending().get(pk=world.task.pk)
    return {"revision": str(row.summary_revision), "action": row.pending_kind}


def visit(client: Client, session: Session) -> None:
    assert client.get(f"/tasks/{session.task_id}?session={session.pk}").status_code == 200


@pytest.mark.scenario("J1", "R41")
def test_the_newest_session_with_the_question_comes_before_remembered_and_primary(
    world: World, signed: Signed, offered: None
) -> None:
    primary, remembered = world.session(is_primary=True), world.session()
    older, newer = world.session(), world.session()
    world.ask(newer)
    world.ask(older)
    world.session()
    owner = signed("owner")
    visit(owner, remembered)
    visit(owner, primary)
    assert opened(owner, world, **seen(world)) == str(newer.pk)
    assert opened(owner, world) == str(newer.pk)


@pytest.mark.scenario("J1", "R41")
def test_an_agent_that_nobody_offers_counts_only_with_a_detached_question(
    world: World, signed: Signed, offered: None
) -> None:
    here, gone = world.session(), world.session(agent="gone")
    world.ask(here)
    world.ask(gone)
    owner = signed("owner")
    assert opened(owner, world, **seen(world)) == str(here.pk)
    world.ask(gone, agent_disconnected=True)
    assert opened(owner, world, **seen(world)) == str(gone.pk)


@pytest.mark.scenario("J2")
@pytest.mark.parametrize("change", [{"revision": "99"}, {"action": ""}, {"action": "permission"}, {"revision": "x"}])
def test_a_summary_that_changed_meanwhile_opens_the_task_without_a_choice(
    world: World, signed: Signed, offered: None, change: dict[str, str]
) -> None:
    world.ask(world.session())
    assert opened(signed("owner"), world, **{**seen(world), **change}) is None


@pytest.mark.scenario("J2")
def test_a_question_that_was_answered_meanwhile_opens_the_task_without_a_choice(
    world: World, signed: Signed, offered: None
) -> None:
    session = world.session()
    world.ask(session)
    before = seen(world)
    world.turn(session)
    assert opened(signed("owner"), world, **before) is None


@pytest.mark.scenario("J3")
def test_without_an_owner_nothing_is_guessed(world: World, signed: Signed) -> None:
    world.session(is_primary=True)
    world.ask(world.session(agent="offered by nobody"))
    assert opened(signed("owner"), world, **seen(world)) is None


@pytest.mark.scenario("J4")
def test_a_vanished_task_is_not_found(world: World, signed: Signed) -> None:
    path = f"/tasks/{world.task.pk}/open"
    world.task.delete()
    answer = signed("owner").get(path, headers={"Accept": "application/json"})
    assert answer.status_code == 404


@pytest.mark.scenario("J8")
def test_a_clean_task_follows_the_remembered_then_the_primary_session(world: World, signed: Signed) -> None:
    primary, other = world.session(is_primary=True), world.session()
    owner = signed("owner")
    assert opened(owner, world, **seen(world)) == str(primary.pk)
    visit(owner, other)
    assert opened(owner, world, **seen(world)) == str(other.pk)
    assert f'data-session-page="{other.pk}"' in owner.get(f"/tasks/{world.task.pk}").content.decode()
    other.delete()
    assert opened(owner, world, **seen(world)) == str(primary.pk)


@pytest.mark.scenario("J8", "R43")
def test_what_is_remembered_widens_nothing(world: World, signed: Signed) -> None:
    """The remembered session comes from the browser: one of another task is ignored."""
    primary = world.session(is_primary=True)
    foreign = world.session(task=world.new_task("Another"))
    owner = signed("owner")
    owner.cookies[f"session_{world.task.pk.hex}"] = str(foreign.pk)
    assert opened(owner, world, **seen(world)) == str(primary.pk)


def test_an_ended_session_never_owns_a_question(world: World, signed: Signed, offered: None) -> None:
    session = world.session()
    world.ask(session)
    before = seen(world)
    Session.objects.filter(pk=session.pk).update(state=SessionState.COMPLETED)
    assert opened(signed("owner"), world, **before) is None


def test_a_script_gets_the_address_as_json(world: World, signed: Signed) -> None:
    session = world.session(is_primary=True)
    answer = signed("owner").get(f"/tasks/{world.task.pk}/open", headers={"Accept": "application/json"})
    assert answer.json() == {"url": f"/tasks/{world.task.pk}?session={session.pk}"}
    assert "no-store" in answer.headers["Cache-Control"]
