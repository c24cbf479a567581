"""The official suite is a program for Node, so it is asked only where it is: `make test` puts it there if npm can.

Without it these tests are not collected, and the last lines of the run say so: nothing is skipped in silence.
"""

import pytest

from tests.mcp.conftest import make_scene, served
from tests.support import conformance

__all__ = ["make_scene", "served"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not conformance.find():
        terminalreporter.write_line(conformance.MISSING)


collect_ignore = [] if conformance.find() else ["test_suite.py"]
