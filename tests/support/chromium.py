"""The browser of the page tests: the machine's Chromium, else the system's package."""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
MISSING = "A Chromium is needed for the browser tests: install one, or name its program in CHROMIUM."
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def find() -> str | None:
    named = os.environ.get("CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


def flags() -> list[str]:
    """Chromium refuses its sandbox to root, which is who runs the tests in most containers."""
    return [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else list(FLAGS)


def install() -> None:
    """Debian and its kin; a machine without apt-get is left alone."""
    apt = shutil.which("apt-get")
    if not apt:
        return
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
        subprocess.run([*prefix, apt, *step], check=False, env=environment, stdout=sys.stderr)


def main() -> int:
    if not find():
        install()
    if find():
        return 0
    print(MISSING, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
