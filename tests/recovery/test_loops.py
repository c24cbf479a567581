"""Ask, answer, receive, again and again, while PostgreSQL restarts: acknowledged is exactly what arrived."""

import re

import pytest

from kandev.torture.loops import Ledger
from tests.recovery.test_torture import torture


@pytest.mark.once
@pytest.mark.scenario("C1", "E11", "G1")
@pytest.mark.timeout(420)
def test_what_was_acknowledged_is_exactly_what_arrived_while_postgresql_restarts() -> None:
    """The long one is `manage.py torture --loops 10000 --processes 2 --database postgres`."""
    code, said = torture("--loops", "100", "--every", "2", "3", "--processes", "2", "--database", "postgres")
    assert code == 0, said
    found = re.search(r"(\d+) loops in .* (\d+) restarts.* (\d+) acknowledged, (\d+) arrived", said)
    assert found, said
    loops, restarts, acknowledged, arrived = map(int, found.groups())
    assert loops == acknowledged == arrived >= 100
    assert restarts >= 1
    print(said)


@pytest.mark.once
def test_the_ledger_sees_what_was_lost_doubled_or_refused_and_received() -> None:
    """The negative control."""
    ledger = Ledger()
    for made in ("mark-00000000000a", "mark-00000000000b", "mark-00000000000c"):
        ledger.acknowledged.add(made)
        ledger.got(f"so {made} it is")
    ledger.unsaid.add("mark-00000000000d")
    ledger.got("mark-00000000000d")
    ledger.got("mark-00000000000c", fallback=True)
    assert ledger.violations() == []
    ledger.acknowledged.add("mark-000000000001")
    ledger.got("mark-00000000000a")
    ledger.refused.add("mark-000000000002")
    ledger.got("mark-000000000002")
    lost, twice, unknown = ledger.violations()
    assert "never arrived" in lost
    assert "arrived 2 times" in twice
    assert "was refused" in unknown
