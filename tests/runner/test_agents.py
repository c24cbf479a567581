"""Agents of all kinds on a real runner: failing ones, what they inherit, tokens, permissions, results already taken."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from tests.runner.doubles import ROOT, FakeServer, runner
from turns.runner.transcript import is_ask

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("prompt", "error"),
    [
        ("crash", "the agent ended with exit code 3: out of memory"),
        ("refuse", "the agent refused to run the prompt: Authentication required"),
    ],
)
async def test_a_failing_agent_ends_its_prompt_only(tmp_path: Path, prompt: str, error: str) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        await server.dispatch(prompt, agent="scripted")
        await server.expect("failed", error=error, fatal=False)
        await server.dispatch("session", agent="scripted")
        await server.expect("ready")


async def test_a_command_that_does_not_start_or_speak_acp_fails_its_prompt(tmp_path: Path) -> None:
    agents = {"missing": ["/nonexistent/agent"], "false": ["false"], "cat": ["sh", "-c", "echo hello >&2; exit 4"]}
    async with FakeServer().open() as server, runner(server, tmp_path, agents=agents) as _:
        await server.expect("hello")
        for name, part in {"missing": "cannot be run", "false": "exit code 1", "cat": "exit code 4: hello"}.items():
            await server.dispatch("x", agent=name)
            assert part in (await server.expect("failed"))["error"]


@pytest.mark.parametrize(
    ("calls", "received"),
    [
        ("completed", True),
        ("failed", False),
        ("pending", False),
        ("completed failed", False),
        ("failed completed", True),
        ("completed pending", False),
        ("", False),
    ],
)
@pytest.mark.scenario("R24")
async def test_a_replacing_dispatch_is_refused_when_the_result_was_taken(
    tmp_path: Path, calls: str, received: bool
) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        old = await server.dispatch(f"asks {calls}", agent="scripted")
        await server.message("asked")
        replaces = {"execution_id": old["execution_id"], "prompt_generation": old["prompt_generation"]}
        new = await server.dispatch("session", agent="scripted", replaces=replaces)
        if received:
            await server.expect("rejected", dispatch_id=new["dispatch_id"], code="already_received")
        else:
            await server.expect("accepted", dispatch_id=new["dispatch_id"])
            await server.expect("ready")


@pytest.mark.parametrize(
    ("call", "ask"),
    [
        ({"title": "ask_user_question_kandev"}, True),
        ({"title": "mcp__kandev__ask_user_question_kandev"}, True),
        (
            {"title": "Asking", "field_meta": {"claudeCode": {"toolName": "mcp__kandev__ask_user_question_kandev"}}},
            True,
        ),
        (
            {"title": "Tool", "raw_input": {"server": "kandev", "tool": "ask_user_question_kandev", "arguments": {}}},
            True,
        ),
        ({"title": "Write", "raw_input": {"text": "call ask_user_question_kandev"}}, False),
        ({"title": "list_tasks_kandev"}, False),
    ],
)
def test_question_calls_are_known_by_the_names_that_agents_give_them(call: dict[str, Any], ask: bool) -> None:
    assert is_ask(schema.ToolCallStart(session_update="tool_call", tool_call_id="c1", **call)) is ask


@pytest.mark.scenario("R26")
async def test_a_new_token_opens_a_new_session_in_an_agent_that_cannot_load(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        mcp = {"url": "http://127.0.0.1:9/mcp", "token": "kdv_ses_same"}
        said = []
        overs: list[dict[str, Any]] = [{"mcp": mcp}, {"mcp": mcp}, {}]
        for over in overs:
            await server.dispatch("session", agent="scripted", **over)
            said.append((await server.message("pid"))["content"].split())
            await server.expect("ready")
        assert [words[:2] for words in said] == [
            ["scripted-1", "McpServerStdio"],
            ["scripted-1", "McpServerStdio"],
            ["scripted-2", "McpServerStdio"],
        ]
        assert len({words[-1] for words in said}) == 1, "one process, kept warm"


async def test_what_is_too_long_for_one_frame_is_cut(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        await server.dispatch("long", agent="scripted")
        await server.expect("ready")
        frames = [frame for frame in server.frames if frame["type"] == "frame"]
        assert "".join(frame["content"] for frame in frames if frame["kind"] == "message") == "x" * 40_000
        assert max(len(json.dumps(frame)) for frame in frames) < 100_000
        [tool] = [frame["data"] for frame in frames if frame["kind"] == "tool"]
        assert tool["raw_input"] == {"path": "a"}
        assert "left out" in tool["raw_output"]


async def test_agents_do_not_inherit_the_runner_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANDEV_RUNNER_TOKEN", "kdv_run_secret")
    monkeypatch.setenv("SECRET_KEY", "secret")
    monkeypatch.setenv("EDITOR", "ed")
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        await server.dispatch("environment", agent="scripted")
        seen = json.loads((await server.message("names"))["content"])
        assert "EDITOR" in seen["names"]
        assert not {"KANDEV_RUNNER_TOKEN", "SECRET_KEY"} & set(seen["names"])
        assert "kdv_" not in " ".join(seen["argv"])


@pytest.mark.parametrize(
    ("policy", "kinds", "picked"),
    [
        ("allow", "reject_once allow_always allow_once", {"outcome": "selected", "optionId": "o-allow_once"}),
        ("allow", "reject_once allow_always", {"outcome": "selected", "optionId": "o-allow_always"}),
        ("deny", "allow_once reject_always reject_once", {"outcome": "selected", "optionId": "o-reject_once"}),
        ("deny", "allow_once", {"outcome": "cancelled"}),
        ("allow", "reject_once", {"outcome": "cancelled"}),
    ],
)
async def test_permissions_are_answered_by_policy(
    tmp_path: Path, policy: str, kinds: str, picked: dict[str, str]
) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, policy) as _:
        await server.expect("hello")
        await server.dispatch(f"permission {kinds}", agent="scripted")
        assert json.loads((await server.message("outcome"))["content"]) == picked


def test_the_runner_imports_neither_django_nor_the_server() -> None:
    program = "import sys, turns.runner.cli; print([name for name in sys.modules if name.startswith('django')])"
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
