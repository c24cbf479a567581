"""Guards that can be taken away, to prove that `manage.py torture` sees the damage: `KANDEV_BREAK=name`, DEBUG only."""

import os

from django.conf import settings

NAMES = frozenset(
    {
        "one_winner",  # a claim takes whatever is there, answered or not
        "proof_before_undo",  # an attempt whose owner died is undone without the runner's word
        "watchdog",  # a live confirm sets no watchdog
        "claim_recovery",  # nobody looks after the claims of dead processes
    }
)


def _read() -> str:
    name = os.environ.get("KANDEV_BREAK", "") if settings.DEBUG else ""
    if name and name not in NAMES:
        raise ValueError(f"KANDEV_BREAK names an unknown guard: {name}")
    return name


_broken = _read()


def broken(name: str) -> bool:
    """Whether this guard was taken away; never outside of DEBUG."""
    return _broken == name
