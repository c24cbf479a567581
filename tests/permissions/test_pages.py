"""The panel on the task page, the icons, the inbox and the transcript's entry of a permission request."""

from typing import Any

import pytest
from django.test import Client

from tasks.models import Session
from tests.pages.conftest import Signed, World, offered, signed, world
from tests.pages.markup import Markup
from tests.pages.test_pages import HOSTILE, text_of
from tests.permissions.conftest import OPTIONS
from turns.models import Message

__all__ = ["offered", "signed", "world"]


def request(world: World, session: Session, title: str = "Delete the old backups", **metadata: Any) -> Message:
    said = {"request_id": "r", "title": title, "tool": {"kind": "delete"}, "options": OPTIONS, "status": "pending"}
    turn = world.turn(session)
    return world.say(session, title, type="permission_request", turn_id=turn.pk, metadata={**said, **metadata})


def panel(client: Client, session: Session) -> str:
    return text_of(client, f"/sessions/{session.pk}/permissions")


def buttons(html: str) -> list[dict[str, str]]:
    return [one for one in Markup(html).all("button") if "data-permission-option" in one]


@pytest.mark.scenario("I1")
def test_the_task_page_holds_a_panel_with_each_option_as_a_button(world: World, signed: Signed) -> None:
    session = world.session()
    row = request(world, session)
    task = text_of(signed("answerer"), f"/tasks/{world.task.pk}")
    assert f'hx-get="/sessions/{session.pk}/permissions"' in task
    assert 'data-pending="permission"' in task
    html = panel(signed("answerer"), session)
    assert "Delete the old backups" in html
    assert f'data-answer="/api/v1/permissions/{row.pk}/answer"' in html
    shown = [(one["data-permission-option"], one["data-kind"], one["class"]) for one in buttons(html)]
    assert shown == [
        ("yes", "allow_once", "primary"),
        ("always", "allow_always", "primary"),
        ("no", "reject_once", "danger"),
    ]
    assert (html.count("Allow:"), html.count("Deny:")) == (2, 1)


def test_who_may_only_look_gets_no_button_and_a_stranger_nothing(world: World, signed: Signed) -> None:
    session = world.session()
    request(world, session)
    html = panel(signed("viewer"), session)
    assert "You may see this request, but not answer it." in html
    assert buttons(html) == []
    path = f"/sessions/{session.pk}/permissions"
    assert signed("stranger").get(path).status_code == 404
    assert signed("stranger").get("/sessions/x/permissions").status_code == 404
    assert Client().get(path, headers={"HX-Request": "true"}).status_code == 401


@pytest.mark.scenario("A2")
@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ({"status": "answered", "option_id": "no"}, "<bdi>No</bdi>"),
        ({"status": "cancelled"}, "Over before somebody decided it."),
    ],
)
def test_a_request_that_is_over_leaves_the_panel_and_stays_in_the_transcript(
    world: World, signed: Signed, ended: dict[str, str], words: str
) -> None:
    session = world.session()
    row = request(world, session)
    assert "Open: decide it in the form below." in text_of(signed("viewer"), f"/sessions/{session.pk}/transcript")
    Message.objects.filter(pk=row.pk).update(metadata={**row.metadata, **ended})
    assert "data-permission" not in panel(signed("answerer"), session)
    assert words in text_of(signed("viewer"), f"/sessions/{session.pk}/transcript")


def test_a_superseded_imported_request_is_history(world: World, signed: Signed) -> None:
    session = world.session()
    request(world, session)
    world.turn(session)
    assert "data-permission" not in panel(signed("answerer"), session)
    assert "The conversation went on without it." in text_of(signed("viewer"), f"/sessions/{session.pk}/transcript")


def test_hostile_texts_stay_texts_and_every_control_has_a_name(world: World, signed: Signed) -> None:
    session = world.session()
    options = [{"option_id": HOSTILE, "name": HOSTILE, "kind": HOSTILE}]
    request(world, session, HOSTILE, tool={HOSTILE: HOSTILE}, options=options)
    for path in (f"/sessions/{session.pk}/permissions", f"/sessions/{session.pk}/transcript", "/questions"):
        html = text_of(signed("owner"), path)
        assert Markup(html).dangers() == []
        assert Markup(html).nameless_controls() == []
    [button] = buttons(panel(signed("owner"), session))
    assert (button["data-permission-option"], button["class"]) == (HOSTILE, "danger")


@pytest.mark.parametrize("metadata", [{"options": None}, {"options": [7], "tool": 7}, {"tool": [1]}])
def test_imported_rows_with_anything_in_them_are_shown(world: World, signed: Signed, metadata: dict[str, Any]) -> None:
    session = world.session()
    request(world, session, "", **metadata)
    assert "It did not say for what." in panel(signed("owner"), session)
    assert "It did not say for what." in text_of(signed("owner"), f"/sessions/{session.pk}/transcript")


def test_the_board_shows_whose_task_asks_for_leave(world: World, signed: Signed) -> None:
    request(world, world.session())
    html = text_of(signed("answerer"), "/?filter=needs-me")
    assert "Asks for permission" in html
    assert "Has a question" not in html


@pytest.mark.scenario("H3")
def test_the_inbox_lists_requests_of_those_who_may_answer_and_counts_them(world: World, signed: Signed) -> None:
    session = world.session()
    row = request(world, session)
    html = text_of(signed("answerer"), "/questions")
    assert f'id="permission-{row.pk}"' in html
    assert "All answered" not in html
    assert world.task.title in html
    assert 'data-open-questions="1"' in text_of(signed("answerer"), "/questions/count")
    for name in ("viewer", "stranger"):
        assert "data-permission" not in text_of(signed(name), "/questions")
        assert 'data-open-questions="0"' in text_of(signed(name), "/questions/count")


@pytest.mark.scenario("J1")
@pytest.mark.usefixtures("offered")
def test_opening_the_task_leads_to_the_newest_session_that_asks_for_leave(world: World, signed: Signed) -> None:
    primary = world.session(is_primary=True)
    request(world, world.session())
    newest = world.session()
    request(world, newest)
    world.session()
    client = signed("answerer")
    client.get(f"/tasks/{world.task.pk}?session={primary.pk}")
    world.task.refresh_from_db()
    path = f"/tasks/{world.task.pk}/open?revision={world.task.summary_revision}&action=permission"
    assert client.get(path).headers["Location"] == f"/tasks/{world.task.pk}?session={newest.pk}"
