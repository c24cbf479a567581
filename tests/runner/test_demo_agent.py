"""The real demo agent on the real runner, with an MCP endpoint that the test answers, over HTTP and by the bridge."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.runner.doubles import FakeMcp, FakeServer, ids, runner
from turns.runner.frames import Frame

pytestmark = pytest.mark.once
ANSWERS = {"answers": {"database": {"selected_option": "SQLite", "answered": True}}, "rejected": False}


@pytest.fixture(autouse=True)
def demo_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KANDEV_DEMO_LOG", str(tmp_path / "demo.log"))
    monkeypatch.setenv("KANDEV_DEMO_DELAY_S", "0")
    return tmp_path / "demo.log"


@pytest.fixture(params=["http", "bridge"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "bridge":
        monkeypatch.setenv("KANDEV_DEMO_STDIO", "1")
    return str(request.param)


def received(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


async def dispatch(server: FakeServer, mcp: FakeMcp, prompt: str, **over: Any) -> Frame:
    frame = server.dispatch_frame(prompt, **over)
    frame["mcp"]["url"] = mcp.url
    await server.again(frame)
    await server.expect("accepted", dispatch_id=frame["dispatch_id"])
    return frame


@pytest.mark.scenario("R26")
async def test_two_bundles_are_asked_and_their_answers_arrive(tmp_path: Path, transport: str, demo_log: Path) -> None:
    async with FakeServer().open() as server, FakeMcp().open() as mcp, runner(server, tmp_path) as _:
        await server.expect("hello")
        sent = await dispatch(server, mcp, "Plan a release")
        first = await mcp.next()
        assert [question["id"] for question in first.arguments["questions"]] == ["database", "checks"]
        assert set(mcp.tokens) == {f"Bearer {sent['mcp']['token']}"}
        first.answer(ANSWERS)
        await server.message("I received: ")
        second = await mcp.next()
        assert [question["id"] for question in second.arguments["questions"]] == ["when"]
        second.answer({"answers": {}, "rejected": True})
        assert ids(await server.expect("ready", stop_reason="end_turn")) == ids(sent)
        assert [(line["how"], line["answers"]["rejected"]) for line in received(demo_log)] == [
            ("live", False),
            ("live", True),
        ]
        tools = [frame["data"] for frame in server.frames if frame.get("kind") == "tool"]
        assert [tool["status"] for tool in tools] == ["in_progress", "completed"] * 2
        assert tools[0]["raw_input"]["questions"] == first.arguments["questions"]
        assert tools[1]["raw_output"] == ANSWERS


async def test_the_waiting_agent_asks_for_progress_and_takes_it(tmp_path: Path, transport: str) -> None:
    async with FakeServer().open() as server, FakeMcp().open() as mcp, runner(server, tmp_path) as _:
        await server.expect("hello")
        await dispatch(server, mcp, "ask once")
        call = await mcp.next()
        assert call.ctx.meta is not None
        assert "progress_token" in call.ctx.meta
        await call.ctx.session.report_progress(1, None, "waiting")
        call.answer(ANSWERS)
        await server.expect("ready")


async def test_a_wait_that_ends_without_an_answer_ends_the_turn(tmp_path: Path, transport: str, demo_log: Path) -> None:
    async with FakeServer().open() as server, FakeMcp().open() as mcp, runner(server, tmp_path) as _:
        await server.expect("hello")
        await dispatch(server, mcp, "Plan a release")
        (await mcp.next()).fail("The wait timed out; nothing was chosen.")
        await server.message("The wait timed out; nothing was chosen.")
        await server.expect("ready", stop_reason="end_turn")
        assert received(demo_log) == []
        assert [frame["data"]["status"] for frame in server.frames if frame.get("kind") == "tool"][-1] == "failed"


async def test_a_cancel_reaches_the_waiting_call(tmp_path: Path, transport: str, demo_log: Path) -> None:
    async with FakeServer().open() as server, FakeMcp().open() as mcp, runner(server, tmp_path) as _:
        await server.expect("hello")
        sent = await dispatch(server, mcp, "ask once")
        call = await mcp.next()
        await server.send("cancel", **ids(sent), reason="pause")
        assert ids(await server.expect("cancelled")) == ids(sent)
        async with asyncio.timeout(10):
            await call.cancelled.wait()
        assert received(demo_log) == []


async def test_an_endpoint_that_is_gone_is_reported(tmp_path: Path, transport: str) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        await server.dispatch("ask once")
        await server.message("No answer came in this turn")
        await server.expect("ready", stop_reason="end_turn")


@pytest.mark.scenario("R26")
async def test_each_dispatch_brings_its_own_token_to_the_warm_agent(tmp_path: Path, transport: str) -> None:
    async with FakeServer().open() as server, FakeMcp().open() as mcp, runner(server, tmp_path) as _:
        await server.expect("hello")
        for _ in range(2):
            mcp.tokens.clear()
            sent = await dispatch(server, mcp, "ask once")
            (await mcp.next()).answer(ANSWERS)
            await server.expect("ready")
            assert set(mcp.tokens) == {f"Bearer {sent['mcp']['token']}"}


async def test_the_agents_own_session_is_loaded_again_after_a_restart(tmp_path: Path) -> None:
    remembered: list[str | None] = []
    async with FakeServer().open() as server:
        for _ in range(2):
            async with runner(server, tmp_path) as journal:
                await server.expect("hello")
                await server.dispatch("just echo")
                await server.expect("ready", where=lambda frame: frame["prompt_generation"] == len(remembered) + 1)
                remembered.append(journal.agent_session("s1", "demo"))
    assert remembered[0] is not None
    assert remembered[0] == remembered[1]


async def test_an_answer_that_comes_as_a_prompt_is_reported(tmp_path: Path, demo_log: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        await server.dispatch("Which database should the new service use? The person chose: SQLite")
        await server.message("I received it as a new prompt")
        await server.expect("ready")
        [line] = received(demo_log)
        assert line["how"] == "prompt"
        assert "SQLite" in line["text"]


async def test_the_turn_can_be_kept_open_after_the_answer(tmp_path: Path) -> None:
    async with FakeServer().open() as server, FakeMcp().open() as mcp, runner(server, tmp_path) as _:
        await server.expect("hello")
        sent = await dispatch(server, mcp, "ask then wait")
        (await mcp.next()).answer(ANSWERS)
        await server.message("until it is cancelled")
        await server.send("cancel", **ids(sent), reason="test")
        await server.expect("cancelled")


@pytest.mark.scenario("R24")
async def test_a_prompt_that_took_its_answer_is_not_replaced(tmp_path: Path) -> None:
    async with FakeServer().open() as server, FakeMcp().open() as mcp, runner(server, tmp_path) as _:
        await server.expect("hello")
        sent = await dispatch(server, mcp, "ask then wait")
        (await mcp.next()).answer(ANSWERS)
        await server.message("until it is cancelled")
        replaces = {"execution_id": sent["execution_id"], "prompt_generation": sent["prompt_generation"]}
        await server.dispatch("the answer again", replaces=replaces)
        await server.expect("rejected", code="already_received")


@pytest.mark.parametrize(("policy", "picked"), [("allow", "yes"), ("deny", "no")])
async def test_permission_is_asked_of_the_runner(tmp_path: Path, policy: str, picked: str) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, policy) as _:
        await server.expect("hello")
        await server.dispatch("ask permission")
        await server.message(f"Permission: {picked}.")
