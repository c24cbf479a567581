"""Who gets in: credentials, and for browsers the page that opens the socket."""

import logging

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from tasks import tokens
from tasks.threads import in_thread
from tests.realtime.conftest import Connect, Socket, World, sign_in

HOST = "127.0.0.1:8000"


async def refused(**headers: str) -> bool:
    """Refused before it was accepted: nothing was sent but the refusal."""
    return not await Socket(headers).open()


@pytest.mark.scenario("H6")
@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:8001", "null", "file://", "http://[", ""])
async def test_a_page_of_another_origin_cannot_use_a_cookie_and_the_refusal_is_logged(
    world: World, caplog: pytest.LogCaptureFixture, origin: str
) -> None:
    cookie = await in_thread(sign_in, world.owner)
    with caplog.at_level(logging.WARNING, "tasks.sockets"):
        assert await refused(cookie=cookie, origin=origin)
    assert "another origin" in caplog.text
    assert cookie.partition("=")[2] not in caplog.text


@pytest.mark.parametrize(
    "origin", [f"http://{HOST}", f"https://{HOST}", "https://a.example", "https://x.b.example:444"]
)
async def test_our_own_page_and_trusted_ones_get_in_with_a_cookie(
    world: World, connect: Connect, settings: Settings, origin: str
) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://a.example", "https://*.b.example:444"]
    socket = await connect(cookie=await in_thread(sign_in, world.owner), origin=origin)
    await socket.follow(world.task)


async def test_a_host_that_is_not_ours_makes_no_origin_ours(world: World) -> None:
    cookie = await in_thread(sign_in, world.owner)
    assert await refused(cookie=cookie, host="evil.example", origin="http://evil.example")


async def test_a_client_with_a_token_needs_no_origin(world: World, connect: Connect) -> None:
    await (await connect("owner")).follow(world.task)
    bearer = f"Bearer {world.token['owner']}"
    assert await refused(authorization=bearer, origin="http://elsewhere.example")


async def test_nobody_gets_in_without_a_live_credential(world: World) -> None:
    assert await refused()
    assert await refused(cookie="sessionid=made-up")
    assert await refused(cookie="sessionid=\x01;;=")
    assert await refused(authorization="Bearer kdv_pat_made-up")
    await in_thread(tokens.revoke, world.token["owner"])
    assert await refused(authorization=f"Bearer {world.token['owner']}")
    assert await refused(cookie=await in_thread(sign_in, world.owner), authorization="Bearer kdv_pat_made-up")


@pytest.mark.scenario("H4")
async def test_with_authentication_off_a_dead_token_is_no_hindrance(
    world: World, connect: Connect, settings: Settings
) -> None:
    """As over REST: who is served without any credential is not refused for a bad one."""
    settings.KANDEV_AUTH = "off"
    socket = await connect(authorization="Bearer kdv_pat_made-up")
    await socket.follow(world.task)


async def test_a_changed_password_ends_a_cookie(world: World) -> None:
    cookie = await in_thread(sign_in, world.owner)

    def change() -> None:
        user = User.objects.get(pk=world.owner.pk)
        user.set_password("second")
        User.objects.filter(pk=user.pk).update(password=user.password)

    await in_thread(change)
    assert await refused(cookie=cookie)


async def test_single_user_mode_lets_no_foreign_page_in(world: World, settings: Settings) -> None:
    settings.KANDEV_AUTH = "off"
    assert await refused(origin="http://evil.example")


@pytest.mark.parametrize(("peer", "gets_in"), [("127.0.0.1", True), ("::1", True), ("10.0.0.5", False)])
async def test_single_user_mode_serves_this_machine_only(
    world: World, settings: Settings, peer: str, gets_in: bool
) -> None:
    settings.KANDEV_AUTH = "off"
    socket = Socket({})
    socket.wire.scope["client"] = [peer, 5]
    assert await socket.open() is gets_in
    await socket.wire.disconnect()
