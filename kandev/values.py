"""Settings that are wrong are named at the start, not met by the first request that needs them."""

import math
import re

import environ
from django.core.exceptions import ImproperlyConfigured

RATE = re.compile(r"[1-9]\d{0,8}/(s|m|h|d)")


def seconds(env: environ.Env, name: str, default: float) -> float:
    """A duration of zero or more; ImproperlyConfigured names the setting and the value."""
    given = env.str(name, default=str(default))
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ImproperlyConfigured(f"{name} must be a number of seconds, not {given!r}.")
    return value


def rate(env: environ.Env, name: str, default: str) -> str:
    """`COUNT/UNIT` with s, m, h or d."""
    given: str = env.str(name, default=default).strip()
    if not RATE.fullmatch(given):
        raise ImproperlyConfigured(f"{name} must look like 10/m (a count for each s, m, h or d), not {given!r}.")
    return given


def one_of(env: environ.Env, name: str, default: str, *others: str) -> str:
    """One of the named values."""
    given: str = env.str(name, default=default)
    if given not in (default, *others):
        raise ImproperlyConfigured(f"{name} must be one of {', '.join((default, *others))}, not {given!r}.")
    return given
