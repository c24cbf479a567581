"""The surface of a program that acts for a person: it finds questions, answers them, and looks at tasks."""

import asyncio
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.mcp.conftest import MakeScene
from tests.mcp.scenes import (
    ANSWER,
    ASK,
    LIST,
    TASKS,
    Scene,
    call,
    client,
    post,
    questions,
    result_of,
    text_of,
    tool_call,
)
from tests.support.processes import Product, Server
from tests.support.waiting import at_once


def person(
    scene: Scene, tool: str, name: str = "owner", server: Server | None = None, **arguments: Any
) -> dict[str, Any]:
    """The tool's result as it stands on the wire."""
    return result_of(post(scene.url("/mcp", server), scene.product.tokens[name], tool_call(tool, arguments)))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_person_sees_three_tools(scene: Scene, mode: str) -> None:
    async with client(scene.url("/mcp"), scene.product.tokens["owner"], mode) as one:
        tools = (await one.list_tools()).tools
    assert [tool.name for tool in tools] == [LIST, ANSWER, TASKS]
    assert all(tool.output_schema for tool in tools)


@pytest.mark.scenario("B1", "C6")
async def test_a_question_asked_over_mcp_is_answered_over_mcp_in_another_process(scene: Scene) -> None:
    """The answer is built from the list alone, and the SDK's client checks both results against their schemas."""
    running = asyncio.create_task(call(scene.url(), scene.token, ASK, questions=questions(2), context="why"))
    await asyncio.to_thread(scene.one_pending)
    other = scene.product.processes[1]
    assert isinstance(other, Server)
    url, token = scene.url("/mcp", other), scene.product.tokens["owner"]
    found = (await call(url, token, LIST, workspace_id=scene.workspace)).structured_content["bundles"][0]
    answers = [
        {"question_id": row["question_id"], "selected_options": [row["options"][0]["option_id"]]}
        for row in found["questions"]
    ]
    await asyncio.to_thread(scene.until_state, found["pending_id"], "active_live")
    outcome = await call(url, token, ANSWER, pending_id=found["pending_id"], answers=answers)
    assert not outcome.is_error, text_of(outcome)
    assert outcome.structured_content["claimed"]
    assert outcome.structured_content["delivery"] == "delivered"
    chosen = (await running).structured_content["answers"]
    assert chosen["q2"]["selected_option"] == found["questions"][1]["options"][0]["label"]


@pytest.mark.scenario("B4")
def test_the_list_is_what_rest_lists_and_shows(scene: Scene) -> None:
    asked = questions(2)
    asked[0] |= {
        "multi_select": True,
        "options": [{**asked[0]["options"][0], "recommended": True}, asked[0]["options"][1]],
    }
    pending_id = scene.ask(questions=asked, context="because")
    listed = person(scene, LIST, workspace_id=scene.workspace)["structuredContent"]
    (bundle,) = listed["bundles"]
    assert listed["count"] == 1
    assert listed["next_cursor"] == ""
    assert bundle.pop("age_seconds") >= 0
    (over_rest,) = scene.pending()
    over_rest.pop("age_seconds")
    assert bundle == over_rest
    assert bundle["questions"][0]["multi_select"]
    assert bundle["questions"][0]["options"][0]["recommended"]
    shown = scene.bundle(pending_id)
    assert {name: shown[name] for name in bundle} == bundle


@pytest.mark.scenario("G2")
def test_the_loser_is_shown_the_winner(scene: Scene) -> None:
    pending_id = scene.ask()
    won = person(scene, ANSWER, pending_id=pending_id, rejected=True, reason="no")["structuredContent"]
    lost = person(scene, ANSWER, pending_id=pending_id, **scene.answer(pending_id, "too late"))
    assert not lost.get("isError")
    assert [won["claimed"], lost["structuredContent"]["claimed"]] == [True, False]
    assert lost["structuredContent"]["status"] == "rejected"


@pytest.mark.scenario("G1")
def test_of_two_at_once_over_mcp_and_rest_one_wins(scene: Scene) -> None:
    other = scene.product.processes[1]
    assert isinstance(other, Server)
    for _ in range(5):
        given: dict[str, Any] = {"pending_id": scene.ask(), "rejected": True, "reason": "mcp"}
        over_mcp, over_rest = at_once(
            partial(person, scene, ANSWER, server=other, **given),
            partial(scene.respond, given["pending_id"], {"rejected": True, "reject_reason": "rest"}),
        )
        assert isinstance(over_mcp, dict)
        assert isinstance(over_rest, httpx2.Response)
        claimed = [over_mcp["structuredContent"]["claimed"], over_rest.json()["claimed"]]
        assert sorted(claimed) == [False, True]


@pytest.mark.scenario("G2")
def test_an_inactive_bundle_without_winner_is_an_error_of_its_own(scene: Scene) -> None:
    pending_id = scene.ask()
    answer = scene.answer(pending_id)
    scene.rest().post(f"/task-sessions/{scene.session}/complete")
    refused = person(scene, ANSWER, pending_id=pending_id, **answer)
    assert refused["isError"]
    assert refused["structuredContent"]["code"] == "not_active"


@pytest.mark.scenario("H1")
def test_foreign_and_unknown_read_the_same(scene: Scene, make_scene: MakeScene) -> None:
    foreign = scene.ask()
    texts = [
        person(scene, ANSWER, "stranger", pending_id=pending_id, **scene.answer(foreign))
        for pending_id in (foreign, "00000000-0000-4000-8000-000000000000", "nonsense", "x" * 5000, "a\0b")
    ]
    assert texts[0]["structuredContent"]["code"] == "not_found"
    assert texts[1:3] == texts[:2]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "pending_id"),
        ({"pending_id": 5, "rejected": True}, "pending_id"),
        ({"pending_id": None, "rejected": True}, "pending_id"),
        ({"pending_id": "ID"}, "answers"),
        ({"pending_id": "ID", "answers": None}, "answers"),
        ({"pending_id": "ID", "answers": "[]"}, "answers"),
        ({"pending_id": "ID", "answers": {}}, "answers"),
        ({"pending_id": "ID", "answers": []}, "answers"),
        ({"pending_id": "ID", "answers": [None]}, "answers.0"),
        ({"pending_id": "ID", "answers": [{"question_id": "q9"}]}, "answers.0.question_id"),
        (
            {"pending_id": "ID", "answers": [{"question_id": "q1", "selected_options": None}]},
            "answers.0.selected_options",
        ),
        ({"pending_id": "ID", "answers": [{"question_id": "q1", "custom_text": None}]}, "answers.0.custom_text"),
        ({"pending_id": "ID", "answers": [{"question_id": "q1"}], "reason": "why"}, "reason"),
        ({"pending_id": "ID", "answers": [{"question_id": "q1"}], "rejected": True}, "answers"),
        ({"pending_id": "ID", "rejected": "true"}, "rejected"),
        ({"pending_id": "ID", "rejected": True, "reason": "x" * 2001}, "reason"),
        ({"pending_id": "ID", "rejected": True, "reject_reason": "why"}, "reject_reason"),
        ({"pending_id": "ID", "rejected": True, "reason": "a\0b"}, "reason"),
    ],
)
@pytest.mark.scenario("G4")
def test_a_faulty_answer_is_explained_and_changes_nothing(scene: Scene, arguments: dict[str, Any], field: str) -> None:
    pending_id = scene.ask()
    given = {**arguments, "pending_id": pending_id} if arguments.get("pending_id") == "ID" else arguments
    refused = person(scene, ANSWER, **given)
    assert refused["isError"]
    assert f"- {field}: " in refused["content"][0]["text"]
    assert [one["pending_id"] for one in scene.pending()] == [pending_id]


@pytest.mark.scenario("G5")
def test_two_thousand_code_points_are_a_reason(scene: Scene) -> None:
    pending_id = scene.ask()
    assert person(scene, ANSWER, pending_id=pending_id, rejected=True, reason="😀" * 2000)["structuredContent"][
        "claimed"
    ]


def test_tasks_show_what_waits_for_a_person(scene: Scene) -> None:
    (before,) = person(scene, TASKS, workspace_id=scene.workspace)["structuredContent"]["tasks"]
    assert [before["task_pending_action"], before["primary_session_pending_action"]] == [None, None]
    scene.ask()
    (after,) = person(scene, TASKS, workspace_id=scene.workspace)["structuredContent"]["tasks"]
    assert [after["task_pending_action"], after["primary_session_pending_action"]] == ["clarification"] * 2
    assert after["task_id"] == scene.task
    assert person(scene, TASKS, "stranger", workspace_id=scene.workspace)["structuredContent"]["count"] == 0


def test_a_token_that_may_only_read_cannot_answer(scene: Scene, served: Product) -> None:
    pending_id = scene.ask()
    token = served.manage("token", "personal", "--user", "owner", "--scope", "read").stdout.strip()
    listed = result_of(post(scene.url("/mcp"), token, tool_call(LIST, {"workspace_id": scene.workspace})))
    assert listed["structuredContent"]["count"] == 1
    body = {"pending_id": pending_id, "rejected": True}
    refused = result_of(post(scene.url("/mcp"), token, tool_call(ANSWER, body)))
    assert refused["structuredContent"]["code"] == "forbidden"
