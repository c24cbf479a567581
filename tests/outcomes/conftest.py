"""The states of a question, as tests/core climbs them."""

from tests.core.conftest import asked_, detached_, make_stage, runner, running_session, serving, stage

__all__ = ["asked_", "detached_", "make_stage", "runner", "running_session", "serving", "stage"]
