"""Permission requests with `--permissions ask`: passed on, answered by the server, cancelled with their prompt."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.runner.doubles import FakeServer, ids, runner
from turns.runner.frames import Frame

pytestmark = pytest.mark.once


async def asked(server: FakeServer) -> Frame:
    await server.expect("hello")
    await server.dispatch("ask permission")
    return await server.expect("permission")


async def answer(server: FakeServer, request: Frame, option_id: Any) -> None:
    named = {**ids(request), "request_id": request["request_id"]}
    await server.send("permission_answer", **named, option_id=option_id)


async def test_a_request_is_passed_on_and_the_agent_gets_the_picked_option(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, "ask") as _:
        request = await asked(server)
        assert request["title"] == "Delete the old backups"
        assert request["tool"]["kind"] == "delete"
        assert request["options"] == [
            {"option_id": "yes", "name": "Yes", "kind": "allow_once"},
            {"option_id": "no", "name": "No", "kind": "reject_once"},
        ]
        assert server.frames[-1]["content"].startswith("You asked: ")  # what was said before stands before
        await answer(server, request, "no")
        await server.message("Permission: no.")
        assert ids(await server.expect("ready")) == ids(request)


@pytest.mark.parametrize("option_id", [None, "something else"])
async def test_null_and_an_option_that_was_not_offered_are_cancelled(tmp_path: Path, option_id: str | None) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, "ask") as _:
        await answer(server, await asked(server), option_id)
        await server.message("Permission: nothing.")


async def test_malformed_foreign_and_second_answers_change_nothing(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, "ask") as _:
        request = await asked(server)
        await answer(server, request, 7)
        await answer(server, {**request, "request_id": "another"}, "no")
        await answer(server, {**request, "request_id": None}, "no")
        await answer(server, request, "yes")
        await answer(server, request, "no")
        await server.message("Permission: yes.")
        await server.expect("ready")


async def test_an_open_request_is_sent_again_on_each_new_connection_until_it_is_answered(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, "ask") as _:
        request = await asked(server)
        for _ in range(2):
            await server.drop()
            await server.expect("hello")
            assert await server.expect("permission") == request
        await answer(server, request, "yes")
        await server.message("Permission: yes.")
        await server.expect("ready")
        await server.drop()
        await server.expect("hello")
        await server.expect("ready")
        await server.ping()
        assert not [frame for frame in server.frames if frame["type"] == "permission"]


async def test_a_cancelled_prompt_cancels_its_request_at_the_agent(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, "ask") as _:
        await server.expect("hello")
        sent = await server.dispatch("permission_then_word", agent="scripted")
        request = await server.expect("permission")
        await server.send("cancel", **ids(sent), reason="test")
        await server.message("outcome: cancelled")
        assert ids(await server.expect("cancelled")) == ids(request)
        await answer(server, request, "yes")  # too late: nobody asks any more
        await server.ping()


async def test_requests_of_two_sessions_are_told_apart(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, "ask") as _:
        first = await asked(server)
        await server.dispatch("ask permission", session="s2")
        second = await server.expect("permission", session_id="s2")
        await answer(server, second, "no")
        await server.message("Permission: no.")
        await answer(server, first, "yes")
        await server.message("Permission: yes.")


async def test_a_request_of_a_prompt_that_ended_without_it_is_forgotten(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, "ask") as _:
        await server.expect("hello")
        await server.dispatch("permission_and_go", agent="scripted")
        await server.expect("permission")
        await server.expect("ready")
        await server.drop()
        await server.expect("hello")
        await server.expect("ready")
        await asyncio.sleep(0)
        await server.ping()
        assert not [frame for frame in server.frames if frame["type"] == "permission"]
