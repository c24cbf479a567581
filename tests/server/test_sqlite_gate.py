"""The queue in front of SQLite's write lock: everybody's turn comes, and no way out of a transaction keeps it (B78)."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.backends.sqlite3 import base as plain

from kandev.database import database_from_url
from kandev.sqlite.base import DatabaseWrapper
from kandev.sqlite.gate import Gate
from tests.support.threads import beside
from tests.support.waiting import until

pytestmark = pytest.mark.once
HOLD_S = 0.05


@pytest.fixture
def wrapper(tmp_path: Path, db: None) -> Iterator[Callable[..., Any]]:
    """Makes connections to one database with a table; for the thread that opens them."""
    made: list[Any] = []
    config = database_from_url(f"sqlite:///{tmp_path}/one.sqlite3", tmp_path, 1, 1.0, 1.0)
    assert config["ENGINE"] == "kandev.sqlite"
    settings = {**connections.settings["default"], **config}

    def make(kind: Any = DatabaseWrapper) -> Any:
        made.append(kind(settings, "other"))
        made[-1].inc_thread_sharing()
        return made[-1]

    first = make()
    with first.cursor() as cursor:
        cursor.execute("CREATE TABLE t (n integer)")
    yield make
    for one in made:
        one.close()


@contextmanager
def writing(link: Any) -> Iterator[None]:
    """A transaction as `transaction.atomic` makes it, on a connection that is not among Django's."""
    link.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    try:
        yield
    except BaseException:
        link.rollback()
        raise
    else:
        link.commit()
    finally:
        link.set_autocommit(True)


def insert(link: Any, number: int = 1) -> None:
    with link.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (%s)", [number])


def stored(link: Any) -> list[int]:
    with link.cursor() as cursor:
        return [row[0] for row in cursor.execute("SELECT n FROM t ORDER BY rowid").fetchall()]


def _stand(gate: Gate, count: int) -> bool:
    return len(gate._line) == count


@pytest.mark.scenario("G1")
def test_those_who_wait_are_served_in_their_order() -> None:
    gate, served = Gate(), list[int]()
    assert gate.enter(0)

    def take(number: int) -> None:
        assert gate.enter(20)
        served.append(number)
        gate.leave()

    for number in range(20):
        beside(take, number)
        until(partial(_stand, gate, number + 1), what="it stands in line")
    gate.leave()
    until(lambda: len(served) == 20, what="all were served")
    assert served == list(range(20))


def test_who_gives_up_leaves_the_line_and_the_next_one_is_served() -> None:
    gate = Gate()
    assert gate.enter(0)
    assert not gate.enter(0.01)
    later = beside(gate.enter, 20)
    until(partial(_stand, gate, 1), what="it stands in line")
    gate.leave()
    assert later.result(10)
    assert not gate.enter(0)


@pytest.mark.parametrize("kind", [DatabaseWrapper, plain.DatabaseWrapper])
def test_a_crowd_of_writers_is_served_one_after_the_other(wrapper: Callable[..., Any], kind: Any) -> None:
    """Each holds the lock for long and comes back at once. The control: at SQLite's own lock some come too late."""
    refused, crowd, until_ = list[str](), 6, time.monotonic() + 6

    def live() -> None:
        mine = wrapper(kind)
        while time.monotonic() < until_:
            try:
                with writing(mine):
                    insert(mine)
                    time.sleep(HOLD_S)
            except (OperationalError, sqlite3.OperationalError) as error:
                refused.append(str(error))
        mine.close()

    for one in [beside(live) for _ in range(crowd)]:
        one.result(30)
    assert bool(refused) is (kind is plain.DatabaseWrapper), refused


@pytest.mark.parametrize("end", ["commit", "rollback", "close", "a failed BEGIN"])
def test_every_way_out_of_a_transaction_lets_the_next_one_in(wrapper: Callable[..., Any], end: str) -> None:
    first, second = wrapper(), wrapper()
    with ExitStack() as stack:
        if end == "commit":
            with writing(first):
                insert(first)
        elif end == "rollback":
            with suppress(ZeroDivisionError), writing(first):
                insert(first)
                _ = 1 / 0
        elif end == "close":
            first.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
            insert(first)
            first.close()
        else:
            other = stack.enter_context(_locked_by_another_process(first))
            with pytest.raises(OperationalError, match="locked"), writing(first):
                pass
            other.rollback()
        with writing(second):
            insert(second, 2)
    assert stored(second) == ([1, 2] if end == "commit" else [2])


@contextmanager
def _locked_by_another_process(link: Any) -> Iterator[sqlite3.Connection]:
    """A connection that knows of no queue, as another process' does."""
    other = sqlite3.connect(link.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def test_a_single_write_waits_in_line_as_well_and_is_refused_when_its_time_is_up(wrapper: Callable[..., Any]) -> None:
    first, second = wrapper(), wrapper()
    with writing(first):
        insert(first)
        assert stored(second) == []  # a read waits for nobody
        with pytest.raises(OperationalError, match="locked"):
            insert(second, 2)
        waiting = beside(insert, second, 3)
    waiting.result(10)
    assert stored(second) == [1, 3]


def test_the_product_writes_through_it(transactional_db: None) -> None:
    held: list[object] = []
    with transaction.atomic():
        held.append(getattr(connection, "_held", None))
    assert isinstance(held[0], Gate)
    assert getattr(connection, "_held", "no such thing") is None


def test_a_new_database_is_its_owners_alone(wrapper: Callable[..., Any], tmp_path: Path) -> None:
    with writing(wrapper()):
        kept = [path for path in tmp_path.iterdir() if path.name.startswith("one.sqlite3")]
        assert {path.name for path in kept} >= {"one.sqlite3", "one.sqlite3-wal"}
        assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
