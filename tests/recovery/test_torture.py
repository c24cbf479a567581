"""The short torture of the suite: real processes in trouble for a while, and proof that damage would be seen."""

import pytest

from tests.support.databases import product_environment, run_python


def torture(*arguments: str) -> tuple[int, str]:
    environment = product_environment("sqlite://:memory:")
    done = run_python("manage.py", "torture", *arguments, environment=environment, check=False, timeout_s=400)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.scenario("E9", "E10", "E11", "G1", "L7", "R39")
@pytest.mark.timeout(420)
def test_servers_in_trouble_keep_every_promise(database: str) -> None:
    code, said = torture("--seconds", "40", "--seed", "7", "--processes", "2", "--database", database)
    assert code == 0, said
    print(said)


@pytest.mark.once
@pytest.mark.timeout(420)
def test_the_torture_sees_what_a_missing_guard_does() -> None:
    code, said = torture("--seconds", "240", "--seed", "7", "--break", "one_winner")  # ends with the first two winners
    assert code != 0
    assert "winners" in said, said


def test_guards_cannot_be_taken_away_without_debug() -> None:
    code = "from tasks import breaks; print(breaks.broken('watchdog'))"
    for debug, expected in (("1", "True"), ("0", "False")):
        environment = product_environment("sqlite://:memory:", DEBUG=debug, KANDEV_BREAK="watchdog")
        assert run_python("manage.py", "shell", "-v0", "-c", code, environment=environment).stdout.strip() == expected
