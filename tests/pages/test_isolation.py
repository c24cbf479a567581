"""Somebody's text never leaks its direction of writing, and a tool's row says which tool it is."""

import pytest

from tasks.templatetags.pages import isolated
from tests.pages.conftest import Signed, World, question
from turns.models import MessageType

TURNED = "\u202egpj"


@pytest.mark.once
def test_a_text_inside_a_sentence_ends_what_it_turned() -> None:
    assert isolated(f"{TURNED}\u2069\u2066.exe") == "\u2068gpj.exe\u2069"


@pytest.mark.once
def test_titles_agents_and_questions_are_isolated(world: World, signed: Signed) -> None:
    world.task.title = TURNED
    world.task.save()
    session = world.session(agent=TURNED)
    world.ask(session, question(TURNED))
    owner = signed("owner")
    board, inbox = (owner.get(path).content.decode() for path in ("/", "/questions"))
    assert f'<span class="task-title" dir="auto">{TURNED}' in board
    assert f'dir="auto" data-state="waiting_for_input">{TURNED}' in board
    assert f"<bdi>{TURNED}</bdi></a>" in inbox
    assert f'dir="auto" data-prompt>{TURNED}' in inbox
    assert "<title>\u2068gpj\u2069 · Kandev" in owner.get(f"/tasks/{world.task.pk}").content.decode()


@pytest.mark.once
def test_every_update_of_a_tool_call_has_a_title_and_an_empty_one_is_not_shown(world: World, signed: Signed) -> None:
    session = world.session()

    def tell(content: str, **data: str) -> None:
        world.say(session, content, type=MessageType.TOOL, metadata={"data": data} if data else {})

    tell("ask_user", tool_call_id="c1", status="in_progress")
    tell("", tool_call_id="c1", status="completed")
    tell("")
    page = signed("owner").get(f"/sessions/{session.pk}/transcript").content.decode()
    assert page.count('<bdi class="aside-title">ask_user</bdi>') == 2
    assert page.count('<bdi class="chip">Completed</bdi>') == 1
    assert page.count("<summary>") == 2
