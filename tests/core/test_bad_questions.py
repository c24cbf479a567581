"""Questions with a mistake: 400 with the field named, nothing stored, the same on both databases (B2)."""

import json
from typing import Any

import pytest

from clarifications.models import WaiterLease
from tests.support.climbing import Outcome, Rest, Stage, by_hand, questions, rest_of
from turns.models import Message

SURROGATE = "\ud800"
OPTIONS = questions()[0]["options"]


@pytest.fixture
def scene(db: None) -> Stage:
    return by_hand()


@pytest.fixture
def rest(scene: Stage) -> Rest:
    return rest_of(scene, "agent")


def refused(scene: Stage, got: Outcome, field: str) -> None:
    """400, the field named, nothing stored."""
    assert (got.status, got.code) == (400, "invalid"), got
    assert set(got.body) == {"error", "code", "fields"}
    assert field in got.body["fields"], got.body
    assert all(isinstance(line, str) for lines in got.body["fields"].values() for line in lines)
    assert not Message.objects.questions().exists()
    assert not WaiterLease.objects.exists()
    assert scene.pending_action() is None


def ask(scene: Stage, rest: Rest, **changes: Any) -> Outcome:
    body = {"session_id": str(scene.session.pk), "questions": questions(), "context": "", **changes}
    return rest("POST", "/clarification/request", body)


def one(**fields: Any) -> list[dict[str, Any]]:
    return [{**questions()[0], **fields}]


COMPOSED, APART = "caf\u00e9", "cafe\u0301"
NAMESAKES = [{**each, "option_id": name} for each, name in zip(OPTIONS, (COMPOSED, APART), strict=True)]
LOOKALIKES = [{**each, "label": name} for each, name in zip(OPTIONS, (COMPOSED, APART), strict=True)]


def option(**fields: Any) -> list[dict[str, Any]]:
    return one(options=[OPTIONS[0], {**OPTIONS[1], **fields}])


WRONG: list[tuple[str, Any, str]] = [
    ("none", None, "questions"),
    ("empty", [], "questions"),
    ("five", questions(5), "questions"),
    ("an object", {}, "questions"),
    ("a text", "[]", "questions"),
    ("questions as encoded text", json.dumps(questions()), "questions"),
    ("no object", ["q"], "questions.0"),
    ("null", [None], "questions.0"),
    ("id a number", one(id=1), "questions.0.id"),
    ("id empty", one(id=""), "questions.0.id"),
    ("id blank", one(id=" \t"), "questions.0.id"),
    ("id a list", one(id=[]), "questions.0.id"),
    ("id too long", one(id="x" * 201), "questions.0.id"),
    ("question_id a number", [{**one()[0], "id": None, "question_id": 3}], "questions.0.question_id"),
    ("two ids", one(question_id="other"), "questions.0.question_id"),
    ("a good id and a wrong one", one(question_id=""), "questions.0.question_id"),
    ("ids repeated", [*one(), *one()], "questions.1.id"),
    ("ids repeated but for blanks", [*one(), *one(id=" q1 ")], "questions.1.id"),
    ("made id given before", [{**one(id="q2")[0]}, {**one()[0], "id": None}], "questions.1.id"),
    ("prompt missing", one(prompt=None), "questions.0.prompt"),
    ("prompt empty", one(prompt=""), "questions.0.prompt"),
    ("prompt blank", one(prompt=" \n "), "questions.0.prompt"),
    ("prompt a number", one(prompt=7), "questions.0.prompt"),
    ("prompt true", one(prompt=True), "questions.0.prompt"),
    ("title a number", one(title=7), "questions.0.title"),
    ("title a list", one(title=["t"]), "questions.0.title"),
    ("options missing", one(options=None), "questions.0.options"),
    ("options empty", one(options=[]), "questions.0.options"),
    ("one option", one(options=OPTIONS[:1]), "questions.0.options"),
    ("seven options", one(options=[{"label": str(n), "description": "d"} for n in range(7)]), "questions.0.options"),
    ("options an object", one(options={"a": 1, "b": 2}), "questions.0.options"),
    ("option a text", one(options=["a", "b"]), "questions.0.options.1"),
    ("label missing", option(label=None), "questions.0.options.1.label"),
    ("label empty", option(label=""), "questions.0.options.1.label"),
    ("label a number", option(label=0), "questions.0.options.1.label"),
    ("description missing", option(description=None), "questions.0.options.1.description"),
    ("description blank", option(description="  "), "questions.0.options.1.description"),
    ("option_id a number", option(option_id=1), "questions.0.options.1.option_id"),
    ("option_id blank", option(option_id=" "), "questions.0.options.1.option_id"),
    ("option_id true", option(option_id=True), "questions.0.options.1.option_id"),
    ("ids that look the same", [*one(id=COMPOSED), *one(id=APART)], "questions.1.id"),
    ("option ids that look the same", one(options=NAMESAKES), "questions.0.options.1.option_id"),
    ("labels repeated", option(label="Left 1"), "questions.0.options.1.label"),
    ("labels repeated but for blanks", option(label=" Left 1\n"), "questions.0.options.1.label"),
    ("labels that look the same", one(options=LOOKALIKES), "questions.0.options.1.label"),
    ("option ids repeated", option(option_id="q1_a"), "questions.0.options.1.option_id"),
    ("option ids repeated but for blanks", option(option_id="q1_a "), "questions.0.options.1.option_id"),
    (
        "made option id given before",
        one(options=[{**OPTIONS[0], "option_id": "q1_opt2"}, {**OPTIONS[1], "option_id": None}]),
        "questions.0.options.1.option_id",
    ),
    ("multi_select a text", one(multi_select="true"), "questions.0.multi_select"),
    ("multi_select a number", one(multi_select=1), "questions.0.multi_select"),
    ("recommended a text", option(recommended="yes"), "questions.0.options.1.recommended"),
    ("NUL in the prompt", one(prompt="a\0b"), "questions.0.prompt"),
    ("NUL in the title", one(title="\0"), "questions.0.title"),
    ("NUL in an id", one(id="q\0"), "questions.0.id"),
    ("NUL in a label", option(label="a\0"), "questions.0.options.1.label"),
    ("NUL in a description", option(description="a\0"), "questions.0.options.1.description"),
    ("NUL in an option id", option(option_id="a\0"), "questions.0.options.1.option_id"),
    ("NUL in an unknown key", one(**{"x\0": 1}), "questions.0"),
    ("NUL below an unknown key", one(more={"deep": ["\0"]}), "questions.0.more.deep.0"),
    ("surrogate in the prompt", one(prompt=SURROGATE), "questions.0.prompt"),
    ("surrogate in an id", one(id=SURROGATE), "questions.0.id"),
    ("surrogate in a label", option(label=f"a{SURROGATE}"), "questions.0.options.1.label"),
    ("surrogate in a key", one(**{SURROGATE: 1}), "questions.0"),
    ("a huge number", one(more=10**30), "questions.0.more"),
]


@pytest.mark.scenario("B2")
@pytest.mark.parametrize(("raw", "field"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_a_wrong_question_is_a_400_that_names_the_field(scene: Stage, rest: Rest, raw: Any, field: str) -> None:
    refused(scene, ask(scene, rest, questions=raw), field)


@pytest.mark.scenario("B2")
def test_every_mistake_of_a_request_is_named_at_once(scene: Stage, rest: Rest) -> None:
    raw = [*one(prompt=""), {**option(label="")[0], "id": "q2", "multi_select": 3}]
    got = ask(scene, rest, questions=raw)
    refused(scene, got, "questions.0.prompt")
    assert set(got.body["fields"]) == {"questions.0.prompt", "questions.1.options.1.label", "questions.1.multi_select"}


@pytest.mark.scenario("B2")
def test_a_bundle_whose_fourth_question_is_wrong_stores_none_and_tells_nobody(scene: Stage, rest: Rest) -> None:
    raw = questions(4)
    raw[3]["options"][1]["label"] = ""
    refused(scene, ask(scene, rest, questions=raw), "questions.3.options.1.label")
    assert not scene.events()


@pytest.mark.scenario("B2")
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"session_id": None}, "session_id"),
        ({"session_id": 5}, "session_id"),
        ({"session_id": "x"}, "session_id"),
        ({"session_id": []}, "session_id"),
        ({"session_id": 10**18}, "session_id"),
        ({"context": 5}, "context"),
        ({"context": []}, "context"),
        ({"context": {}}, "context"),
        ({"context": False}, "context"),
        ({"context": 0}, "context"),
        ({"context": "a\0"}, "context"),
        ({"context": SURROGATE}, "context"),
        ({"extra": "\0"}, "extra"),
    ],
)
def test_a_wrong_field_beside_the_questions_is_a_400(scene: Stage, rest: Rest, changes: Any, field: str) -> None:
    refused(scene, ask(scene, rest, **changes), field)


RAW: list[tuple[str, bytes]] = [
    *(
        (word, b'{"session_id": "x", "questions": ' + word.encode() + b"}")
        for word in ("NaN", "Infinity", "-Infinity", "1e999")
    ),
    *((f"{depth} levels", b'{"questions": ' + b"[" * depth + b"]" * depth + b"}") for depth in (64, 1000, 20000)),
    ("20000 objects", b'{"a":' * 20000),
    ("a list", b"[]"),
    ("a text", b'"x"'),
    ("null", b"null"),
    ("a number", b"3"),
    ("no JSON", b"{"),
    ("two values", b"{}{}"),
    ("not UTF-8", b'{"context": "\xff"}'),
    ("single quotes", b"{'a': 1}"),
]


@pytest.mark.scenario("B2")
@pytest.mark.parametrize("raw", [case[1] for case in RAW], ids=[case[0] for case in RAW])
def test_a_body_that_is_no_strict_object_is_a_400(scene: Stage, rest: Rest, raw: bytes) -> None:
    got = rest("POST", "/clarification/request", raw)
    refused(scene, got, next(iter(got.body.get("fields", {"": 0}))))


@pytest.mark.scenario("B2")
def test_a_body_over_one_mebibyte_is_a_413_and_the_largest_one_is_stored(scene: Stage, rest: Rest) -> None:
    room = (1 << 20) - len(
        json.dumps({"session_id": str(scene.session.pk), "questions": one(prompt=""), "context": ""})
    )
    assert ask(scene, rest, questions=one(prompt="x" * (room + 1))).short == (413, "too_large")
    assert not Message.objects.questions().exists()
    assert ask(scene, rest, questions=one(prompt="x" * room)).status == 201
    assert len(Message.objects.questions().get().content) == room


RIGHT: list[tuple[str, dict[str, Any]]] = [
    ("four questions", {"questions": questions(4)}),
    ("six options", {"questions": one(options=[{"label": str(n), "description": "d"} for n in range(6)])}),
    ("a long title", {"questions": one(title="longer than twelve characters")}),
    ("no title", {"questions": one(title=None)}),
    ("no context", {"context": None}),
    ("an unknown key", {"questions": one(hint="none"), "more": {"deep": [1]}}),
    ("question_id for id", {"questions": [{**one()[0], "id": None, "question_id": "mine"}]}),
    ("multi_select", {"questions": one(multi_select=True)}),
    ("recommended", {"questions": option(recommended=True)}),
    ("an id that only case tells apart", {"questions": [*one(), *one(id="Q1")]}),
    ("a long id", {"questions": one(id="é" * 200)}),
]


@pytest.mark.scenario("B2")
@pytest.mark.parametrize("changes", [case[1] for case in RIGHT], ids=[case[0] for case in RIGHT])
def test_what_the_limits_allow_is_stored(scene: Stage, rest: Rest, changes: Any) -> None:
    got = ask(scene, rest, **changes)
    assert got.status == 201, got
    assert Message.objects.bundle(got.body["pending_id"]).count() == len(changes.get("questions", one()))


@pytest.mark.scenario("B2")
def test_ids_that_were_not_given_are_made(scene: Stage, rest: Rest) -> None:
    bare = [{"label": "Yes", "description": "d"}, {"label": "No", "description": "d"}]
    got = ask(scene, rest, questions=[{"prompt": "A?", "options": bare}, {"prompt": "B?", "options": bare}])
    rows = list(Message.objects.bundle(got.body["pending_id"]))
    assert [row.metadata["question_id"] for row in rows] == ["q1", "q2"]
    assert [option["option_id"] for option in rows[1].metadata["question"]["options"]] == ["q2_opt1", "q2_opt2"]


TEXT = "Grüße 🎈👨‍👩‍👧 \u202e عربى\r\n漢字 \u0301 <b>&amp; \\u0000 '\"%s{}`"


@pytest.mark.scenario("B2")
def test_text_of_any_script_comes_back_as_it_was(scene: Stage, rest: Rest) -> None:
    raw = one(prompt=TEXT, title=TEXT, options=[{**OPTIONS[0], "label": TEXT}, {**OPTIONS[1], "description": TEXT}])
    got = ask(scene, rest, questions=raw, context=TEXT)
    shown = rest("GET", f"/clarification/{got.body['pending_id']}").body
    asked = shown["questions"][0]
    assert (shown["context"], asked["prompt"], asked["title"]) == (TEXT, TEXT, TEXT)
    assert (asked["options"][0]["label"], asked["options"][1]["description"]) == (TEXT, TEXT)
    listed = rest("GET", "/clarifications").body["bundles"][0]
    assert listed["questions"][0]["prompt"] == TEXT


@pytest.mark.scenario("B2")
@pytest.mark.parametrize("names", [{"id": "a", "question_id": "a"}, {"id": " a", "question_id": "a "}, {"id": None}])
def test_an_id_given_twice_in_the_same_words_is_one(scene: Stage, rest: Rest, names: dict[str, Any]) -> None:
    asked = [{**one()[0], "question_id": "a", **names}]
    assert ask(scene, rest, questions=asked).status == 201
    assert Message.objects.questions().get().metadata["question_id"] == "a"
