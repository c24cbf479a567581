"""Answers with a mistake: 400 with the field named, before the claim and before the loser branch (G4, G5, G6)."""

import json
from typing import Any

import pytest

from clarifications import answers as rules
from clarifications.models import Claim
from tests.support.climbing import SKIP, Outcome, Question, Rest, Stage, answers, by_hand, rest_of
from turns.models import Message

SURROGATE = "\udfff"
PERSON_FAMILY = "👨\u200d👩\u200d👧"


@pytest.fixture
def scene(db: None) -> Stage:
    return by_hand()


@pytest.fixture
def question(scene: Stage) -> Question:
    """Two questions; nobody waits, so that a skip is stored at once."""
    return scene.ask(2)


@pytest.fixture
def rest(scene: Stage) -> Rest:
    return rest_of(scene)


def send(rest: Rest, question: Question, payload: Any) -> Outcome:
    return rest("POST", f"/clarification/{question.pending_id}/respond", payload)


def entry(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {**answers(2)["answers"][number - 1], **fields}


def first(**fields: Any) -> dict[str, Any]:
    return {"answers": [entry(**fields), entry(2)]}


WRONG: list[tuple[str, Any, str]] = [
    ("no answers", {}, "answers"),
    ("empty answers", {"answers": []}, "answers"),
    ("answers null", {"answers": None}, "answers"),
    ("answers an object", {"answers": {"q1": {}}}, "answers"),
    ("answers as encoded text", {"answers": json.dumps(answers(2)["answers"])}, "answers"),
    ("one question without an entry", {"answers": [entry()]}, "answers"),
    ("entry null", {"answers": [None, entry(2)]}, "answers.0"),
    ("entry a text", {"answers": ["q1", entry(2)]}, "answers.0"),
    ("question_id missing", first(question_id=None), "answers.0.question_id"),
    ("question_id empty", first(question_id=""), "answers.0.question_id"),
    ("question_id unknown", first(question_id="q9"), "answers.0.question_id"),
    ("question_id a number", first(question_id=1), "answers.0.question_id"),
    ("question_id a list", first(question_id=["q1"]), "answers.0.question_id"),
    ("question_id with blanks", first(question_id=" q1"), "answers.0.question_id"),
    ("question_id repeated", {"answers": [entry(), entry(), entry(2)]}, "answers.1.question_id"),
    ("more than asked", {"answers": [entry(), entry(2), entry(question_id="q3")]}, "answers.2.question_id"),
    ("another id beside it", first(id="q2"), "answers.0.id"),
    ("an id that is no text", first(id=1), "answers.0.id"),
    ("a key misspelt", first(selectedOptions=["q1_b"]), "answers.0.selectedOptions"),
    ("an option in the singular", first(selected_option="q1_a"), "answers.0.selected_option"),
    ("a text under another name", first(text="hear me"), "answers.0.text"),
    ("options null", first(selected_options=None), "answers.0.selected_options"),
    ("options a text", first(selected_options="q1_a"), "answers.0.selected_options"),
    ("option unknown", first(selected_options=["q1_c"]), "answers.0.selected_options"),
    ("option by its label", first(selected_options=["Left 1"]), "answers.0.selected_options"),
    ("option of the other question", first(selected_options=["q2_a"]), "answers.0.selected_options"),
    ("option a number", first(selected_options=[1]), "answers.0.selected_options"),
    ("option null", first(selected_options=[None]), "answers.0.selected_options"),
    ("option empty", first(selected_options=[""]), "answers.0.selected_options"),
    ("option in another case", first(selected_options=["Q1_A"]), "answers.0.selected_options"),
    ("text null", first(custom_text=None), "answers.0.custom_text"),
    ("text a number", first(custom_text=5), "answers.0.custom_text"),
    ("text a list", first(custom_text=["a"]), "answers.0.custom_text"),
    ("text of 2001 characters", first(custom_text="x" * 2001), "answers.0.custom_text"),
    ("text of 2001 emoji", first(custom_text="🎈" * 2001), "answers.0.custom_text"),
    ("2001 before trimming", first(custom_text=" " * 2001), "answers.0.custom_text"),
    ("2001 with line ends", first(custom_text="x" * 2000 + "\n"), "answers.0.custom_text"),
    ("NUL in the text", first(custom_text="a\0"), "answers.0.custom_text"),
    ("NUL in an option", first(selected_options=["q1_a\0"]), "answers.0.selected_options.0"),
    ("NUL in a question_id", first(question_id="q1\0"), "answers.0.question_id"),
    ("NUL in a key", first(**{"k\0": 1}), "answers.0"),
    ("NUL beside the answers", {**answers(2), "note": "\0"}, "note"),
    ("surrogate in the text", first(custom_text=SURROGATE), "answers.0.custom_text"),
    ("a huge number", first(more=2**63), "answers.0.more"),
    ("rejected with answers", {**answers(2), "rejected": True}, "answers"),
    ("rejected with an empty entry", {"answers": [{}], "rejected": True}, "answers"),
    ("rejected a text", {**answers(2), "rejected": "false"}, "rejected"),
    ("rejected a number", {**answers(2), "rejected": 0}, "rejected"),
    ("rejected null", {**answers(2), "rejected": None}, "rejected"),
    ("reason a number", {"rejected": True, "reject_reason": 3}, "reject_reason"),
    ("reason null", {"rejected": True, "reject_reason": None}, "reject_reason"),
    ("reason of 2001 characters", {"rejected": True, "reject_reason": "x" * 2001}, "reject_reason"),
    ("reason 2001 before trimming", {"rejected": True, "reject_reason": "x" + " " * 2000}, "reject_reason"),
    ("NUL in the reason", {"rejected": True, "reject_reason": "\0"}, "reject_reason"),
    ("surrogate in the reason", {"rejected": True, "reject_reason": SURROGATE}, "reject_reason"),
]
CASES, NAMES = [case[1:] for case in WRONG], [case[0] for case in WRONG]


@pytest.mark.scenario("G4", "G5")
@pytest.mark.parametrize(("payload", "field"), CASES, ids=NAMES)
def test_a_wrong_answer_is_a_400_that_names_the_field_and_claims_nothing(
    rest: Rest, question: Question, payload: Any, field: str
) -> None:
    before = list(Message.objects.values())
    got = send(rest, question, payload)
    assert (got.status, got.code, set(got.body)) == (400, "invalid", {"error", "code", "fields"}), got
    assert field in got.body["fields"], got.body
    assert list(Message.objects.values()) == before
    assert not Claim.objects.exists()
    assert question.state.startswith("active")


@pytest.mark.scenario("G4", "G2")
@pytest.mark.parametrize(("payload", "field"), CASES, ids=NAMES)
def test_the_same_mistake_against_a_resolved_bundle_is_the_same_400(
    rest: Rest, question: Question, payload: Any, field: str
) -> None:
    for row in question.rows:
        secret = {"question_id": row.metadata["question_id"], "selected_options": [], "custom_text": "hidden words"}
        Message.objects.filter(pk=row.pk).update(metadata={**row.metadata, "status": "answered", "response": secret})
    got = send(rest, question, payload)
    assert got.status == 400
    assert field in got.body["fields"]
    assert "hidden words" not in json.dumps(got.body)


@pytest.mark.scenario("G4")
@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b'"x"',
        b"null",
        b"3",
        b"{",
        b"{}{}",
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b"[" * 20000,
        b'{"answers": [], "answers": []}',
    ],
)
def test_a_body_that_is_no_strict_object_is_a_400(rest: Rest, question: Question, raw: bytes) -> None:
    got = send(rest, question, raw)
    assert got.short == (400, "invalid")
    assert got.body["fields"]
    assert question.statuses == ["pending", "pending"]


@pytest.mark.scenario("G4")
def test_every_mistake_of_an_answer_is_named_at_once(rest: Rest, question: Question) -> None:
    wrong = {"answers": [entry(selected_options=["x"], custom_text="y" * 2001), entry(question_id="q7")]}
    assert set(send(rest, question, wrong).body["fields"]) == {
        "answers.0.selected_options",
        "answers.0.custom_text",
        "answers.1.question_id",
        "answers",
    }


@pytest.mark.scenario("G5")
@pytest.mark.parametrize(
    "text", ["x" * 2000, "🎈" * 2000, "é" * 2000, "e\u0301" * 1000, " " + "x" * 1998 + "\n", "\u202e" * 2000]
)
def test_2000_code_points_are_stored_trimmed(scene: Stage, question: Question, text: str) -> None:
    said = rules.clean(first(custom_text=text), question.rows)
    assert said.answers[0]["custom_text"] == text.strip()
    assert rules.clean({"rejected": True, "reject_reason": text}, question.rows).reject_reason == text.strip()


@pytest.mark.scenario("G5")
@pytest.mark.parametrize(
    "payload",
    [
        {"answers": [entry(2), entry()]},
        {"answers": [entry(selected_options=["q1_a", "q1_a"]), entry(2)]},
        {"answers": [entry(custom_text=" \t\n"), entry(2)]},
        {"answers": [{"question_id": "q1", "selected_options": ["q1_a"]}, entry(2)], "rejected": False},
        {"answers": [entry(), entry(2)], "reject_reason": "ignored", "note": 1},
        {"answers": [entry(id="q1"), entry(2)]},
    ],
)
def test_submissions_that_mean_the_same_are_the_same(question: Question, payload: Any) -> None:
    usual = rules.clean(answers(2), question.rows)
    found = rules.clean(payload, question.rows)
    assert (found.answers, found.rejected) == (usual.answers, usual.rejected)


@pytest.mark.scenario("G5")
def test_options_are_stored_in_the_question_s_order(question: Question) -> None:
    found = rules.clean(first(selected_options=["q1_b", "q1_a", "q1_b"]), question.rows)
    assert found.answers[0]["selected_options"] == ["q1_a", "q1_b"]


@pytest.mark.scenario("G5")
@pytest.mark.parametrize("fields", [{"selected_options": []}, {"selected_options": [], "custom_text": "  "}])
def test_an_entry_without_option_and_text_is_allowed(question: Question, fields: dict[str, Any]) -> None:
    found = rules.clean({"answers": [{"question_id": "q1", **fields}, {"question_id": "q2"}]}, question.rows)
    assert found.answers == [{"question_id": f"q{n}", "selected_options": [], "custom_text": ""} for n in (1, 2)]


@pytest.mark.scenario("G4")
@pytest.mark.parametrize(
    "path",
    [
        "10" * 30,
        "-1",
        "%00",
        "a%00b",
        "%FF",
        "%ED%A0%80",
        "..",
        "'",
        "x" * 2000,
        "00000000-0000-0000-0000-000000000000",
    ],
)
@pytest.mark.parametrize("verb", ["respond", "cancel", "late-answer", ""])
def test_a_strange_id_in_a_path_is_the_404_of_an_unknown_one(rest: Rest, path: str, verb: str) -> None:
    method = "POST" if verb else "GET"
    unknown = rest(method, f"/clarification/unknown/{verb}".rstrip("/"), answers() if verb else None)
    got = rest(method, f"/clarification/{path}/{verb}".rstrip("/"), answers() if verb else None)
    assert got.short == (404, "not_found")
    assert got == unknown or path == ".."


@pytest.mark.scenario("G5", "C2")
def test_text_of_any_script_is_the_winner_s_and_every_reader_s(rest: Rest, question: Question) -> None:
    reason = f"{PERSON_FAMILY} \u202e عربى 漢字 \u0301 <script>&amp;"
    got = send(rest, question, {**SKIP, "reject_reason": f" {reason} "})
    assert got.body["response"]["reject_reason"] == reason
