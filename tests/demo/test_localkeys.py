"""Secrets that a local installation keeps for itself."""

import os
from pathlib import Path

import pytest

from kandev import localkeys
from tests.support.waiting import at_once

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def var(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(localkeys, "VAR", tmp_path / "var")
    monkeypatch.setenv("SECRET_KEY", "")
    return tmp_path / "var"


def test_runall_keeps_its_key(var: Path) -> None:
    localkeys.provide_secret_key("runall")
    first, os.environ["SECRET_KEY"] = os.environ["SECRET_KEY"], ""
    localkeys.provide_secret_key("runall")
    assert os.environ["SECRET_KEY"] == first == (var / "secret-key").read_text()
    assert len(first) > 50
    assert (var / "secret-key").stat().st_mode & 0o077 == 0
    assert [file.name for file in var.iterdir()] == ["secret-key"]


def test_a_given_key_is_used(var: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "given")
    localkeys.provide_secret_key("runall")
    assert os.environ["SECRET_KEY"] == "given"
    assert not var.exists()


@pytest.mark.parametrize("command", ["demo", "runner"])
def test_commands_that_keep_nothing_get_a_key_for_themselves(var: Path, command: str) -> None:
    localkeys.provide_secret_key(command)
    assert len(os.environ["SECRET_KEY"]) > 50
    assert not var.exists()


@pytest.mark.parametrize("command", ["", "migrate", "runserver", "check"])
def test_every_other_command_needs_a_given_key(command: str) -> None:
    localkeys.provide_secret_key(command)
    assert os.environ["SECRET_KEY"] == ""


def test_first_calls_at_once_get_the_same_key(var: Path) -> None:
    def call() -> str:
        return localkeys.kept(var / "one")

    assert len({str(key) for key in at_once(*[call] * 8)}) == 1
