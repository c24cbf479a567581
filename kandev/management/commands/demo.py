"""`python manage.py demo --headless`: the main job from question to answer, on processes of its own."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kandev.demo import headless
from kandev.demo.processes import LocalError, StopRequestedError, stop_on_signals


class Command(BaseCommand):
    help = (
        "Asks, answers live, lets the wait end, answers again; fails unless the agent received both answers once each."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--headless", action="store_true", help="without a browser (the only way; else `make run`)")
        parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keeps the logs of all processes there")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["headless"]:
            raise CommandError("give --headless, or use `make run` for a demonstration in the browser")
        stop_on_signals()
        try:
            headless.run(self._say, options["logs"])
        except StopRequestedError:
            raise CommandError("stopped") from None
        except LocalError as error:
            raise CommandError(str(error)) from None

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
