"""The tie between tests and promises must itself hold, else every promise could lose its test unseen."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.services import ROOT

pytestmark = pytest.mark.once

PROMISES = "- A1 first\n- A2 second\n- J1 (once) in the browser\n| R1 | ruling |\n"
MARKED = """
import pytest
@pytest.mark.scenario({ids})
def test_it():
    {body}
"""


class Tree:
    """A small project with promises and tests of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "docs").mkdir()
        (folder / "tests").mkdir()
        (folder / "docs/promises.md").write_text(PROMISES, encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers =\n    scenario\n", encoding="utf-8")

    def test(self, name: str, *ids: str, body: str = "pass") -> None:
        source = MARKED.format(ids=", ".join(map(repr, ids)), body=body)
        (self.folder / f"tests/test_{name}.py").write_text(source, encoding="utf-8")

    def to_build(self, text: str) -> None:
        (self.folder / "tests/scenarios_to_build.txt").write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "pytest", "-p", "tests.scenario_plugin", "-p", "no:django", *arguments]
        environment = {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, env=environment, check=False)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_promise_without_a_test_fails_a_whole_run(tree: Tree) -> None:
    tree.test("one", "A1", "J1", "R1")
    code, output = tree.run()
    assert code == 1
    assert "A2: without a passing test" in output


def test_every_promise_tested_or_listed_is_a_success(tree: Tree) -> None:
    tree.test("one", "A1", "J1")
    tree.to_build("# not yet\nA2 # soon\n")
    code, output = tree.run()
    assert code == 0
    assert "promises: 3, still to be built: 1" in output


def test_a_failing_test_proves_nothing(tree: Tree) -> None:
    tree.test("one", "A1", "A2", "J1", body="assert False")
    code, output = tree.run()
    assert code == 1
    assert "A1, A2, J1: without a passing test" in output


def test_the_list_may_not_keep_a_promise_that_is_tested(tree: Tree) -> None:
    tree.test("one", "A1", "A2", "J1")
    tree.to_build("A2\n")
    code, output = tree.run()
    assert code == 1
    assert "A2: tested now" in output


def test_the_list_may_not_name_what_is_no_promise(tree: Tree) -> None:
    tree.test("one", "A1", "A2", "J1")
    tree.to_build("R1\nZ9\n")
    code, output = tree.run()
    assert code == 1
    assert "R1, Z9: in tests/scenarios_to_build.txt, but no promise" in output


def test_an_unknown_id_is_an_error_even_in_a_narrow_run(tree: Tree) -> None:
    tree.test("one", "A9")
    code, output = tree.run("tests/test_one.py")
    assert code != 0
    assert "A9 is not in docs/promises.md" in output


@pytest.mark.parametrize("arguments", [["tests/test_one.py"], ["-k", "it"], ["--deselect", "nothing"]])
def test_a_run_of_some_tests_is_not_judged(tree: Tree, arguments: list[str]) -> None:
    tree.test("one", "A1")
    assert tree.run(*arguments)[0] == 0


def test_a_skipped_test_fails_a_whole_run(tree: Tree) -> None:
    tree.test("one", "A1", "A2", "J1")
    tree.test("two", body="pytest.skip('no reason')")
    code, output = tree.run()
    assert code == 1
    assert "test_two.py::test_it: skipped, which no test may be" in output


def test_a_promise_that_stands_twice_is_an_error(tree: Tree) -> None:
    (tree.folder / "docs/promises.md").write_text(PROMISES + "- A1 again\n", encoding="utf-8")
    code, output = tree.run()
    assert code != 0
    assert "A1 stands there twice" in output


def test_conftests_below_the_top_do_not_disturb_it(tree: Tree) -> None:
    (tree.folder / "tests/below").mkdir()
    (tree.folder / "tests/below/conftest.py").touch()
    tree.test("one", "A1", "A2", "J1")
    (tree.folder / "tests/test_one.py").rename(tree.folder / "tests/below/test_one.py")
    tree.test("two", "A1")
    assert tree.run()[0] == 0
