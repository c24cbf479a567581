"""The cast in this process, which is a server with a lease that outlives the test."""

import pytest
from pytest_django import Settings

from tasks import instances
from tests.access import cast as casting
from tests.access.cast import Cast


@pytest.fixture(autouse=True)
def serving(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the limits on failures, which the whole table would spend at once."""
    settings.KANDEV_INSTANCE_LEASE_S = settings.KANDEV_DELIVERY_TIMEOUT_S = 3600
    settings.KANDEV_RATE_TOKEN = settings.KANDEV_RATE_ANSWER = settings.KANDEV_RATE_LOGIN = "100000/m"
    monkeypatch.setattr(instances, "_generation", 0)


@pytest.fixture
def cast(db: None) -> Cast:
    instances.register()
    return casting.gather()
