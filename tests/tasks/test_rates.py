"""Rates are limited across connections, and a refusal changes nothing (H8, R38, B77)."""

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tasks import rates
from tasks.errors import TooMany
from tasks.models import RateWindow
from tasks.principals import Principal
from tests.tasks.conftest import Caller, Scene
from tests.tasks.racing import together


def attempt(limit: str = "3/m", key: str = "k") -> bool:
    try:
        rates.count("test", key, limit)
    except TooMany:
        return False
    return True


@pytest.mark.scenario("H8")
def test_a_window_holds_the_limit_and_says_when_it_is_over(db: None) -> None:
    assert [attempt() for _ in range(5)] == [True, True, True, False, False]
    with pytest.raises(TooMany) as caught:
        rates.count("test", "k", "3/m")
    assert 1 <= caught.value.retry_after_s <= 61
    assert attempt(key="other")
    RateWindow.objects.update(started_at=timezone.now() - dt.timedelta(minutes=1, seconds=1))
    assert [attempt() for _ in range(4)] == [True, True, True, False]


@pytest.mark.scenario("H8")
def test_attempts_at_the_same_moment_do_not_pass_the_limit(transactional_db: None) -> None:
    results = together(*[lambda: [attempt("5/m") for _ in range(4)]] * 4)
    assert sum(sum(one) for one in results) == 5
    assert RateWindow.objects.get().count == 5


def test_a_limit_of_nothing_lets_nothing_pass(db: None) -> None:
    assert not attempt("0/m")


def test_a_key_is_stored_as_a_hash_only(db: None) -> None:
    attempt(key="192.0.2.77")
    assert "192.0.2.77" not in RateWindow.objects.get().key


@pytest.mark.scenario("H8")
def test_dead_tokens_are_limited_per_address_and_a_good_one_still_works(scene: Scene, settings: Any) -> None:
    settings.KANDEV_RATE_TOKEN = "2/m"
    bad = Caller("kdv_pat_guess")
    assert [bad("GET", "/tasks").status_code for _ in range(3)] == [401, 401, 429]
    got = bad("GET", "/tasks")
    assert got.json() == {"error": "too many attempts, wait a moment", "code": "rate_limited"}  # type: ignore[attr-defined]
    assert int(got.headers["Retry-After"]) >= 1
    assert scene["viewer"]("GET", "/tasks").status_code == 200
    assert Caller("kdv_pat_guess")("GET", "/tasks", REMOTE_ADDR="192.0.2.9").status_code == 401


@pytest.mark.scenario("H8")
def test_only_log_ins_that_fail_are_counted(db: None, settings: Any) -> None:
    settings.KANDEV_RATE_LOGIN = "2/m"
    for _ in range(5):
        rates.count_login("a")
        rates.forgive_login("a")
    for _ in range(2):
        rates.count_login("a")
    with pytest.raises(TooMany):
        rates.count_login("a")
    rates.count_login("b")


@pytest.mark.scenario("H8")
def test_guesses_at_the_same_moment_are_not_looked_at_beyond_the_limit(real_scene: Scene, settings: Any) -> None:
    settings.KANDEV_RATE_LOGIN = "3/m"

    def guess(password: str) -> int:
        data = {"username": "viewer", "password": password}
        return Client().post("/accounts/login/", data).status_code

    assert sorted(together(*[lambda: guess("wrong")] * 8)) == [200] * 3 + [429] * 5
    assert guess("pw-viewer") == 429
    RateWindow.objects.all().delete()
    assert [guess("pw-viewer") for _ in range(5)] == [302] * 5


@pytest.mark.scenario("R38")
def test_answers_are_limited_per_person_whatever_the_token_and_per_address_without_people(
    scene: Scene, settings: Any
) -> None:
    settings.KANDEV_RATE_ANSWER = "1/m"
    person = scene.people["answerer"]
    rates.count_answer(Principal(user=person, address="a"))
    with pytest.raises(TooMany):
        rates.count_answer(Principal(user=person, address="b"))
    rates.count_answer(Principal(user=scene.people["owner"], address="a"))
    rates.count_answer(Principal(user=person, address="a", unscoped=True, anybody=True))
    with pytest.raises(TooMany):
        rates.count_answer(Principal(address="a", unscoped=True, anybody=True))
    rates.count_answer(Principal(address="c", unscoped=True, anybody=True))
