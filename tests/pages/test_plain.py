"""A question answered by a form without scripts: the same function as REST, told as a page."""

from typing import Any

import pytest
from django.test import Client

from clarifications import responding
from clarifications.errors import DeliveryFailed, DispatchAmbiguous
from tasks.errors import KandevError
from tests.pages.conftest import Signed, World, question
from turns.models import Message
from turns.querysets import PENDING


def send(client: Client, pending_id: str, **fields: Any) -> tuple[int, str]:
    """Fields are named without the form's prefix: `q1`, `q1_text`."""
    key = Message.objects.filter(pending_id=pending_id).order_by("created_at", "id")[0].pk.hex
    named = {f"respond-{key}-{name.replace('_', '-')}": value for name, value in fields.items() if name[0] == "q"}
    rest = {name: value for name, value in fields.items() if name[0] != "q"}
    reply = client.post(f"/questions/{pending_id}/answer", {**named, **rest})
    return reply.status_code, reply.content.decode()


def stored(pending_id: str) -> list[str]:
    return [row.status for row in Message.objects.filter(pending_id=pending_id).order_by("created_at", "id")]


def test_skipping_is_told_and_a_second_one_hears_who_was_first(world: World, signed: Signed) -> None:
    pending_id = world.ask(world.session())
    assert send(signed("owner"), pending_id, skip="1", reason="no")[0] == 200
    assert stored(pending_id) == ["rejected"]
    status, text = send(signed("answerer"), pending_id, q1="o1")
    assert status == 200
    assert "Somebody else skipped this question first." in text


def test_the_loser_sees_the_winner_s_answer_as_text(world: World, signed: Signed) -> None:
    asked = world.ask(world.session())
    answer = {"question_id": "q1", "selected_options": ["o2"], "custom_text": "<b>mine</b>"}
    Message.objects.filter(pending_id=asked).update(
        metadata={**Message.objects.get(pending_id=asked).metadata, "status": "answered", "response": answer}
    )
    status, text = send(signed("answerer"), asked, q1="o1")
    assert status == 200
    assert "Somebody else answered first:" in text
    assert "<bdi>Second</bdi>" in text
    assert "&lt;b&gt;mine&lt;/b&gt;" in text


def test_what_is_not_valid_or_not_open_leads_back_to_what_was_typed(world: World, signed: Signed) -> None:
    session = world.session()
    old = world.ask(session)
    pending_id = world.ask(session, question(), question(question_id="q2"))
    for given, expected in ((pending_id, 400), (old, 409)):
        status, text = send(signed("owner"), given, q1_text="x" * (2001 if given == pending_id else 3), q2="o1")
        assert status == expected
        assert "Nothing was sent." in text
        assert "what you typed is still there" in text
    assert set(stored(pending_id) + stored(old)) <= set(PENDING)


def test_an_untouched_form_takes_nothing(world: World, signed: Signed) -> None:
    pending_id = world.ask(world.session(), question(), question(question_id="q2"))
    for fields in ({}, {"q1_text": " \r\n", "q2_text": ""}):
        status, text = send(signed("owner"), pending_id, **fields)
        assert status == 400
        assert "Choose an option or write something." in text
        assert stored(pending_id) == ["pending", "pending"]
    assert send(signed("owner"), pending_id, skip="1")[0] == 200
    status, text = send(signed("owner"), pending_id)
    assert (status, "Somebody else skipped this question first." in text) == (200, True)


@pytest.mark.parametrize(
    ("error", "says"),
    [(DeliveryFailed, "try again"), (DispatchAmbiguous, "Do not answer again")],
    ids=["busy", "unclear"],
)
def test_only_an_answer_that_is_nowhere_may_be_sent_again(
    world: World, signed: Signed, monkeypatch: pytest.MonkeyPatch, error: type[KandevError], says: str
) -> None:
    def fail(*_given: Any) -> dict[str, Any]:
        raise error

    monkeypatch.setattr(responding, "respond", fail)
    status, text = send(signed("owner"), world.ask(world.session()), q1="o1")
    assert status == error.status
    assert says in text
    assert ("what you typed is still there" in text) is (error is DeliveryFailed)


def test_a_line_break_of_a_form_counts_once(world: World, signed: Signed, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []

    def note(_principal: Any, _pending_id: str, payload: Any) -> dict[str, Any]:
        heard.append(payload)
        return {"claimed": True, "status": "answered"}

    monkeypatch.setattr(responding, "respond", note)
    send(signed("owner"), world.ask(world.session()), q1="o1", q1_text="a\r\nb")
    assert heard[0]["answers"] == [{"question_id": "q1", "selected_options": ["o1"], "custom_text": "a\nb"}]


def test_a_form_of_another_site_is_refused(world: World, signed: Signed) -> None:
    pending_id = world.ask(world.session())
    careful = Client(enforce_csrf_checks=True)
    careful.cookies = signed("owner").cookies
    assert send(careful, pending_id, q1="o1")[0] == 403
    assert stored(pending_id) == ["pending"]
