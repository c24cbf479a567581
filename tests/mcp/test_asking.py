"""The agent's surface with the SDK's own client: the question is asked, waited for and answered in one call."""

import asyncio
import json
from typing import Any

import pytest

from tests.mcp.scenes import ASK, Scene, Stream, call, client, questions, text_of, tool_call
from tests.support.waiting import auntil

MODES = ("auto", "legacy")


@pytest.mark.parametrize("mode", MODES)
async def test_the_agent_sees_one_tool(scene: Scene, mode: str) -> None:
    async with client(scene.url(), scene.token, mode) as one:
        tools = (await one.list_tools()).tools
    assert [tool.name for tool in tools] == [ASK]
    assert set(tools[0].input_schema["properties"]) == {"questions", "context", "context_paragraphs"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.scenario("B1", "C1")
async def test_an_answer_reaches_the_call_in_the_words_of_the_question(scene: Scene, mode: str) -> None:
    asked = questions(2)
    running = asyncio.create_task(
        call(
            scene.url(), scene.token, ASK, mode, questions=asked, context="not this", context_paragraphs=["why", "how"]
        )
    )
    pending_id = await asyncio.to_thread(scene.one_pending)
    assert scene.bundle(pending_id)["context"] == "why\n\nhow"
    got = await asyncio.to_thread(scene.respond, pending_id, scene.answer(pending_id, "my own words", pick=1))
    assert got.status_code == 200, got.text
    result = await running
    assert not result.is_error, text_of(result)
    label = asked[0]["options"][1]["label"]
    choice = {"selected_option": label, "selected_options": [{"option_id": "q1_opt2", "label": label}]}
    expected: dict[str, Any] = {"answers": {"q1": {**choice, "custom_text": "", "answered": True}}, "rejected": False}
    assert result.structured_content["answers"]["q1"] == expected["answers"]["q1"]
    assert result.structured_content["answers"]["q2"]["custom_text"] == "my own words"
    assert result.structured_content["reject_reason"] == ""
    assert json.loads(text_of(result)) == result.structured_content


@pytest.mark.scenario("C2")
async def test_a_skip_is_an_explicit_refusal_with_its_reason(scene: Scene) -> None:
    running = asyncio.create_task(call(scene.url(), scene.token, ASK, questions=questions()))
    pending_id = await asyncio.to_thread(scene.one_pending)
    await asyncio.to_thread(scene.respond, pending_id, {"rejected": True, "reject_reason": "not now"})
    result = await running
    assert not result.is_error
    assert result.structured_content == {"answers": {}, "rejected": True, "reject_reason": "not now"}


async def test_an_entry_without_choice_or_text_is_not_answered(scene: Scene) -> None:
    running = asyncio.create_task(call(scene.url(), scene.token, ASK, questions=questions()))
    pending_id = await asyncio.to_thread(scene.one_pending)
    await asyncio.to_thread(scene.respond, pending_id, {"answers": [{"question_id": "q1"}]})
    entry = (await running).structured_content["answers"]["q1"]
    assert entry == {"selected_option": "", "selected_options": [], "custom_text": "", "answered": False}


@pytest.mark.scenario("B4")
@pytest.mark.parametrize("token", [0, "", "text"], ids=["zero", "empty", "text"])
async def test_progress_rises_for_the_token_that_the_client_gave(scene: Scene, token: str | int) -> None:
    body = tool_call(ASK, {"questions": questions()}, progressToken=token)
    async with Stream(scene.url(), scene.token, body) as stream:
        await stream.until(b'"progress":3')
        told = [one["params"] for one in stream.messages() if one["method"] == "notifications/progress"]
    assert [one["progressToken"] for one in told] == [token] * len(told)
    rising = [one["progress"] for one in told]
    assert rising == sorted(set(rising))


async def test_without_a_token_bytes_come_and_no_progress(scene: Scene) -> None:
    async with Stream(scene.url(), scene.token, tool_call(ASK, {"questions": questions()})) as stream:
        await auntil(lambda: _comments(stream, 3))
        assert stream.messages() == []


async def _comments(stream: Stream, count: int) -> bool:
    stream.received += await stream.reader.read(4096)
    return stream.received.count(b": waiting") >= count


async def test_the_stream_begins_at_once_also_for_a_client_that_takes_gzip(scene: Scene) -> None:
    body = tool_call(ASK, {"questions": questions()}, progressToken="t")
    async with Stream(scene.url(), scene.token, body, Accept_Encoding="gzip") as stream:
        head = await stream.until(b": waiting", within=2)
        assert b"text/event-stream" in head
        assert b"content-encoding" not in head.lower()
        await stream.until(b'"progress":1', within=3)
        assert b'"progress":2' not in stream.received


@pytest.mark.scenario("B4")
async def test_the_sdk_client_sees_progress(scene: Scene) -> None:
    seen: list[float] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with client(scene.url(), scene.token) as one:
        running = asyncio.create_task(one.call_tool(ASK, {"questions": questions()}, progress_callback=told))
        await auntil(lambda: asyncio.sleep(0, len(seen) >= 2))
        pending_id = await asyncio.to_thread(scene.one_pending)
        await asyncio.to_thread(scene.respond, pending_id, {"rejected": True})
        await running
    assert seen == sorted(set(seen))


@pytest.mark.scenario("B3", "B5")
async def test_the_same_ask_joins_and_both_calls_get_the_answer(scene: Scene) -> None:
    asked = questions()
    running = [asyncio.create_task(call(scene.url(), scene.token, ASK, questions=asked)) for _ in range(2)]
    pending_id = await asyncio.to_thread(scene.one_pending)
    await auntil(lambda: asyncio.sleep(0.3, len(scene.pending()) == 1))
    await asyncio.to_thread(scene.respond, pending_id, scene.answer(pending_id, "for both"))
    first, second = await asyncio.gather(*running)
    assert first.structured_content == second.structured_content
    assert first.structured_content["answers"]["q1"]["custom_text"] == "for both"
