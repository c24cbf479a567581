"""The second run takes what failed, and only that: a fault must not get through it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.failed_plugin import MOST
from tests.support.services import ROOT

pytestmark = pytest.mark.once

TESTS = """
import pytest
@pytest.mark.parametrize("text", ["a::b [c] \\n", "plain"])
def test_odd(text): assert FAILING < 1
@pytest.mark.parametrize("number", range(20))
def test_many(number): assert number >= FAILING
def test_skips():
    if SKIPS: pytest.skip("no reason")
"""


def run(folder: Path, *arguments: str) -> int:
    plugins = ("-p", "tests.failed_plugin", "-p", "no:django", "-p", "no:cacheprovider")
    argv = [sys.executable, "-m", "pytest", "-q", *plugins, *arguments]
    return subprocess.run(argv, cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=False).returncode


def suite(folder: Path, failing: int, skips: bool = False) -> Path:
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    text = f"FAILING, SKIPS = {failing}, {skips}\n{TESTS}"
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    return folder / "left" / "failed"


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one", "workers"])
def test_a_second_run_takes_exactly_what_failed(tmp_path: Path, workers: tuple[str, ...]) -> None:
    file = suite(tmp_path, 2)
    assert run(tmp_path, "--failed-to", str(file), *workers) == 1
    assert sorted(line.partition("[")[0] for line in file.read_text().splitlines()) == [
        *["test_it.py::test_many"] * 2,
        *["test_it.py::test_odd"] * 2,
    ]
    assert run(tmp_path, f"@{file}") == 1, "a fault fails again"
    suite(tmp_path, 0)
    assert run(tmp_path, f"@{file}") == 0
    assert run(tmp_path, "--failed-to", str(file), *workers) == 0
    assert not file.exists(), "nothing of an earlier run is left"


@pytest.mark.parametrize(("failing", "skips"), [(MOST + 1, False), (2, True), (0, True)])
def test_there_is_no_second_run_of_many_or_when_one_was_skipped(tmp_path: Path, failing: int, skips: bool) -> None:
    file = suite(tmp_path, failing, skips)
    run(tmp_path, "--failed-to", str(file))
    assert not file.exists()
