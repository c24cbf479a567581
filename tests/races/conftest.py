"""The states of a question, with budgets that let every one of many callers hear how it ended."""

import pytest
from pytest_django import Settings

from tests.core.conftest import make_stage, runner, running_session, serving, stage
from tests.mcp.conftest import make_scene, served

__all__ = ["make_scene", "make_stage", "patient", "runner", "running_session", "served", "serving", "stage"]


@pytest.fixture
def patient(serving: None, settings: Settings) -> None:
    settings.KANDEV_CLAIM_TIMEOUT_S = 40
    settings.KANDEV_DELIVERY_TIMEOUT_S = 60
