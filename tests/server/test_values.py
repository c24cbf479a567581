"""Settings that are wrong are named at the start."""

import environ
import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from kandev import singleuser, values

pytestmark = pytest.mark.once


@pytest.mark.parametrize("given", ["abc", "", "-1", "nan", "inf"])
def test_a_duration_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("KANDEV_CLAIM_TIMEOUT_S", given)
    with pytest.raises(ImproperlyConfigured, match="KANDEV_CLAIM_TIMEOUT_S"):
        values.seconds(environ.Env(), "KANDEV_CLAIM_TIMEOUT_S", 5)


@pytest.mark.parametrize("given", ["x", "0/m", "10", "10/w", "ten/m", "10/m/s"])
def test_a_rate_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("KANDEV_RATE_LOGIN", given)
    with pytest.raises(ImproperlyConfigured, match="KANDEV_RATE_LOGIN"):
        values.rate(environ.Env(), "KANDEV_RATE_LOGIN", "10/m")


def test_an_unknown_choice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANDEV_AUTH", "maybe")
    with pytest.raises(ImproperlyConfigured, match="required, off"):
        values.one_of(environ.Env(), "KANDEV_AUTH", "required", "off")


def test_a_hand_over_that_outlives_the_page_is_a_warning(settings: Settings) -> None:
    assert not [found for found in run_checks() if found.id == "kandev.W001"]
    settings.KANDEV_DELIVERY_TIMEOUT_S = 100.0
    assert [found for found in run_checks() if found.id == "kandev.W001"]


@pytest.mark.scenario("H4")
@pytest.mark.parametrize(
    "arguments",
    [
        ["daphne", "-b", "0.0.0.0", "kandev.asgi:application"],
        ["daphne", "-b0.0.0.0", "kandev.asgi:application"],
        ["daphne", "--bind=192.168.1.5", "kandev.asgi:application"],
        ["daphne", "-e", "tcp:port=8000:interface=0.0.0.0", "kandev.asgi:application"],
    ],
)
def test_the_single_user_mode_does_not_listen_elsewhere(settings: Settings, arguments: list[str]) -> None:
    settings.KANDEV_AUTH = "off"
    with pytest.raises(singleuser.ListensElsewhereError):
        singleuser.check_addresses(arguments, host="")
    settings.KANDEV_AUTH_OFF_ANYWHERE = True
    singleuser.check_addresses(arguments, host="")


@pytest.mark.scenario("H4")
def test_the_single_user_mode_reads_host_and_serves_loopback(settings: Settings) -> None:
    settings.KANDEV_AUTH = "off"
    singleuser.check_addresses(["daphne", "-b", "127.0.0.1"], host="localhost")
    with pytest.raises(singleuser.ListensElsewhereError):
        singleuser.check_addresses(["daphne"], host="10.0.0.1")
    assert singleuser.admits({"client": ["127.0.0.1", 1]})
    assert not singleuser.admits({"client": ["10.1.2.3", 1]})
