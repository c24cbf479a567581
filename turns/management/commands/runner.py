"""`python manage.py runner`: connects ACP agents on this machine to a server. Needs no database."""

import argparse
import logging
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from turns.runner import cli


class Command(BaseCommand):
    help = "Runs ACP agents for a Kandev server."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        cli.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        log = logging.getLogger("kandev.runner")
        log.setLevel(logging.INFO)
        if not log.handlers:
            handler = logging.StreamHandler(self.stderr)
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
            log.addHandler(handler)
            log.propagate = False
        try:
            cli.run(argparse.Namespace(**options))
        except cli.UsageError as error:
            raise CommandError(str(error)) from None
