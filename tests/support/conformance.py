"""The official MCP conformance suite, a program for Node: named by MCP_CONFORMANCE, else under var/, put there by npm.

`python -m tests.support.conformance` puts it there before the tests, within a bound; without npm or without a network
it says so and the tests go on without, which the last lines of the run say again.
"""

import os
import shutil
import subprocess
import sys

from tests.support.services import ROOT

PACKAGE = "@modelcontextprotocol/conformance@0.1.13"
FOLDER = ROOT / "var" / "conformance"
INSTALLED = FOLDER / "node_modules" / ".bin" / "conformance"
BOUND_S = 120
QUIETLY = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1")
MISSING = "not run: the MCP conformance suite, which needs Node and npm (docs/mcp.md)"


def find() -> str | None:
    """The program, if it and Node are there; it is not started for that, which takes long on a busy machine."""
    named = os.environ.get("MCP_CONFORMANCE")
    program = shutil.which(named) if named else str(INSTALLED) if INSTALLED.is_file() else None
    return program if shutil.which("node") else None


def install() -> None:
    """By npm as it is set up on this machine; a part of an installation is not left behind as a whole one."""
    npm = shutil.which("npm")
    if not npm:
        return
    command = [npm, "install", *QUIETLY, "--prefix", str(FOLDER), PACKAGE]
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=BOUND_S)
        failed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired):
        failed = True
    if failed:
        shutil.rmtree(FOLDER, ignore_errors=True)


def main() -> int:
    """Never fails: the suite is a program of others, which a run without a network has to do without."""
    if not find() and not os.environ.get("MCP_CONFORMANCE"):
        install()
    if not find():
        sys.stderr.write(f"{MISSING}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
