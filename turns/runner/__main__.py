"""`python -m turns.runner`: a runner on a machine that has no other part of the server's configuration."""

import argparse
import logging

from turns.runner import cli


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m turns.runner", description="Runs ACP agents for a Kandev server.")
    cli.add_arguments(parser)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        cli.run(parser.parse_args())
    except cli.UsageError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()
