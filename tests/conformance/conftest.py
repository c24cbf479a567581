"""The official suite is a program for Node, so it is asked only where it is.

    npm install --prefix var/conformance @modelcontextprotocol/conformance@0.1.13

puts it where it is looked for; MCP_CONFORMANCE names it elsewhere. Without it these tests are not collected, and the
last lines of the run say so: nothing is skipped in silence.
"""

import os
import subprocess
from functools import cache

import pytest

from tests.mcp.conftest import make_scene, served
from tests.support.services import ROOT

PROGRAM = os.environ.get("MCP_CONFORMANCE") or str(ROOT / "var/conformance/node_modules/.bin/conformance")
__all__ = ["make_scene", "served"]


@cache
def is_there() -> bool:
    try:
        return subprocess.run([PROGRAM, "--help"], capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not is_there():
        terminalreporter.write_line("not run: the MCP conformance suite (tests/conformance/conftest.py installs it)")


collect_ignore = [] if is_there() else ["test_suite.py"]
