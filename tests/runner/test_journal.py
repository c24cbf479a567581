"""The runner's durable journal: what it has told the server stays true, whatever happens to the process."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner.doubles import ROOT
from turns.runner.frames import PromptKey
from turns.runner.journal import KEEP_S, Entry, Journal, JournalInUseError

pytestmark = pytest.mark.once
KEY = PromptKey("s1", "x1", 7)


def reopened(journal: Journal, path: Path) -> Journal:
    journal.close()
    return Journal(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "journal.sqlite3"


@pytest.mark.scenario("R13")
def test_a_dispatch_is_taken_once_also_after_a_restart(path: Path) -> None:
    journal = Journal(path)
    assert journal.accept("d1", KEY)
    assert not journal.accept("d1", KEY)
    journal = reopened(journal, path)
    assert not journal.accept("d1", KEY)
    assert journal.entry("d1") == Entry("accepted")
    journal.close()


@pytest.mark.scenario("R13")
def test_a_revoked_id_that_never_arrived_can_not_be_taken_later(path: Path) -> None:
    journal = Journal(path)
    assert journal.revoke("d1") == "revoked"
    assert journal.revoke("d1") == "revoked"
    journal = reopened(journal, path)
    assert not journal.accept("d1", KEY)
    assert journal.hello() == [{"dispatch_id": "d1", "outcome": "revoked"}]
    journal.close()


@pytest.mark.scenario("R13")
def test_what_was_taken_or_has_ended_is_not_revoked(path: Path) -> None:
    journal = Journal(path)
    journal.accept("d1", KEY)
    assert journal.revoke("d1") == "accepted"
    journal.finish("d1", {"type": "ready"})
    assert journal.revoke("d1") == "accepted"
    assert journal.entry("d1") == Entry("completed")
    journal.close()


def test_a_rejected_dispatch_stays_rejected_and_is_revoked_on_request(path: Path) -> None:
    journal = Journal(path)
    assert journal.reject("d1", "busy", "not now")
    assert not journal.accept("d1", KEY)
    assert journal.entry("d1") == Entry("rejected", "busy", "not now")
    assert journal.revoke("d1") == "revoked"
    journal.close()


def test_the_runner_id_is_made_with_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "one.sqlite3")
    first = journal.runner_id
    journal = reopened(journal, tmp_path / "one.sqlite3")
    other = Journal(tmp_path / "two.sqlite3")
    assert journal.runner_id == first != other.runner_id
    journal.close()
    other.close()


def test_an_ending_is_kept_until_it_is_settled(path: Path) -> None:
    journal = Journal(path)
    journal.accept("d1", KEY)
    assert journal.finish("d1", {"type": "ready"})
    assert not journal.finish("d1", {"type": "failed"})
    journal = reopened(journal, path)
    assert journal.endings() == [("d1", {"type": "ready"})]
    journal.settle(["d1"])
    assert journal.endings() == []
    assert journal.hello() == [{"dispatch_id": "d1", "outcome": "completed"}]
    journal.close()


def test_entries_live_for_30_days_and_running_ones_longer(path: Path) -> None:
    now = 1000.0
    journal = Journal(path, lambda: now)
    journal.accept("running", KEY)
    journal.accept("ended", KEY)
    journal.finish("ended", {"type": "ready"})
    journal.revoke("revoked")
    now += KEEP_S
    journal.prune()
    assert {entry["dispatch_id"] for entry in journal.hello()} == {"running", "ended", "revoked"}
    now += 1
    journal.prune()
    assert [entry["dispatch_id"] for entry in journal.hello()] == ["running"]
    assert journal.interrupted() == [("running", KEY)]
    journal.close()


@pytest.mark.scenario("R24")
def test_what_a_prompt_has_received_survives_a_restart(path: Path) -> None:
    journal = Journal(path)
    assert not journal.has_received(KEY)
    journal.note_received(KEY, True)
    journal = reopened(journal, path)
    assert journal.has_received(KEY)
    assert not journal.has_received(PromptKey("s1", "x1", 8))
    journal.note_received(KEY, False)
    assert not journal.has_received(KEY)
    journal.close()


def test_two_runners_can_not_share_a_journal(path: Path) -> None:
    journal = Journal(path)
    with pytest.raises(JournalInUseError, match="in use by another runner"):
        Journal(path)
    journal.close()
    Journal(path).close()


@pytest.mark.scenario("R13")
def test_what_was_journaled_survives_a_killed_process(path: Path) -> None:
    program = (
        "import os, pathlib, sys; from turns.runner.journal import Journal; from turns.runner.frames import PromptKey;"
        "journal = Journal(pathlib.Path(sys.argv[1])); journal.accept('d1', PromptKey('s1', 'x1', 7));"
        "journal.revoke('d2'); os._exit(137)"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], cwd=ROOT, check=False)
    assert ended.returncode == 137
    journal = Journal(path)
    assert {entry["dispatch_id"]: entry["outcome"] for entry in journal.hello()} == {"d1": "accepted", "d2": "revoked"}
    assert journal.interrupted() == [("d1", KEY)]
    journal.close()


def test_the_journal_is_readable_by_its_owner_only(path: Path) -> None:
    Journal(path).close()
    assert path.stat().st_mode & 0o077 == 0
