"""`--failed-to FILE`: what failed among others, one id a line, for a second run by itself (`make test`).

On a busy machine a start or a browser can be late; a fault fails again. There is no file, and so no second run, when
more than MOST tests failed, when one was skipped that no test may skip, and when the run did not come to its end.
"""

from pathlib import Path

import pytest

from tests.scenario_plugin import NOT_HERE

MOST = 5


class Failed:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._ids: dict[str, None] = {}
        self._skipped = False
        file.unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._ids[report.nodeid] = None
        self._skipped |= report.skipped and NOT_HERE not in str(report.longrepr)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.TESTS_FAILED and len(self._ids) <= MOST and not self._skipped:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text("\n".join(self._ids), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failed-to", type=Path, help="where the ids of failed tests are left, if they are few")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--failed-to")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failed(file), "failed-to")
