"""The runner's memory that survives a crash: which dispatches it took, how they ended, which agent session is whose.

Every change is on disk (synchronous=FULL) before its function returns, and the caller acknowledges only after that. So
what the server was told is always true, also when this process dies right after saying it (rulings R12, R13).
"""

import json
import sqlite3
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from turns.runner.frames import Frame, Outcome, PromptKey

KEEP_S = 30 * 24 * 3600
HELLO_LIMIT = 2000

SCHEMA = """
CREATE TABLE IF NOT EXISTS runner (id INTEGER PRIMARY KEY CHECK (id = 1), runner_id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS dispatches (
    dispatch_id TEXT PRIMARY KEY,
    outcome TEXT NOT NULL CHECK (outcome IN ('accepted', 'completed', 'rejected', 'revoked')),
    code TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '',
    prompt TEXT NOT NULL DEFAULT '', ending TEXT NOT NULL DEFAULT '', at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS dispatches_at ON dispatches (at);
CREATE TABLE IF NOT EXISTS received (prompt TEXT PRIMARY KEY, received INTEGER NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS agent_sessions (
    session_id TEXT, agent TEXT, agent_session_id TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (session_id, agent));
"""


class JournalInUseError(RuntimeError):
    """Another runner has this journal open; two of them could run one dispatch twice."""


@dataclass(frozen=True)
class Entry:
    outcome: Outcome
    code: str = ""
    reason: str = ""


def prompt_name(key: PromptKey) -> str:
    return json.dumps([key.session_id, key.execution_id, key.prompt_generation])


class Journal:
    """One SQLite file. `runner_id` is made with it: a new journal is a new runner and settles nothing of the old one.

    Raises JournalInUseError when another process holds the file, OSError or sqlite3.Error when it cannot be used.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None, timeout=0)
        try:
            self._open()
        except sqlite3.OperationalError as error:
            self._db.close()
            if "locked" in str(error):
                raise JournalInUseError(f"the journal {path} is in use by another runner") from None
            raise
        path.chmod(0o600)
        self.prune()

    def _open(self) -> None:
        # EXCLUSIVE keeps the lock until this process ends, however it ends, so two runners cannot share a journal.
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("BEGIN EXCLUSIVE")
        for statement in SCHEMA.split(";"):
            self._db.execute(statement)
        self._db.execute("INSERT OR IGNORE INTO runner VALUES (1, ?)", (str(uuid.uuid4()),))
        self._db.execute("COMMIT")
        self.runner_id = str(self._db.execute("SELECT runner_id FROM runner").fetchone()[0])

    def close(self) -> None:
        self._db.close()

    def entry(self, dispatch_id: str) -> Entry | None:
        query = "SELECT outcome, code, reason FROM dispatches WHERE dispatch_id = ?"
        row = self._db.execute(query, (dispatch_id,)).fetchone()
        return Entry(*row) if row else None

    def accept(self, dispatch_id: str, key: PromptKey) -> bool:
        """Takes the dispatch. False if its id is known already, whatever became of it: then it must not be run."""
        return self._add(dispatch_id, "accepted", prompt=prompt_name(key))

    def reject(self, dispatch_id: str, code: str, reason: str) -> bool:
        return self._add(dispatch_id, "rejected", code, reason)

    def revoke(self, dispatch_id: str) -> Outcome:
        """Makes sure that the dispatch will never run, also one that has not arrived yet (R13).

        Returns `revoked`, or `accepted` when it ran or runs.
        """
        self._add(dispatch_id, "revoked")
        self._db.execute(
            "UPDATE dispatches SET outcome = 'revoked' WHERE dispatch_id = ? AND outcome = 'rejected'", (dispatch_id,)
        )
        entry = self.entry(dispatch_id)
        return "revoked" if entry and entry.outcome == "revoked" else "accepted"

    def _add(self, dispatch_id: str, outcome: Outcome, code: str = "", reason: str = "", prompt: str = "") -> bool:
        added = self._db.execute(
            "INSERT OR IGNORE INTO dispatches VALUES (?, ?, ?, ?, ?, '', ?)",
            (dispatch_id, outcome, code, reason, prompt, self._clock()),
        )
        return added.rowcount == 1

    def finish(self, dispatch_id: str, ending: Frame) -> bool:
        """Records the frame that ends the prompt; it is kept until `settle`. False if the prompt has ended before."""
        done = self._db.execute(
            "UPDATE dispatches SET outcome = 'completed', ending = ? WHERE dispatch_id = ? AND outcome = 'accepted'",
            (json.dumps(ending), dispatch_id),
        )
        return done.rowcount == 1

    def endings(self) -> list[tuple[str, Frame]]:
        """The endings that the server may not have seen, oldest first."""
        query = "SELECT dispatch_id, ending FROM dispatches WHERE ending != '' ORDER BY at, rowid"
        rows = self._db.execute(query).fetchall()
        return [(dispatch_id, json.loads(ending)) for dispatch_id, ending in rows]

    def settle(self, dispatch_ids: list[str]) -> None:
        """The server has surely handled these endings; they are not sent again."""
        names = [(dispatch_id,) for dispatch_id in dispatch_ids]
        self._db.executemany("UPDATE dispatches SET ending = '' WHERE dispatch_id = ?", names)

    def interrupted(self) -> list[tuple[str, PromptKey]]:
        """Dispatches that were taken and have no ending. Right after the start these died with an earlier process."""
        query = "SELECT dispatch_id, prompt FROM dispatches WHERE outcome = 'accepted' ORDER BY at"
        rows = self._db.execute(query).fetchall()
        return [(dispatch_id, PromptKey(*json.loads(prompt))) for dispatch_id, prompt in rows]

    def hello(self) -> list[dict[str, str]]:
        """The newest entries for the `hello` frame. What is left out proves nothing: the server asks for it (R13)."""
        query = "SELECT dispatch_id, outcome FROM dispatches ORDER BY at DESC LIMIT ?"
        rows = self._db.execute(query, (HELLO_LIMIT,)).fetchall()
        return [{"dispatch_id": dispatch_id, "outcome": outcome} for dispatch_id, outcome in rows]

    def prune(self) -> None:
        """Forgets what is older than 30 days, except dispatches that still run."""
        before = self._clock() - KEEP_S
        self._db.execute("DELETE FROM dispatches WHERE at < ? AND outcome != 'accepted'", (before,))
        self._db.execute("DELETE FROM received WHERE at < ?", (before,))
        self._db.execute("DELETE FROM agent_sessions WHERE at < ?", (before,))

    def note_received(self, key: PromptKey, received: bool) -> None:
        """Whether that prompt holds the result of its last question; a dispatch that would replace it asks (R24)."""
        row = (prompt_name(key), received, self._clock())
        self._db.execute("INSERT OR REPLACE INTO received VALUES (?, ?, ?)", row)

    def has_received(self, key: PromptKey) -> bool:
        row = self._db.execute("SELECT received FROM received WHERE prompt = ?", (prompt_name(key),)).fetchone()
        return bool(row and row[0])

    def remember_agent_session(self, session_id: str, agent: str, agent_session_id: str) -> None:
        row = (session_id, agent, agent_session_id, self._clock())
        self._db.execute("INSERT OR REPLACE INTO agent_sessions VALUES (?, ?, ?, ?)", row)

    def agent_session(self, session_id: str, agent: str) -> str | None:
        """The id that the agent itself gave to this task session, so that it can load it again."""
        found = self._db.execute(
            "SELECT agent_session_id FROM agent_sessions WHERE session_id = ? AND agent = ?", (session_id, agent)
        ).fetchone()
        return str(found[0]) if found else None
