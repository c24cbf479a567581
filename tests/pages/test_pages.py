"""Who sees which page, what hostile texts become, and that every control has a name."""

import uuid

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from clarifications.models import Claim, ClaimState
from tasks.models import Session, TaskState, Token
from tests.pages.conftest import Signed, World, option, question
from tests.pages.markup import Markup
from turns.models import Message

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \" ' & </textarea></form> \u202egpj.exe"
UNKNOWN = str(uuid.uuid4())


def pages_of(world: World) -> list[str]:
    session = world.task.sessions.get()
    return [
        "/",
        "/?filter=needs-me",
        "/tasks",
        f"/tasks/{world.task.pk}",
        f"/tasks/{world.task.pk}?session={session.pk}",
        f"/sessions/{session.pk}/transcript",
        f"/sessions/{session.pk}/composer",
        f"/sessions/{session.pk}/queue",
        f"/sessions/{session.pk}/questions",
        "/agents",
        "/questions",
        "/questions/count",
        "/settings/tokens",
    ]


def text_of(client: Client, path: str, **headers: str) -> str:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, (path, answer.status_code)
    return answer.content.decode()


def test_nobody_is_sent_to_sign_in_and_a_fragment_is_refused(world: World) -> None:
    world.ask(world.session())
    for path in pages_of(world):
        assert Client().get(path).headers["Location"].startswith("/accounts/login/?next=")
        assert Client().get(path, headers={"HX-Request": "true"}).status_code == 401


@pytest.mark.scenario("H3", "R43")
def test_a_stranger_is_told_the_same_of_foreign_and_unknown_things(world: World, signed: Signed) -> None:
    session = world.session()
    pending_id = world.ask(session)
    pairs = [
        (f"/tasks/{world.task.pk}", f"/tasks/{UNKNOWN}"),
        (f"/tasks/{world.task.pk}/open", f"/tasks/{UNKNOWN}/open"),
        (f"/tasks/{world.task.pk}/open", "/tasks/nonsense/open"),
        (f"/sessions/{session.pk}/transcript", f"/sessions/{UNKNOWN}/transcript"),
        (f"/sessions/{session.pk}/composer", f"/sessions/{UNKNOWN}/composer"),
        (f"/sessions/{session.pk}/queue", "/sessions/x/queue"),
        (f"/sessions/{session.pk}/questions", f"/sessions/{UNKNOWN}/questions"),
        (f"/questions/{pending_id}/late", f"/questions/{UNKNOWN}/late"),
    ]
    stranger = signed("stranger")
    for foreign, unknown in pairs:
        answers = [stranger.get(path) for path in (foreign, unknown)]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert without_token(answers[0].content) == without_token(answers[1].content)


def without_token(page: bytes) -> list[bytes]:
    """The CSRF token differs in every answer."""
    return [line for line in page.splitlines() if b"csrfmiddlewaretoken" not in line]


@pytest.mark.scenario("H3")
def test_lists_hold_nothing_foreign(world: World, signed: Signed) -> None:
    world.ask(world.session(), question("Only for us?"))
    stranger = signed("stranger")
    assert "The task" not in text_of(stranger, "/") + text_of(stranger, "/tasks")
    assert "Only for us?" not in text_of(stranger, "/questions")
    assert 'data-open-questions="0"' in text_of(stranger, "/questions/count")


@pytest.mark.scenario("H3")
def test_a_session_of_another_task_is_not_found(world: World, signed: Signed) -> None:
    other = world.new_task("Another")
    session = world.session(task=other)
    assert signed("owner").get(f"/tasks/{world.task.pk}?session={session.pk}").status_code == 404


@pytest.mark.scenario("H3")
def test_a_viewer_reads_the_question_and_is_offered_no_answer(world: World, signed: Signed) -> None:
    session = world.session()
    world.ask(session, question("Visible?"))
    viewer = signed("viewer")
    panel = text_of(viewer, f"/sessions/{session.pk}/questions")
    assert "Visible?" in panel
    assert "data-submit" not in panel
    assert all("disabled" in fieldset for fieldset in Markup(panel).all("fieldset"))
    assert "Visible?" not in text_of(viewer, "/questions")
    assert "data-composer" not in text_of(viewer, f"/sessions/{session.pk}/composer")
    assert "Visible?" in text_of(signed("answerer"), "/questions")


def test_hostile_texts_stay_texts_on_every_page(world: World, signed: Signed) -> None:
    world.task.title = world.task.description = HOSTILE
    world.task.save()
    session = world.session(agent=HOSTILE[:190])
    for author in ("agent", "user", "system"):
        world.say(session, HOSTILE, author)
    for kind in ("tool", "thinking", "status"):
        world.say(session, HOSTILE, type=kind, metadata={"input": HOSTILE})
    asked = question(HOSTILE, title=HOSTILE, options=[option(1, HOSTILE, HOSTILE), option(2, "b", "c")])
    old = world.ask(session, asked, context=HOSTILE)
    answered = {"question_id": "q1", "selected_options": ["o1"], "custom_text": HOSTILE}
    world.ask(session, asked, status="answered", response=answered)
    world.ask(session, asked, context=HOSTILE)
    owner = signed("owner")
    for path in [*pages_of(world), f"/questions/{old}/late"]:
        html = text_of(owner, path)
        assert Markup(html).dangers() == [], path
        assert not [a for a in Markup(html).all("img") if a.get("src") == "x"], path
    assert "&lt;script&gt;alert(1)" in text_of(owner, f"/sessions/{session.pk}/questions")


def test_an_agents_markdown_is_rendered_without_anything_active(world: World, signed: Signed) -> None:
    session = world.session()
    text = (
        "**bold** [good](https://example.org/) [bad](javascript:alert(1)) ![far](https://example.org/a.png)\n\n"
        "<b onclick='x'>raw</b>\n\n| a | b |\n| --- | --: |\n| 1 | 2 |\n"
    )
    world.say(session, text)
    html = text_of(signed("owner"), f"/sessions/{session.pk}/transcript")
    assert "<strong>bold</strong>" in html
    assert 'href="https://example.org/"' in html
    assert 'rel="noopener noreferrer nofollow"' in html
    assert "<table>" in html
    assert "&lt;b onclick" in html
    assert Markup(html).dangers() == []
    assert not Markup(html).all("img")


def test_every_control_has_a_name(world: World, signed: Signed) -> None:
    session = world.session()
    old = world.ask(session)
    world.ask(session, question(), {**question("And?"), "question_id": "q2", "multi_select": True})
    owner = signed("owner")
    for path in [*pages_of(world), f"/questions/{old}/late"]:
        assert Markup(text_of(owner, path)).nameless_controls() == [], path
    assert Markup(text_of(Client(), "/accounts/login/")).nameless_controls() == []


def test_a_question_is_a_group_of_radios_or_checkboxes(world: World, signed: Signed) -> None:
    session = world.session()
    many = {**question("Which?"), "question_id": "q2", "multi_select": True}
    many["options"][0]["recommended"] = True
    world.ask(session, question("Which one?"), many)
    html = text_of(signed("owner"), f"/sessions/{session.pk}/questions")
    found = Markup(html)
    assert [a["data-question"] for a in found.all("fieldset")] == ["q1", "q2"]
    assert len(found.all("legend")) == 2
    choices = [a for a in found.all("input") if a.get("type") in ("radio", "checkbox")]
    assert [a["type"] for a in choices] == ["radio", "radio", "checkbox", "checkbox"]
    assert len({a["name"] for a in choices}) == 2
    assert html.count("recommended") >= 1
    assert [a["data-limit"] for a in found.all("textarea")] == ["2000"] * 3
    assert "The agent has paused." in html


@pytest.mark.scenario("A2", "L1")
def test_a_superseded_question_is_history_that_can_be_answered_as_a_message(world: World, signed: Signed) -> None:
    session = world.session()
    world.ask(session, question("The old one?"))
    world.turn(session)
    owner = signed("owner")
    assert "The old one?" not in text_of(owner, f"/sessions/{session.pk}/questions")
    assert "The old one?" not in text_of(owner, "/questions")
    assert 'data-pending=""' in text_of(owner, "/")
    history = text_of(owner, f"/sessions/{session.pk}/transcript")
    assert "The old one?" in history
    assert "Answer as new message" in history
    assert "waiting for your answer" not in history
    assert "Answer as new message" not in text_of(signed("viewer"), f"/sessions/{session.pk}/transcript")


@pytest.mark.scenario("L1", "R40")
def test_a_bundle_whose_last_row_was_deleted_is_still_offered_late_and_once(world: World, signed: Signed) -> None:
    session = world.session()
    pending_id = world.ask(session, question("The first?"), question("The second?", question_id="q2"))
    world.turn(session)
    path = f"/sessions/{session.pk}/transcript"
    assert text_of(signed("owner"), path).count("data-late-button") == 1
    Message.objects.filter(pending_id=pending_id).latest("created_at").delete()
    assert text_of(signed("owner"), path).count("data-late-button") == 1


@pytest.mark.scenario("L1", "R7", "R36")
def test_an_answer_that_never_reached_its_agent_says_so_and_may_be_sent_as_a_message(
    world: World, signed: Signed
) -> None:
    session = world.session()
    pending_id = world.ask(session, status="answered", response={"selected_options": ["o1"], "custom_text": ""})
    row, now = Message.objects.get(pending_id=pending_id), world.tick()
    claim = {"pending_id": pending_id, "turn_id": row.turn_id, "message_ids": [str(row.pk)], "status": "answered"}
    Claim.objects.create(
        session=session, state=ClaimState.RETIRED, response={}, responded_at=now, attended_until=now, owner=1, **claim
    )
    history = text_of(signed("owner"), f"/sessions/{session.pk}/transcript")
    assert "never reached" in history
    assert history.count("data-late-button") == 1


@pytest.mark.scenario("A8", "G6")
@pytest.mark.parametrize("fault", ["two sessions", "two turns", "no question id"])
def test_a_bundle_that_no_answer_can_win_is_nowhere_offered_nor_counted(
    world: World, signed: Signed, fault: str
) -> None:
    session, other = world.session(), world.session()
    world.ask(other, question("The good one?"))
    pending_id = world.ask(session, question("Broken 1?"), question("Broken 2?", question_id="q2"))
    row = Message.objects.filter(pending_id=pending_id).latest("created_at")
    if fault == "two sessions":
        Message.objects.filter(pk=row.pk).update(session=other)
    elif fault == "two turns":
        Message.objects.filter(pk=row.pk).update(turn_id=uuid.uuid4())
    else:
        Message.objects.filter(pk=row.pk).update(metadata={**row.metadata, "question_id": ""})
    owner = signed("owner")
    for path in (f"/sessions/{session.pk}/questions", f"/sessions/{other.pk}/questions", "/questions"):
        assert "Broken" not in text_of(owner, path), path
    assert text_of(owner, "/questions").count("data-bundle=") == 1
    assert 'data-open-questions="1"' in text_of(owner, "/questions/count")


@pytest.mark.scenario("J1")
def test_the_list_beside_a_task_has_a_done_one_that_asks(world: World, signed: Signed) -> None:
    done = world.new_task("Done and asking", state=TaskState.DONE)
    world.new_task("Done for good", state=TaskState.DONE)
    world.ask(world.session(task=done))
    text = text_of(signed("owner"), "/tasks")
    assert "Done and asking" in text
    assert "Done for good" not in text


@pytest.mark.scenario("L1")
@pytest.mark.parametrize(("status", "offered"), [("expired", True), ("answered", False), ("cancelled", False)])
def test_only_an_unanswered_question_is_offered_late(world: World, signed: Signed, status: str, offered: bool) -> None:
    session = world.session()
    pending_id = world.ask(session, status=status)
    owner = signed("owner")
    assert ("data-late-button" in text_of(owner, f"/sessions/{session.pk}/transcript")) is offered
    assert ('data-mode="late"' in text_of(owner, f"/questions/{pending_id}/late")) is offered


def test_the_transcript_comes_in_windows(world: World, signed: Signed) -> None:
    session = world.session()
    rows = [world.say(session, f"line {number:03}") for number in range(250)]
    owner, path = signed("owner"), f"/sessions/{session.pk}/transcript"
    last = text_of(owner, path)
    assert "line 150" in last
    assert "line 149" not in last
    earlier = text_of(owner, f"{path}?before={rows[150].pk}")
    assert "line 149" in earlier
    assert "line 050" in earlier
    assert "line 049" not in earlier
    assert "Load earlier" in earlier
    assert "Load earlier" not in text_of(owner, f"{path}?before={rows[50].pk}")
    world.say(session, "line 250")
    since = text_of(owner, f"{path}?from={rows[150].pk}")
    assert "line 150" in since
    assert "line 250" in since
    assert "line 149" not in since


def test_a_queued_message_is_not_shown_as_sent(world: World, signed: Signed) -> None:
    session = world.session()
    world.say(session, "later, please", "user", metadata={"admission": "queued"})
    assert "later, please" not in text_of(signed("owner"), f"/sessions/{session.pk}/transcript")


@pytest.mark.scenario("I1")
def test_a_card_shows_the_question_of_any_session(world: World, signed: Signed) -> None:
    world.session(is_primary=True)
    world.ask(world.session())
    board = text_of(signed("owner"), "/")
    assert 'data-pending="clarification"' in board
    assert "The task" in text_of(signed("owner"), "/?filter=needs-me")
    assert "The task" not in text_of(signed("viewer"), "/?filter=needs-me")


def test_a_form_without_csrf_token_is_refused_with_a_page(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="owner"))
    answer = client.post("/settings/tokens", {"name": "x", "scope": "all"})
    assert answer.status_code == 403
    assert "This form is out of date" in answer.content.decode()
    assert not Token.objects.exists()


def test_an_unknown_address_has_a_page_of_its_own(world: World, settings: Settings) -> None:
    answer = Client().get("/nowhere")
    assert answer.status_code == 404
    assert "Not found" in answer.content.decode()
    assert Markup(answer.content.decode()).dangers() == []


@pytest.mark.scenario("H8")
def test_failed_log_ins_are_limited_and_named(world: World, settings: Settings) -> None:
    settings.KANDEV_RATE_LOGIN = "3/m"
    client = Client()
    wrong = {"username": "owner", "password": "guess"}
    assert [client.post("/accounts/login/", wrong).status_code for _ in range(3)] == [200, 200, 200]
    answer = client.post("/accounts/login/", {"username": "owner", "password": "owner"})
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert "Too many attempts" in answer.content.decode()
    assert client.get("/accounts/login/").status_code == 200
    elsewhere = client.post("/accounts/login/", {"username": "owner", "password": "owner"}, REMOTE_ADDR="10.0.0.9")
    assert elsewhere.status_code == 302


def test_signing_in_and_out(world: World) -> None:
    client = Client()
    assert client.post("/accounts/login/", {"username": "owner", "password": "owner"}).headers["Location"] == "/"
    assert client.get("/").status_code == 200
    assert client.post("/accounts/logout/").status_code == 302
    assert client.get("/").status_code == 302


@pytest.mark.scenario("H4")
def test_with_authentication_off_everybody_sees_everything(world: World, settings: Settings) -> None:
    settings.KANDEV_AUTH = "off"
    world.ask(world.session(), question("For anybody?"))
    for path in pages_of(world):
        assert Client().get(path).status_code == 200, path
    assert "For anybody?" in text_of(Client(), "/questions")


def test_nobody_is_offered_what_he_may_not_or_cannot_do(world: World, signed: Signed) -> None:
    session = world.session()
    world.ask(session)
    path = f"/tasks/{world.task.pk}?session={session.pk}"
    assert "Write a message instead" in text_of(signed("owner"), path)
    assert "Write a message instead" not in text_of(signed("viewer"), path)
    Session.objects.filter(pk=session.pk).update(state="completed")
    assert "Write a message instead" not in text_of(signed("owner"), path)


def test_the_inbox_has_questions_and_requests_for_leave_in_one_order(world: World, signed: Signed) -> None:
    """Whoever has waited longest comes first, whatever it waits for."""
    first, second = world.session(), world.session()
    world.ask(first, question("The oldest?"))
    leave = {"status": "pending", "request_id": "r", "options": [{"option_id": "y", "name": "Y", "kind": "allow_once"}]}
    turn = world.turn(second)
    world.say(second, "Delete it, in the middle", type="permission_request", turn_id=turn.pk, metadata=leave)
    world.ask(world.session(), question("The newest?"))
    text = text_of(signed("owner"), "/questions")
    places = [text.index(words) for words in ("The oldest?", "Delete it, in the middle", "The newest?")]
    assert places == sorted(places)
