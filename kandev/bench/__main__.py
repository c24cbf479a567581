"""The benchmark's own process: its Django knows the benchmark's database and nothing else (see `manage.py bench`)."""

import argparse
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kandev.settings")

import django

from kandev.bench.report import PLANS, ROWS
from kandev.demo.processes import LocalError, StopRequestedError, stop_on_signals


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan", choices=PLANS, default="full")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS)
    options = parser.parse_args()
    stop_on_signals()
    django.setup()
    from kandev.bench import running

    try:
        for row in running.run(PLANS[options.plan], options.rows):
            sys.stdout.write(row.line() + "\n")
            sys.stdout.flush()
    except StopRequestedError:
        return 130
    except LocalError as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
