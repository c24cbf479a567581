"""Access that is lost while a socket is open (the stated bound is five seconds; a round comes every two)."""

import datetime as dt
import itertools
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as SignIn
from django.utils import timezone

from tasks import access, envelopes, hints, hub, reach, socketwatch, tokens
from tasks.errors import NotFound
from tasks.hub import Key, Notification
from tasks.models import Membership, Task, Token, Workspace
from tasks.principals import Principal
from tasks.threads import in_thread
from tests.realtime.conftest import Connect, World, make_session, make_task, sign_in

BOUND_S = 5.0

pytestmark = pytest.mark.scenario("H6")


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socketwatch, "EVERY_S", 0.05)


def told(world: World) -> Notification:
    return Notification(envelopes.notification("news", {}), world.task.pk, world.workspace.pk)


async def test_a_lost_membership_ends_the_subscription(world: World, connect: Connect) -> None:
    left, stays = await connect("viewer"), await connect("owner")
    await left.follow(world.task)
    await left.ask("subscribe", workspace_id=str(world.workspace.pk))
    await stays.follow(world.task)
    await in_thread(Membership.objects.all().delete)
    ends = [await left.hear(BOUND_S), await left.hear(BOUND_S)]
    assert {end["action"] for end in ends} == {"unsubscribed"}
    lost = [{"task_id": str(world.task.pk)}, {"workspace_id": str(world.workspace.pk)}]
    assert sorted((end["payload"] for end in ends), key=str) == lost
    hub.deliver([told(world)])
    assert await left.heard_nothing()
    assert (await stays.hear())["action"] == "news"
    assert (await left.ask("ping"))["type"] == "response"


@pytest.mark.usefixtures("often")
async def test_a_task_that_is_gone_or_moved_away_ends_the_subscription(world: World, connect: Connect) -> None:
    socket = await connect("viewer")
    await socket.follow(world.task)
    await socket.follow(world.other)
    await in_thread(Task.objects.filter(pk=world.other.pk).delete)
    await in_thread(Task.objects.filter(pk=world.task.pk).update, workspace=None)
    ends = [await socket.hear(BOUND_S), await socket.hear(BOUND_S)]
    assert {end["payload"]["task_id"] for end in ends} == {str(world.task.pk), str(world.other.pk)}


def revoke(world: World) -> None:
    tokens.revoke(world.token["viewer"])


def expire(world: World) -> None:
    Token.objects.filter(user=world.viewer).update(expires_at=timezone.now() - dt.timedelta(seconds=1))


def deactivate(world: World) -> None:
    User.objects.filter(pk=world.viewer.pk).update(is_active=False)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("end", [revoke, expire, deactivate])
async def test_a_dead_token_closes_the_socket(world: World, connect: Connect, end: Callable[[World], None]) -> None:
    dies, stays = await connect("viewer"), await connect("owner")
    await dies.follow(world.task)
    await in_thread(end, world)
    assert await dies.close_code(BOUND_S) == socketwatch.DEAD_CREDENTIAL
    assert (await stays.ask("ping"))["type"] == "response"


def sign_out(world: World) -> None:
    SignIn.objects.all().delete()


def change_password(world: World) -> None:
    world.viewer.set_password("second")
    User.objects.filter(pk=world.viewer.pk).update(password=world.viewer.password)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("end", [sign_out, change_password, deactivate])
async def test_a_dead_sign_in_closes_the_socket(world: World, connect: Connect, end: Callable[[World], None]) -> None:
    socket = await connect(cookie=await in_thread(sign_in, world.viewer))
    await socket.follow(world.task)
    await in_thread(end, world)
    assert await socket.close_code(BOUND_S) == socketwatch.DEAD_CREDENTIAL


@pytest.mark.usefixtures("often")
async def test_somebody_who_is_no_superuser_any_more_loses_what_only_that_showed(
    world: World, connect: Connect
) -> None:
    await in_thread(User.objects.filter(pk=world.stranger.pk).update, is_superuser=True)
    socket = await connect("stranger")
    await socket.follow(world.task)
    await in_thread(User.objects.filter(pk=world.stranger.pk).update, is_superuser=False)
    assert (await socket.hear(BOUND_S))["action"] == "unsubscribed"


async def test_the_hint_starts_a_round_at_once(world: World, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socketwatch, "EVERY_S", 3600)
    socket = await connect("viewer")
    await socket.follow(world.task)
    await in_thread(tokens.revoke, world.token["viewer"])
    hints.wake(socketwatch.ACCESS)
    assert await socket.close_code() == socketwatch.DEAD_CREDENTIAL


def test_one_round_costs_the_same_for_many_sockets(world: World, django_assert_num_queries: object) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from tasks import socketauth

    callers = [
        socketauth.identify({"authorization": f"Bearer {world.token[name]}", "host": "x"}, "")
        for name in ("owner", "viewer", "agent")
    ]
    callers.append(socketauth.identify({"cookie": sign_in(world.stranger), "host": "x"}, ""))
    keys = frozenset({Key("task", world.task.pk), Key("workspace", world.workspace.pk)})
    spent = []
    for times in (1, 50):
        with CaptureQueriesContext(connection) as queries:
            socketwatch.judge([(caller, keys) for caller in callers] * times)
        spent.append(len(queries))
    assert spent[0] == spent[1] <= 8


def test_the_rule_for_many_is_the_rule_for_one(world: World) -> None:
    """The negative control is in the data: some may see and some may not, of each kind."""
    dangling = make_task(None, "no workspace")
    lost = make_task(None, "a workspace that is gone")
    Task.objects.filter(pk=lost.pk).update(workspace_id=lost.pk)
    agent = Token.objects.get(session=world.session)
    elsewhere = make_session(world.other)
    principals = [
        *(Principal(user=user) for user in (world.owner, world.viewer, world.stranger)),
        *(Principal(user=user, unscoped=True) for user in (world.stranger, None)),
        Principal(token=agent),
        Principal(token=Token(kind="session", session=elsewhere)),
        Principal(token=Token(kind="runner")),
    ]
    keys = [Key("task", pk) for pk in (world.task.pk, world.other.pk, dangling.pk, lost.pk, world.workspace.pk)]
    keys += [Key("workspace", pk) for pk in (world.workspace.pk, lost.pk, world.task.pk)]
    found = reach.read(principals, keys)
    verdicts = set()
    for principal, key in itertools.product(principals, keys):
        verdicts.add(found.sees(principal, key))
        assert found.sees(principal, key) == _may(principal, key), (principal, key)
    assert verdicts == {True, False}
    assert Workspace.objects.count() == 1


def _may(principal: Principal, key: Key) -> bool:
    try:
        (access.task if key.kind == "task" else access.workspace)(principal, key.pk)
    except NotFound:
        return False
    return True
