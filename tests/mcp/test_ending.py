"""How a call ends without an answer: what the agent is told, and that the question stands."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from tests.conftest import MakeProduct
from tests.mcp.conftest import MakeScene
from tests.mcp.scenes import ASK, Scene, Stream, call, client, message, post, questions, text_of, tool_call
from tests.support.processes import Product, Server

NOTHING = "Nothing was chosen"
PROMPT = "may come as a new prompt"


@asynccontextmanager
async def opened(scene: Scene, **headers: str) -> AsyncIterator[tuple[Stream, str]]:
    """A call that waits, and the id of its question."""
    async with Stream(scene.url(), scene.token, tool_call(ASK, {"questions": questions()}), **headers) as stream:
        await stream.until(b": waiting")
        pending_id = await asyncio.to_thread(scene.one_pending)
        await asyncio.to_thread(scene.until_state, pending_id, "active_live")
        yield stream, pending_id


def initialize(scene: Scene, token: str | None = None, **headers: str) -> httpx2.Response:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return post(scene.url(), token or scene.token, message("initialize", params), **headers)


@pytest.mark.scenario("F1", "R27")
async def test_a_reset_connection_ends_the_wait_and_the_question_stands(scene: Scene) -> None:
    async with opened(scene) as (stream, pending_id):
        stream.reset()
        await asyncio.to_thread(scene.until_state, pending_id, "active_detached", within=3)


@pytest.mark.scenario("R27")
async def test_a_client_that_asks_again_within_the_grace_joins_and_gets_the_answer(scene: Scene) -> None:
    asked = questions()
    async with Stream(scene.url(), scene.token, tool_call(ASK, {"questions": asked})) as stream:
        await stream.until(b": waiting")
        pending_id = await asyncio.to_thread(scene.one_pending)
        stream.reset()
    await asyncio.to_thread(scene.until_state, pending_id, "active_detached", within=3)
    again = asyncio.create_task(call(scene.url(), scene.token, ASK, questions=asked))
    await asyncio.to_thread(scene.until_state, pending_id, "active_live")
    got = await asyncio.to_thread(scene.respond, pending_id, scene.answer(pending_id, "still here"))
    assert got.json()["delivery"] == "delivered"
    assert (await again).structured_content["answers"]["q1"]["custom_text"] == "still here"


@pytest.mark.scenario("F1", "R27")
async def test_a_cancelled_call_of_the_sdk_client_detaches(scene: Scene) -> None:
    async with client(scene.url(), scene.token, "legacy") as one:
        running = asyncio.create_task(one.call_tool(ASK, {"questions": questions()}))
        pending_id = await asyncio.to_thread(scene.one_pending)
        await asyncio.to_thread(scene.until_state, pending_id, "active_live")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.to_thread(scene.until_state, pending_id, "active_detached", within=3)
        assert [tool.name for tool in (await one.list_tools()).tools] == [ASK]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same process", "other process"])
async def test_a_cancellation_reaches_its_call_in_whichever_process(scene: Scene, elsewhere: bool) -> None:
    session_id = initialize(scene).headers["mcp-session-id"]
    async with opened(scene, Mcp_Session_Id=session_id) as (stream, pending_id):
        other = scene.product.processes[1]
        assert isinstance(other, Server)
        url = scene.url(server=other if elsewhere else None)
        cancelled = message("notifications/cancelled", {"requestId": 1, "reason": "no longer"}, request_id=None)
        assert post(url, scene.token, cancelled, Mcp_Session_Id=session_id).status_code == 202
        await stream.until(b"Request cancelled", within=5)
        await asyncio.to_thread(scene.until_state, pending_id, "active_detached", within=3)


async def test_a_cancellation_meets_neither_another_call_nor_another_client(scene: Scene) -> None:
    mine, other = (initialize(scene).headers["mcp-session-id"] for _ in range(2))
    async with opened(scene, Mcp_Session_Id=mine) as (stream, pending_id):
        for request_id, client_id in ((2, mine), (1, other)):
            body = message("notifications/cancelled", {"requestId": request_id}, request_id=None)
            assert post(scene.url(), scene.token, body, Mcp_Session_Id=client_id).status_code == 202
        got = await asyncio.to_thread(scene.respond, pending_id, scene.answer(pending_id, "arrived"))
        assert got.json()["delivery"] == "delivered"
        await stream.until(b"arrived")


@pytest.mark.scenario("F5", "F7")
async def test_a_withdrawn_question_says_so(scene: Scene) -> None:
    running = asyncio.create_task(call(scene.url(), scene.token, ASK, questions=questions()))
    pending_id = await asyncio.to_thread(scene.one_pending)
    await asyncio.to_thread(scene.until_state, pending_id, "active_live")
    assert scene.rest().post(f"/clarification/{pending_id}/cancel").status_code == 200
    assert_nothing_chosen(await running, "cancelled")


@pytest.mark.scenario("F3")
async def test_an_ended_session_says_so(scene: Scene) -> None:
    running = asyncio.create_task(call(scene.url(), scene.token, ASK, questions=questions()))
    pending_id = await asyncio.to_thread(scene.one_pending)
    await asyncio.to_thread(scene.until_state, pending_id, "active_live")
    scene.rest().post(f"/task-sessions/{scene.session}/complete")
    assert_nothing_chosen(await running, "expired")


@pytest.fixture
def impatient(make_product: MakeProduct) -> Product:
    made = make_product(KANDEV_WAIT_TIMEOUT_S="1")
    made.start()
    return made


@pytest.mark.scenario("F1")
async def test_a_time_out_says_so_and_the_question_stands(impatient: Product, make_scene: MakeScene) -> None:
    scene = make_scene(impatient)
    assert_nothing_chosen(await call(scene.url(), scene.token, ASK, questions=questions()), "timeout")
    assert scene.bundle(scene.one_pending())["state"] == "active_detached"


def assert_nothing_chosen(result: Any, code: str) -> None:
    assert result.is_error
    assert text_of(result).startswith(code)
    assert NOTHING in text_of(result)
    assert PROMPT in text_of(result)
    assert result.structured_content is None


@pytest.mark.scenario("R27")
async def test_a_server_that_stops_asks_to_ask_again(make_product: MakeProduct, make_scene: MakeScene) -> None:
    product = make_product()
    product.start()
    scene = make_scene(product)
    async with opened(scene) as (stream, pending_id):
        stopping = asyncio.create_task(asyncio.to_thread(scene.server.term))
        await stream.until(b"Ask the same again")
        await stopping
        scene.server.restart()
        assert scene.bundle(pending_id)["state"] == "active_detached"


async def test_a_revoked_token_ends_its_calls(scene: Scene) -> None:
    async with opened(scene) as (stream, pending_id):
        scene.product.manage("token", "revoke", scene.token)
        await stream.until(b"unauthorized", within=5)
        await asyncio.to_thread(scene.until_state, pending_id, "active_detached", within=3)
        assert post(scene.url(), scene.token, message("tools/list")).status_code == 401


async def test_after_a_restart_the_old_session_id_works(make_product: MakeProduct, make_scene: MakeScene) -> None:
    product = make_product()
    product.start()
    scene = make_scene(product)
    session_id = initialize(scene).headers["mcp-session-id"]
    scene.server.restart()
    listed = post(scene.url(), scene.token, message("tools/list"), Mcp_Session_Id=session_id)
    assert [tool["name"] for tool in listed.json()["result"]["tools"]] == [ASK]
    fresh = initialize(scene, Mcp_Session_Id=session_id)
    assert fresh.status_code == 200
    assert fresh.headers["mcp-session-id"] != session_id


def test_a_session_id_is_good_for_its_own_credential(scene: Scene, make_scene: MakeScene) -> None:
    other = make_scene(scene.product)
    foreign = initialize(other).headers["mcp-session-id"]
    for session_id in (foreign, "made-up", foreign + "x"):
        got = post(scene.url(), scene.token, message("tools/list"), Mcp_Session_Id=session_id)
        assert got.status_code == 404, got.text
        assert "Session not found" in got.json()["error"]["message"]


def test_any_process_serves_any_call(scene: Scene) -> None:
    session_id = initialize(scene).headers["mcp-session-id"]
    other = scene.product.processes[1]
    assert isinstance(other, Server)
    got = post(scene.url(server=other), scene.token, message("tools/list"), Mcp_Session_Id=session_id)
    assert got.status_code == 200
