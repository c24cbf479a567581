"""What models and broken clients send: an error names field and shape, nothing is stored, the next call works."""

import json
from typing import Any

import pytest

from tests.mcp.scenes import ANSWER, ASK, LIST, Scene, message, post, questions, result_of, tool_call

DEEP = 70


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def changed(**over: Any) -> dict[str, Any]:
    """Arguments with one question that has something else in it."""
    return {"questions": [{**questions()[0], **over}]}


def option(**over: Any) -> list[dict[str, Any]]:
    first, *rest = questions()[0]["options"]
    return [{**first, **over}, *rest]


FAULTS: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "questions"),
    "a JSON text": ({"questions": json.dumps(questions())}, "questions"),
    "another name": ({"question": questions()}, "question"),
    "arguments as a text": (json.dumps({"questions": questions()}), "arguments"),
    "arguments as a list": ([1], "arguments"),
    "an object": ({"questions": questions()[0]}, "questions"),
    "null": ({"questions": None}, "questions"),
    "no question": ({"questions": []}, "questions"),
    "five questions": ({"questions": questions(5)}, "questions"),
    "a question that is a text": ({"questions": ["Which?"]}, "questions.0"),
    "an extra argument": ({"questions": questions(), "timeout": 5}, "timeout"),
    "an extra key of a question": (changed(multiSelect=True), "questions.0.multiSelect"),
    "an extra key of an option": (changed(options=option(value=1)), "questions.0.options.0.value"),
    "an empty prompt": (changed(prompt=" "), "questions.0.prompt"),
    "one option": (changed(options=questions()[0]["options"][:1]), "questions.0.options"),
    "an option without description": (changed(options=option(description=None)), "questions.0.options.0.description"),
    "NUL": (changed(prompt="a\0b"), "questions.0.prompt"),
    "a lone surrogate": (changed(prompt="a\ud800b"), "questions.0.prompt"),
    "a lone surrogate in a key": ({"questions": questions(), "a\ud800": 1}, "non_field_errors"),
    "NaN": (changed(title=float("nan")), "questions.0.title"),
    "infinity": ({"questions": questions(), "context": float("inf")}, "context"),
    "a huge number": (changed(title=10**30), "questions.0.title"),
    "thousands of digits": ("THOUSANDS", "questions.0.title"),
    "nesting": (changed(title=nested(DEEP)), "questions.0.title"),
    "nesting beyond any stack": ("BEYOND", "questions.0.title"),
    "paragraphs that are a text": ({"questions": questions(), "context_paragraphs": "why"}, "context_paragraphs"),
    "paragraphs that are numbers": ({"questions": questions(), "context_paragraphs": [1]}, "context_paragraphs"),
}
SPELLED = {"THOUSANDS": b"9" * 5000, "BEYOND": b"[" * 20_000 + b"]" * 20_000}


def body_of(arguments: Any) -> bytes:
    """Python cannot write every JSON that it is sent."""
    if arguments in ("THOUSANDS", "BEYOND"):
        return json.dumps(tool_call(ASK, changed(title="HERE"))).encode().replace(b'"HERE"', SPELLED[arguments])
    return json.dumps(tool_call(ASK, arguments)).encode()


@pytest.mark.scenario("B2")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_ask_is_explained_and_stores_nothing(scene: Scene, fault: str) -> None:
    arguments, field = FAULTS[fault]
    got = post(scene.url(), scene.token, body_of(arguments))
    assert got.status_code == 200, got.text
    result = got.json()["result"]
    assert result["isError"], result
    text = result["content"][0]["text"]
    assert f"- {field}" in text, text
    assert '"questions": [{"prompt"' in text
    assert any(name.startswith(field) for name in result["structuredContent"]["fields"])
    assert scene.pending() == []
    assert post(scene.url(), scene.token, message("ping")).status_code == 200


@pytest.mark.scenario("B7")
def test_a_question_in_an_ended_session_is_refused_and_not_stored(scene: Scene) -> None:
    scene.rest().post(f"/task-sessions/{scene.session}/complete")
    result = result_of(post(scene.url(), scene.token, tool_call(ASK, {"questions": questions()})))
    assert result["isError"]
    assert result["structuredContent"]["code"] == "session_unavailable"
    assert scene.pending() == []


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"", 400, -32700),
        (b"{", 400, -32700),
        (b"\xff", 400, -32700),
        (b"[" * 20_000, 400, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', 400, -32700),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1,"a":1}}}',
            400,
            -32700,
        ),
        (b"[]", 400, -32600),
        (b"3", 400, -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing/such"}', 200, -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other_tool"}}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', 200, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', 400, -32600),
    ],
)
def test_what_is_no_proper_message_is_a_protocol_error(scene: Scene, raw: bytes, status: int, code: int) -> None:
    got = post(scene.url(), scene.token, raw)
    assert (got.status_code, got.json()["error"]["code"]) == (status, code)


def test_neither_surface_knows_the_tools_of_the_other(scene: Scene) -> None:
    for url, token, tool in (
        (scene.url(), scene.token, LIST),
        (scene.url(), scene.token, ANSWER),
        (scene.url("/mcp"), scene.product.tokens["owner"], ASK),
    ):
        assert "Unknown tool" in post(url, token, tool_call(tool, {})).json()["error"]["message"]


def test_a_body_over_one_mebibyte_is_refused(scene: Scene) -> None:
    got = post(scene.url(), scene.token, tool_call(ASK, {"context": "x" * (1 << 20)}))
    assert (got.status_code, got.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content_Type": "text/plain"}, 415),
        ({"Accept": "application/json"}, 406),
        ({"Accept": "*/*"}, 200),
        ({"Content_Type": "application/json; charset=utf-8"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:4321"}, 200),
        ({"MCP_Protocol_Version": "2025-03-26"}, 200),
        ({"MCP_Protocol_Version": "1999-01-01"}, 400),
    ],
)
def test_the_head_of_a_request_is_judged(scene: Scene, headers: dict[str, str], status: int) -> None:
    assert post(scene.url(), scene.token, message("ping"), **headers).status_code == status
