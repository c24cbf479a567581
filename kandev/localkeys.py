"""Secrets of an installation that runs on one machine only: made once, kept under `var/`, readable by their owner only.

Imported by manage.py before the settings are, so it imports nothing of Django.
"""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

VAR = Path(__file__).resolve().parent.parent / "var"


def provide_secret_key(command: str) -> None:
    """Sets SECRET_KEY, where it is not set, for the commands that must work without any configuration.

    `runall` signs sessions with it, so its key is kept. `demo` has a throw-away database and a runner signs nothing:
    they get a new one. Other commands, and servers started by hand, hear from the settings that the key is missing.
    """
    if os.environ.get("SECRET_KEY"):
        return
    if command == "runall":
        os.environ["SECRET_KEY"] = kept(VAR / "secret-key")
    elif command in ("bench", "demo", "runner"):
        os.environ["SECRET_KEY"] = secrets.token_urlsafe(50)


def kept(path: Path, size: int = 50) -> str:
    """The text in `path`, made of `size` random bytes at the first call. Two first calls at once get the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        keep(path, secrets.token_urlsafe(size))
    return path.read_text().strip()


def keep(path: Path, text: str) -> None:
    """Writes a new file that only its owner can read. Raises FileExistsError when there is one."""
    descriptor, made = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        # The name appears with its content: a reader never finds an empty key.
        path.hardlink_to(made)
    finally:
        Path(made).unlink()
