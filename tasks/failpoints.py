"""Failpoints (contract 8): `KANDEV_FAILPOINTS=name[:n]` ends the process at the n-th pass; `error:name[:n]` raises.

Several are separated by commas. They are read once, and only with DEBUG on; without them `reach` is a look-up in a
dictionary.
"""

import os
import threading

from django.conf import settings

NAMES = (
    "respond.after_claim",
    "live.after_wake",
    "live.after_confirm",
    "dispatch.after_reserve",
    "dispatch.after_attempt",
    "dispatch.after_accept",
    "dispatch.after_publish",
    "respond.before_finalize",
    "restore.before_commit",
    "detach.before_commit",
    "expire.before_commit",
    "queue.after_pop",
    "recovery.after_claim_restore",
)


class FailpointError(Exception):
    """Raised by an `error:` failpoint; never outside tests."""


def parse(text: str) -> dict[str, tuple[bool, int]]:
    """`name[:n]` entries to {name: (raises instead of exiting, pass number)}; an unknown name is a ValueError."""
    found: dict[str, tuple[bool, int]] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        raises = entry.startswith("error:")
        name, _, count = entry.removeprefix("error:").partition(":")
        if name not in NAMES:
            raise ValueError(f"KANDEV_FAILPOINTS names an unknown point: {name}")
        found[name] = (raises, int(count or 1))
    return found


_active = parse(settings.KANDEV_FAILPOINTS) if settings.DEBUG else {}
_passes: dict[str, int] = {}
_lock = threading.Lock()


def reach(name: str) -> None:
    """Marks that the durable step called `name` was reached."""
    if name not in _active:
        return
    raises, at = _active[name]
    with _lock:
        _passes[name] = _passes.get(name, 0) + 1
        due = _passes[name] == at
    if due and raises:
        raise FailpointError(name)
    if due:
        os._exit(137)
