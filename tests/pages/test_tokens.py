"""A person's tokens on their page: shown once, told apart, revoked."""

import re
import time

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tasks import tokens
from tasks.models import Token, TokenKind
from tests.pages.conftest import Signed, World

PLACE = "/settings/tokens"
WANTED = {"name": "my script", "scope": "read", "days": "7"}


def test_a_token_is_shown_once_named_scoped_and_revoked(world: World, signed: Signed) -> None:
    owner = signed("owner")
    answer = owner.post(PLACE, WANTED)
    assert (answer.status_code, answer.headers["Location"]) == (302, PLACE)
    shown = owner.get(PLACE)
    [text] = re.findall(r"kdv_pat_[\w-]{20,}", shown.content.decode())
    token = Token.objects.get(user__username="owner")
    assert (token.name, token.scope) == ("my script", "read")
    assert token.expires_at is not None
    assert "no-store" in answer.headers["Cache-Control"]
    assert "no-store" in shown.headers["Cache-Control"]
    again = owner.get(PLACE).content.decode()
    assert "my script" in again
    assert text not in again
    assert text not in str(dict(owner.session))
    bearer = {"Authorization": f"Bearer {text}"}
    assert Client().get("/api/v1/boot", headers=bearer).status_code == 200
    assert signed("stranger").post(f"{PLACE}/{token.pk}/revoke").status_code == 404
    assert owner.post(f"{PLACE}/{token.pk}/revoke").status_code == 302
    assert Client().get("/api/v1/boot", headers=bearer).status_code == 401


def test_a_reload_of_the_page_with_the_text_makes_no_second_one(world: World, signed: Signed) -> None:
    owner = signed("owner")
    owner.post(PLACE, WANTED)
    for _ in range(3):
        owner.get(PLACE)
    assert Token.objects.count() == 1


def test_a_text_that_nobody_came_for_is_not_shown_later(
    world: World, signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, now = signed("owner"), time.time()
    owner.post(PLACE, WANTED)
    monkeypatch.setattr("tasks.pages.tokens.time.time", lambda: now + 600)
    assert not re.search(r"kdv_pat_[\w-]{20,}", owner.get(PLACE).content.decode())
    assert "made_token" not in owner.session


def test_tokens_without_a_name_can_be_told_apart(world: World, signed: Signed) -> None:
    for _ in range(2):
        tokens.mint(TokenKind.PERSONAL, user=User.objects.get(username="owner"))
    page = signed("owner").get(PLACE).content.decode()
    assert page.count("Unnamed token") == 2
    for token in Token.objects.all():
        assert f"{token.created_at:%Y-%m-%d %H:%M} #{token.pk}" in page
