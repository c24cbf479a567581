"""Ids and labels that are easily taken for something else: every reader gets back exactly what was asked and picked
(B29, B37, B39, B40, B42, B64, B71, B72, B75 of the fault list).
"""

import itertools
import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User

from clarifications import wording
from tests.support.climbing import Question, Stage, answers, by_hand, rest_of

STRANGE = ["true", "1", "0", "null", "[]", '["a"]', "{}", "a:b/c", "Ω λόγος", "ß", "A", "a", "'; --", "%s", "x" * 200]
LABELS = ["Yes", "always", "Yes, always", "two\nlines", 'quo"te', "back\\slash"]


@pytest.fixture
def scene(db: None) -> Stage:
    return by_hand()


def named(name: str, other: str, question_id: str = "q1") -> dict[str, Any]:
    options = [{"option_id": pk, "label": f"L {pk}", "description": "d"} for pk in (name, other)]
    return {"id": question_id, "prompt": "The same words?", "options": options}


@pytest.mark.scenario("B2", "C1")
def test_a_strange_id_is_a_text_for_every_reader(running_session: Stage) -> None:
    person, agent = rest_of(running_session, "owner"), rest_of(running_session, "agent")
    for name in STRANGE:
        questions = [named(name, "other", name), named("z", name, "z")]
        asked = {"session_id": str(running_session.session.pk), "questions": questions}
        pending_id = agent("POST", "/clarification/request", asked).body["pending_id"]
        waiting = Question(running_session, pending_id).waits()
        (listed,) = person("GET", "/clarifications").body["bundles"]
        for bundle in (listed, person("GET", f"/clarification/{pending_id}").body):
            assert [row["question_id"] for row in bundle["questions"]] == [name, "z"]
            ids = [[option["option_id"] for option in row["options"]] for row in bundle["questions"]]
            assert ids == [[name, "other"], ["z", name]]
        said = [{"question_id": pk, "selected_options": [name], "custom_text": name} for pk in (name, "z")]
        got = person("POST", f"/clarification/{pending_id}/respond", {"answers": said})
        assert (got.short, got.body["response"]["answers"]) == ((200, True), said)
        assert waiting.ended().response == got.body["response"]
        read = agent("GET", f"/clarification/{pending_id}").body
        assert [row["response"] for row in read["questions"]] == said


@pytest.mark.scenario("L8")
@pytest.mark.parametrize("size", range(len(LABELS) + 1))
def test_the_picked_labels_can_be_told_apart_in_a_prompt(scene: Stage, size: int) -> None:
    options = [{"option_id": f"o{n}", "label": label, "description": "d"} for n, label in enumerate(LABELS)]
    question = scene.ask(raw=[{"id": "q1", "prompt": "Which?", "multi_select": True, "options": options}])
    for picked in itertools.combinations(range(len(LABELS)), size):
        entry = {"question_id": "q1", "selected_options": [f"o{n}" for n in picked], "custom_text": "Chosen: x"}
        text = wording.resumed("p", question.rows, [entry])
        found = re.findall(r'^   Chosen: (".*") \(option (".*")\)$', text, re.MULTILINE)
        assert [(json.loads(label), json.loads(pk)) for label, pk in found] == [(LABELS[n], f"o{n}") for n in picked]
        assert "   > Chosen: x" in text


@pytest.mark.scenario("B2", "G1")
def test_several_open_questions_in_the_same_words_are_answered_each_by_its_id(running_session: Stage) -> None:
    made = [running_session.ask(raw=[named("a", f"b{n}")]) for n in range(3)]
    waiting = [question.waits() for question in made]
    rest = rest_of(running_session, "owner")
    for part in ("", "x", made[0].pending_id[:8], made[0].pending_id[:-1], made[0].pending_id + "0", "latest"):
        assert rest("POST", f"/clarification/{part}/respond", answers()).status == 404
    for n in (2, 1, 0):
        assert [question.state for question in made[: n + 1]] == ["active_live"] * (n + 1)
        said = [{"question_id": "q1", "selected_options": [f"b{n}"], "custom_text": str(n)}]
        got = rest("POST", f"/clarification/{made[n].pending_id}/respond", {"answers": said})
        assert (got.short, got.body["response"]["answers"]) == ((200, True), said)
        assert waiting[n].ended().response == got.body["response"]
    assert running_session.turns() == 1


@pytest.mark.scenario("H1", "H5")
@pytest.mark.parametrize("who", ["agent", "owner"])
def test_no_reader_learns_who_answered(scene: Stage, who: str) -> None:
    owner = scene.workspace.owner
    assert owner is not None
    User.objects.filter(pk=owner.pk).update(email="private@example.org", last_name="Privately")
    question = scene.ask()
    rest_of(scene, "owner")("POST", f"/clarification/{question.pending_id}/respond", {"rejected": True})
    rest = rest_of(scene, who)
    for path in (
        f"/clarification/{question.pending_id}",
        f"/task-sessions/{scene.session.pk}/messages",
        f"/tasks/{scene.task.pk}",
        f"/tasks/{scene.task.pk}/task-sessions",
        "/boot",
    ):
        text = json.dumps(rest("GET", path).body)
        for secret in ("private@example.org", "Privately", "user_id", "answered_by", "digest", "password", "kdv_"):
            assert secret not in text, path
