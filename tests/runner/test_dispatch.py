"""The runner against a scripted server, with real agent processes: taking, refusing, revoking, repeating, ending."""

import asyncio
from pathlib import Path

import pytest

from tests.runner.doubles import FakeServer, ids, runner
from tests.support.waiting import until
from turns.runner.frames import prompt_key
from turns.runner.journal import Journal

pytestmark = pytest.mark.once


async def test_hello_says_who_it_is_and_what_it_offers(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, max_sessions=3) as journal:
        hello = await server.expect("hello")
        assert hello["runner_id"] == journal.runner_id
        assert (hello["agents"], hello["max_sessions"], hello["journal"]) == (["demo", "scripted"], 3, [])
        assert hello["version"]
        assert server.tokens == ["Bearer kdv_run_test"]


async def test_a_prompt_is_accepted_streamed_and_ends_with_ready(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as journal:
        await server.expect("hello")
        sent = await server.dispatch("just echo this")
        await server.expect("accepted", dispatch_id=sent["dispatch_id"])
        frame = await server.message("You asked: just echo this")
        assert ids(frame) == ids(sent)
        ready = await server.expect("ready", stop_reason="end_turn")
        assert ids(ready) == ids(sent)
        assert server.frames == []
        assert journal.hello() == [{"dispatch_id": sent["dispatch_id"], "outcome": "completed"}]


async def test_chunks_of_a_message_become_one_frame_and_order_is_kept(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        await server.dispatch("chunks", agent="scripted")
        await server.expect("ready")
        frames = [(frame["kind"], frame["content"]) for frame in server.frames if frame["type"] == "frame"]
        tool = [("tool", "Read a file"), ("tool", "")]
        assert frames == [
            ("message", "one two three"),
            ("thinking", "hm"),
            *tool,
            ("message", "four"),
            ("message", "five"),
        ]
        started, ended = [frame["data"] for frame in server.frames if frame.get("kind") == "tool"]
        assert (started["tool_call_id"], started["kind"], started["raw_input"]) == ("c1", "read", {"path": "\ufffda"})
        assert (ended["status"], ended["raw_output"]) == ("completed", {"n": None})


async def test_a_message_goes_out_while_the_agent_works_on_in_silence(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        await server.dispatch("quiet", agent="scripted")
        await server.message("I think.")


@pytest.mark.scenario("R13")
async def test_a_dispatch_that_is_sent_again_hears_the_same_and_runs_once(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        sent = await server.dispatch("just echo")
        await server.again(sent)
        for _ in range(2):
            await server.expect("accepted", dispatch_id=sent["dispatch_id"])
        await server.expect("ready")
        await server.again(sent)
        await server.expect("accepted", dispatch_id=sent["dispatch_id"])
        await server.ping()
        echoes = [frame for frame in server.frames if "You asked" in frame.get("content", "")]
        assert len(echoes) == 1


@pytest.mark.scenario("R13")
async def test_a_revoked_dispatch_never_runs_also_when_it_arrives_late(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as journal:
        await server.expect("hello")
        late = server.dispatch_frame("just echo")
        await server.send("revoke", dispatch_id=late["dispatch_id"])
        await server.expect("revoked", dispatch_id=late["dispatch_id"])
        await server.again(late)
        await server.expect("revoked", dispatch_id=late["dispatch_id"])
        await server.ping()
        assert server.frames == []
        assert journal.hello() == [{"dispatch_id": late["dispatch_id"], "outcome": "revoked"}]


@pytest.mark.scenario("R13")
async def test_a_revoke_of_something_that_runs_or_ran_is_answered_with_accepted(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        sent = await server.dispatch("just echo")
        await server.send("revoke", dispatch_id=sent["dispatch_id"])
        for _ in range(2):
            await server.expect("accepted", dispatch_id=sent["dispatch_id"])
        await server.expect("ready")
        await server.send("revoke", dispatch_id=sent["dispatch_id"])
        await server.expect("accepted", dispatch_id=sent["dispatch_id"])


async def test_refusals_name_their_reason_and_stay(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, max_sessions=1) as journal:
        await server.expect("hello")
        stranger = await server.dispatch("just echo", agent="nobody")
        await server.expect("rejected", dispatch_id=stranger["dispatch_id"], code="unknown_agent")
        malformed = await server.dispatch("just echo", mcp=None)
        await server.expect("rejected", dispatch_id=malformed["dispatch_id"], code="malformed")
        running = await server.dispatch("quiet", agent="scripted")
        await server.expect("accepted", dispatch_id=running["dispatch_id"])
        second = await server.dispatch("just echo", session="s2")
        await server.expect("rejected", dispatch_id=second["dispatch_id"], code="busy")
        await server.send("cancel", **ids(running), reason="test")
        await server.expect("cancelled")
        await server.again(second)
        await server.expect("rejected", dispatch_id=second["dispatch_id"], code="busy")
        assert {entry["outcome"] for entry in journal.hello()} == {"rejected", "completed"}


async def test_an_idle_agent_gives_way_when_the_runner_is_full(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, max_sessions=1) as _:
        await server.expect("hello")
        for session in ("s1", "s2"):
            await server.dispatch("just echo", session=session)
            await server.expect("ready", session_id=session)


async def test_malformed_frames_change_nothing(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as journal:
        await server.expect("hello")
        assert server.connection is not None
        for text in (
            "{",
            "[]",
            "null",
            '{"type": "revoke"}',
            '{"type": "cancel", "session_id": 3}',
            '{"type": "what"}',
        ):
            await server.connection.send(text)
        await server.ping()
        assert server.frames == []
        assert journal.hello() == []


@pytest.mark.scenario("R13")
async def test_ready_waits_for_the_next_connection(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        sent = await server.dispatch("quiet", agent="scripted")
        await server.message("I think.")
        server.welcome = False
        await server.drop()
        await server.expect("hello", journal=[{"dispatch_id": sent["dispatch_id"], "outcome": "accepted"}])
        await server.send("cancel", **ids(sent), reason="test")
        server.welcome = True
        await server.drop()
        await server.expect("hello")
        assert ids(await server.expect("cancelled")) == ids(sent)


async def test_an_ending_is_said_again_on_a_new_connection(tmp_path: Path) -> None:
    """The server may have died with the first one unread."""
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        sent = await server.dispatch("just echo")
        ready = await server.expect("ready")
        await server.drop()
        await server.expect("hello", journal=[{"dispatch_id": sent["dispatch_id"], "outcome": "completed"}])
        assert await server.expect("ready") == ready


@pytest.mark.scenario("R13")
async def test_a_restarted_runner_ends_what_died_with_it(tmp_path: Path) -> None:
    async with FakeServer().open() as server:
        journal = Journal(tmp_path / "journal.sqlite3")
        sent = server.dispatch_frame("just echo")
        journal.accept(sent["dispatch_id"], prompt_key(sent))
        journal.close()
        async with runner(server, tmp_path):
            await server.expect("hello", journal=[{"dispatch_id": sent["dispatch_id"], "outcome": "completed"}])
            failed = await server.expect("failed", fatal=False)
            assert ids(failed) == ids(sent)
            assert "restarted" in failed["error"]
            await server.again(sent)
            await server.expect("accepted", dispatch_id=sent["dispatch_id"])
            await server.ping()
            assert server.frames == []


async def test_a_cancel_is_acknowledged_when_the_prompt_has_ended(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        sent = await server.dispatch("quiet", agent="scripted")
        await server.message("I think.")
        await server.send("cancel", **ids(sent), reason="pause")
        assert ids(await server.expect("cancelled")) == ids(sent)
        await server.send("cancel", **ids(sent), reason="again")
        await server.expect("cancelled")
        await server.ping()
        assert [frame["type"] for frame in server.frames] == ["accepted"]


async def test_a_cancel_while_the_agent_starts_ends_it(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        sent = await server.dispatch("quiet", agent="scripted")
        await server.send("cancel", **ids(sent), reason="pause")
        await server.expect("cancelled")
        await server.ping()
        assert [frame["type"] for frame in server.frames] == ["accepted"]


async def test_an_agent_that_ignores_a_cancel_is_killed_with_its_children(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, cancel_grace_s=0.1) as _:
        await server.expect("hello")
        sent = await server.dispatch("stubborn", agent="scripted")
        child = int((await server.message("child"))["content"].split()[1])
        await server.send("cancel", **ids(sent), reason="pause")
        await server.expect("cancelled")
        await asyncio.to_thread(until, lambda: not running(child))


def running(pid: int) -> bool:
    """A zombie, which nobody reaps in a container without an init, runs no more."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_new_prompt_of_a_session_stops_the_old_one(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path) as _:
        await server.expect("hello")
        old = await server.dispatch("quiet", agent="scripted")
        await server.message("I think.")
        new = await server.dispatch("session", agent="scripted")
        await server.expect("accepted", dispatch_id=new["dispatch_id"])
        assert ids(await server.expect("cancelled")) == ids(old)
        assert ids(await server.expect("ready")) == ids(new)


async def test_stop_ends_the_agent_of_a_session(tmp_path: Path) -> None:
    async with FakeServer().open() as server, runner(server, tmp_path, cancel_grace_s=0.1) as _:
        await server.expect("hello")
        await server.dispatch("stubborn", agent="scripted")
        child = int((await server.message("child"))["content"].split()[1])
        await server.dispatch("session", session="s2", agent="scripted")
        pid = int((await server.message("pid"))["content"].split()[-1])
        for session in ("s1", "s2", "unknown"):
            await server.send("stop", session_id=session)
        await server.expect("cancelled", session_id="s1")
        await asyncio.to_thread(until, lambda: not running(pid) and not running(child))


async def test_a_stopped_runner_ends_its_agents_and_says_so(tmp_path: Path) -> None:
    async with FakeServer().open() as server:
        async with runner(server, tmp_path) as _:
            await server.expect("hello")
            sent = await server.dispatch("stubborn", agent="scripted")
            child = int((await server.message("child"))["content"].split()[1])
        await asyncio.to_thread(until, lambda: not running(child))
        failed = await server.expect("failed", error="the runner was stopped", fatal=False)
        assert ids(failed) == ids(sent)
