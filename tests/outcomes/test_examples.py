"""docs/outcomes.md: an example of each outcome of a response, written down from what the product really answered.

`OUTCOMES_PAGE=write` before this test writes the page anew.
"""

import json
import os
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from clarifications import claiming
from tasks import ending, failpoints, summaries
from tasks.errors import ServerFault
from tasks.models import SessionState
from tests.core.conftest import MakeStage
from tests.support.climbing import SKIP, Outcome, Question, answers, rest_of, run
from turns import background

PAGE = Path(__file__).resolve().parents[2] / "docs" / "outcomes.md"
HEAD = """# What `respond` answers

One example of each outcome of `POST /api/v1/clarification/{pending_id}/respond`, as the product gave it to the test
that writes this page; ids and times are replaced. MCP's `answer_question_kandev` gives the same bodies as structured
content, refusals as tool errors.
"""
Patch = pytest.MonkeyPatch
Scene = Callable[[Question, Patch], Outcome]


def respond(question: Question, payload: Any = None) -> Outcome:
    said = answers() if payload is None else payload
    heard = rest_of(question.stage)("POST", f"/clarification/{question.pending_id}/respond", said)
    background.settle()
    return heard


def won(question: Question, patch: Patch) -> Outcome:
    return respond(question, answers(text="and mind the gap"))


def skipped(question: Question, patch: Patch) -> Outcome:
    return respond(question, SKIP)


def lost(question: Question, patch: Patch) -> Outcome:
    respond(question)
    return respond(question, answers(pick="b"))


def lost_to_a_skip(question: Question, patch: Patch) -> Outcome:
    respond(question, SKIP)
    return respond(question)


def not_active(question: Question, patch: Patch) -> Outcome:
    ending.end_session(question.stage.session.pk, SessionState.COMPLETED)
    background.settle()
    return respond(question)


def invalid(question: Question, patch: Patch) -> Outcome:
    return respond(question, {"answers": [{"question_id": "q1", "selected_options": ["no such option"]}]})


def unknown(question: Question, patch: Patch) -> Outcome:
    return respond(Question(question.stage, str(uuid.uuid4())))


def busy(question: Question, patch: Patch) -> Outcome:
    def wait(*_: Any) -> None:
        raise claiming._Wait

    patch.setattr(claiming, "_try", wait)
    return respond(question)


def not_delivered(question: Question, patch: Patch) -> Outcome:
    question.stage.runner.on_dispatch = question.stage.runner.reject
    return respond(question)


def not_converged(question: Question, patch: Patch) -> Outcome:
    def fail(*_: Any) -> None:
        raise ServerFault

    patch.setattr(summaries, "refresh", fail)
    return not_delivered(question, patch)


def unpublished(question: Question, patch: Patch) -> Outcome:
    patch.setattr(failpoints, "_active", failpoints.parse("error:dispatch.after_accept"))
    patch.setattr(failpoints, "_passes", {})
    return respond(question)


def ambiguous(question: Question, patch: Patch) -> Outcome:
    runner = question.stage.runner
    runner.on_dispatch = runner.on_revoke = runner.ignore
    return respond(question)


EXAMPLES: dict[str, tuple[Scene, tuple[int, Any]]] = {
    "This caller won and the answer was handed over": (won, (200, True)),
    "This caller won with a skip": (skipped, (200, True)),
    "Another caller had won": (lost, (200, False)),
    "Another caller had skipped the question": (lost_to_a_skip, (200, False)),
    "Not active, and nobody won": (not_active, (409, "not_active")),
    "Invalid": (invalid, (400, "invalid")),
    "Unknown, or not the caller's": (unknown, (404, "not_found")),
    "The time before the claim was spent": (busy, (503, "temporarily_unavailable")),
    "Known not to be handed over, the question stands": (not_delivered, (503, "delivery_failed")),
    "The same, and the summary lags behind": (not_converged, (503, "convergence_failed")),
    "The agent took it, a later step failed": (unpublished, (500, "dispatch_accepted_unpublished")),
    "Nobody knows whether the agent took it": (ambiguous, (500, "dispatch_ambiguous")),
}


def example(title: str, heard: Outcome) -> str:
    text = json.dumps(heard.body, indent=2, ensure_ascii=False)
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "00000000-0000-4000-8000-000000000000", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "2026-01-31T12:00:00Z", text)
    return f"## {title}\n\n`{heard.status}`\n\n```json\n{text}\n```\n"


@pytest.mark.timeout(300)
@pytest.mark.scenario("C9", "D3", "D5", "D6", "D10", "G2", "R29")
def test_the_page_of_outcomes_shows_what_the_product_answers(make_stage: MakeStage, settings: Settings) -> None:
    settings.KANDEV_DELIVERY_TIMEOUT_S, settings.KANDEV_CLAIM_TIMEOUT_S = 4, 1
    parts = [HEAD]
    for title, (scene, expected) in EXAMPLES.items():
        stage = run(make_stage())
        question = stage.ask().detach()
        with Patch.context() as patch:
            heard = scene(question, patch)
        stage.runner.on_dispatch, stage.runner.on_revoke = stage.runner.accept, stage.runner.revoked
        assert heard.short == expected, (title, heard)
        parts.append(example(title, heard))
    made = "\n".join(parts)
    if os.environ.get("OUTCOMES_PAGE") == "write":
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "stale: run this test with OUTCOMES_PAGE=write"


@pytest.mark.scenario("D5", "D10", "G1")
def test_every_code_of_the_resolver_has_an_example() -> None:
    from clarifications import errors
    from clarifications.errors import KandevError

    elsewhere = {errors.StillActive, errors.AlreadyAnswered, errors.Closed}  # late answers
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KandevError)}
    own = {kind.code for kind in kinds - elsewhere if kind.__module__ == errors.__name__}
    assert own <= {code for _, (_, code) in EXAMPLES.values()}
