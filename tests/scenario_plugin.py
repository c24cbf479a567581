"""Ties tests to the promises of docs/promises.md: `@pytest.mark.scenario("D4", "R13")`.

A whole run fails when a promise has no passing test and no place in tests/scenarios_to_build.txt, when a place there
is no longer needed, or when a test was skipped. A run of some tests only checks that the ids exist. The check is made
in the run of each database: promises marked "(once)" do not depend on it and are judged in the SQLite run alone.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROW = re.compile(r"^[-|] \*{0,2}([A-MR]\d+a?)\*{0,2}( \(once\))?(?= )", re.MULTILINE)
NARROWING = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "stepwise", "collectonly")

PROPERTY = "scenarios"

# What only a machine with more programs can run says so in its reason, which the run prints.
NOT_HERE = "not on this machine: "


@dataclass(frozen=True)
class Promises:
    """The rows that need a test (A1 to M2), those among them that do not depend on the database, and the rulings."""

    rows: frozenset[str]
    once: frozenset[str]
    rulings: frozenset[str]

    @classmethod
    def read(cls, text: str) -> "Promises":
        found = ROW.findall(text)
        ids = [row for row, _ in found]
        if twice := {row for row in ids if ids.count(row) > 1}:
            raise pytest.UsageError(f"docs/promises.md: {_listed(twice)} stands there twice")
        rulings = frozenset(row for row in ids if row.startswith("R"))
        return cls(frozenset(ids) - rulings, frozenset(row for row, once in found if once), rulings)


@dataclass(eq=False)  # pytest keeps its plugins in sets
class Scenarios:
    """What one run has seen, and its judgement."""

    promises: Promises
    to_build: frozenset[str]
    whole: bool
    database: str
    passed: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            named = {str(row) for marker in item.iter_markers("scenario") for row in marker.args}
            if unknown := named - self.promises.rows - self.promises.rulings:
                raise pytest.UsageError(f"{item.nodeid}: {_listed(unknown)} is not in docs/promises.md")
            item.user_properties.append((PROPERTY, " ".join(sorted(named))))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The rows travel with the report, because a test may have run in another process (pytest-xdist)."""
        if report.when == "call" and report.passed:
            named = [str(rows).split() for name, rows in report.user_properties if name == PROPERTY]
            self.passed.update(*named)
        if report.skipped and NOT_HERE not in str(report.longrepr):
            self.skipped.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.complaints() and exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for complaint in self.complaints():
            terminalreporter.write_line(complaint, red=True)
        if self.whole:
            left = len(self.to_build)
            terminalreporter.write_line(f"promises: {len(self.promises.rows)}, still to be built: {left}")

    def complaints(self) -> list[str]:
        if not self.whole:
            return []
        judged = self.promises.rows if self.database == "sqlite" else self.promises.rows - self.promises.once
        found = {
            "without a passing test": judged - self.passed - self.to_build,
            "tested now, so take it off tests/scenarios_to_build.txt": self.to_build & self.passed,
            "in tests/scenarios_to_build.txt, but no promise": self.to_build - self.promises.rows,
            "skipped, which no test may be": self.skipped,
        }
        return [f"{_listed(rows)}: {what}" for what, rows in found.items() if rows]


def pytest_configure(config: pytest.Config) -> None:
    promises = config.rootpath / "docs" / "promises.md"
    to_build = config.rootpath / "tests" / "scenarios_to_build.txt"
    scenarios = Scenarios(
        promises=Promises.read(promises.read_text(encoding="utf-8")),
        to_build=_ids(to_build),
        whole=_is_whole(config),
        database=str(config.getoption("database", "sqlite")),
    )
    config.pluginmanager.register(scenarios, "scenarios")


def _ids(file: Path) -> frozenset[str]:
    """One id a line; `#` starts a comment; no file is an empty list."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return frozenset(filter(None, (line.partition("#")[0].strip() for line in lines)))


def _is_whole(config: pytest.Config) -> bool:
    """Started without paths, and nothing narrows it. A worker of pytest-xdist sees a part, and judges nothing."""
    whole_tree = config.args_source is not pytest.Config.ArgsSource.ARGS
    narrowed = hasattr(config, "workerinput") or any(config.getoption(name, None) for name in NARROWING)
    return whole_tree and not narrowed


def _listed(rows: Iterable[str]) -> str:
    return ", ".join(sorted(rows, key=lambda row: (row[:1], len(row), row)))
