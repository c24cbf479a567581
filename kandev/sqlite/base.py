"""Django's backend for SQLite, where the threads of a process queue up for the one write lock.

SQLite has no queue: who finds the lock taken sleeps, up to a tenth of a second, and tries again, and whoever comes
meanwhile goes first. On a busy server some thread would come too late for seconds, until its time is up: an answer
refused, a heartbeat missed. Here only processes still meet at SQLite's own lock.
"""

import contextlib
import os
from collections.abc import Callable
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

from kandev.sqlite import gate

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection holds its place from BEGIN to the commit, the rollback or its close, whichever comes first; a single
    write outside of a transaction for as long as it runs.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held: gate.Gate | None = None
        self.execute_wrappers.append(self._one_write)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A new file is its owner's alone: texts and password hashes lie there. SQLite's own files take its mode."""
        name = str(self.settings_dict["NAME"])
        if not self.is_in_memory_db():
            with contextlib.suppress(OSError):  # there already, or SQLite will say what is wrong with the place
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return super().get_new_connection(conn_params)

    def _enter(self) -> None:
        mine = gate.of(str(self.settings_dict["NAME"]))
        if not mine.enter(float(self.settings_dict["OPTIONS"].get("timeout", 5.0))):
            raise OperationalError("database is locked")  # as SQLite says it when its own wait is over
        self._held = mine

    def _leave(self) -> None:
        if self._held is not None:
            mine, self._held = self._held, None
            mine.leave()

    def _one_write(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if self._held is not None or not sql.startswith(WRITES):
            return execute(sql, params, many, context)
        self._enter()
        try:
            return execute(sql, params, many, context)
        finally:
            self._leave()

    def _start_transaction_under_autocommit(self) -> None:
        self._enter()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self._leave()
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]
        self._leave()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._leave()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._leave()
