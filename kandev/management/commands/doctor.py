"""`manage.py doctor`: prints what is not settled; exits 1 when something is overdue."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from kandev import doctoring


class Command(BaseCommand):
    help = "Prints unsettled dispatches, claims, watchdogs, waiters, events and prompts; exits 1 when one is overdue."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--idle", action="store_true", help="exit 1 when anything at all is unsettled")

    def handle(self, *args: Any, **options: Any) -> None:
        found = doctoring.examine()
        for finding in found:
            self.stdout.write(str(finding))
        if not found:
            self.stdout.write("Everything is settled.")
        if any(finding.overdue or options["idle"] for finding in found):
            sys.exit(1)
