"""What a body or an address may hold: the same verdict on both databases, and never a 500 (B03, B30-B32)."""

import json
import uuid
from typing import Any

import pytest

from tests.tasks.conftest import Scene

DEEP = 20_000


def body(scene: Scene, **more: Any) -> dict[str, Any]:
    return {"workspace": str(scene.workspace.pk), "title": "t", **more}


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x\udfff"])
@pytest.mark.parametrize("field", ["title", "description", "agent", "prompt", "unknown"])
def test_a_nul_or_lone_surrogate_is_a_400_that_names_its_field(scene: Scene, field: str, text: str) -> None:
    got = scene["owner"]("POST", "/tasks", body(scene, **{field: text}))
    assert got.status_code == 400
    assert list(got.json()["fields"]) == [field]  # type: ignore[attr-defined]


def test_a_nul_in_a_key_or_deep_inside_is_a_400(scene: Scene) -> None:
    for bad in ({"a\0": 1}, {"extra": {"b": ["\0"]}}, {"extra": {"\ud800": 1}}):
        got = scene["owner"]("POST", "/tasks", body(scene, **bad))
        assert got.status_code == 400
        assert "\0" not in got.content.decode()


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 30, "9" * 5000])
def test_numbers_that_cannot_be_stored_are_a_400(scene: Scene, literal: str) -> None:
    raw = json.dumps(body(scene))[:-1] + f', "extra": {literal}}}'
    got = scene["owner"]("POST", "/tasks", raw.encode())
    assert got.status_code == 400
    assert got.json()["fields"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "raw", [b"[" * DEEP, b'{"a":' * DEEP, b"{", b"", b"\xff", b"\xef\xbb\xbf{}", b"{'a': 1}", b"{}{}"]
)
def test_a_body_that_is_no_json_is_a_400(scene: Scene, raw: bytes) -> None:
    got = scene["owner"]("POST", "/tasks", raw or b" ")
    assert got.status_code == 400
    assert got.json()["fields"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("more", "field"),
    [('"title": "u"', "title"), ('"extra": {"a": 1, "a": 1}', "a"), ('"title\\u0000": 1, "title\\u0000": 2', "title")],
)
def test_a_key_that_is_given_twice_is_a_400(scene: Scene, more: str, field: str) -> None:
    got = scene["owner"]("POST", "/tasks", (json.dumps(body(scene))[:-1] + f", {more}}}").encode())
    assert (got.status_code, list(got.json()["fields"])) == (400, [field])  # type: ignore[attr-defined]


def test_64_levels_pass_and_65_do_not(scene: Scene) -> None:
    for levels, status in ((63, 201), (64, 400)):
        nested = json.loads("[" * levels + "]" * levels)
        assert scene["owner"]("POST", "/tasks", body(scene, extra=nested)).status_code == status, levels


def test_brackets_inside_a_text_are_no_levels(scene: Scene) -> None:
    assert scene["owner"]("POST", "/tasks", body(scene, description='[\\"{' * 100)).status_code == 201


def test_a_body_over_one_mebibyte_is_a_413(scene: Scene) -> None:
    got = scene["owner"]("POST", "/tasks", body(scene, description="x" * (1 << 20)))
    assert (got.status_code, got.json()["code"]) == (413, "too_large")  # type: ignore[attr-defined]


def test_text_of_any_script_comes_back_as_it_was(scene: Scene) -> None:
    text = "Grüße 🎈 \u202e عربى \u0301 <b>&amp;"
    made = scene["owner"].ok("POST", "/tasks", body(scene, title=text, description=text))
    assert (made["title"], made["description"]) == (text, text)


@pytest.mark.parametrize("pk", ["10" * 30, "-1", str(2**63), "%00", "a%00b", "%FF", "%ED%A0%80", "..", "'", "x" * 2000])
def test_a_strange_id_in_a_path_is_a_404(scene: Scene, pk: str) -> None:
    for path in ("/tasks/{}", "/workspaces/{}/board", "/task-sessions/{}", "/tasks/{}/task-sessions"):
        assert scene["owner"].refused("GET", path.format(pk)) == (404, "not_found")
    assert scene["owner"].refused("POST", f"/task-sessions/{pk}/cancel", {}) == (404, "not_found")


@pytest.mark.parametrize("pk", [5, 10**30, True, None, [], {}, "", "x", "\u0663" * 32, str(uuid.UUID(int=7))[:-1]])
def test_a_strange_id_in_a_body_is_a_400(scene: Scene, pk: Any) -> None:
    got = scene["owner"]("POST", "/tasks", {"workspace": pk, "title": "t"})
    assert got.status_code == 400
