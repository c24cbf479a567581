"""Waiting on real server processes, with the worlds of tests/recovery."""

from tests.recovery.conftest import MakeWorld as MakeWorld
from tests.recovery.conftest import loop as loop
from tests.recovery.conftest import make_world as make_world
