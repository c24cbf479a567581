"""Adds `wait`, which no view of Django serves, to the OpenAPI document: what `clarifications.api.wait` does."""

from typing import Any

from clarifications.api import wait

BUNDLE = "/api/v1/clarification/{pending_id}"
DESCRIPTION = (
    "Agent side: holds the connection until the request's wait ends. 200 with the response after durable confirmation, "
    "else 504 with the reason and never a choice. Asked again after a lost connection it goes on with the wait."
)
TIMEOUT = {
    "in": "query",
    "name": "timeout_s",
    "schema": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": wait.MAX_TIMEOUT_S - 1},
    "description": "Bounds the wait, in seconds; the server's own bound holds as well.",
}
ENDED = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "code": {"type": "string", "enum": sorted(wait.SENTENCES)}},
    "required": ["code", "error"],
}
ERRORS = {"400": "Invalid", "403": "Forbidden"}


def add_wait(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular, after the views: callers, path and common errors are those of reading the bundle."""
    read = result["paths"].get(BUNDLE, {}).get("get")
    if read is None:
        return result
    result["components"]["schemas"]["WaitEndedError"] = ENDED
    refs = {"200": "ResponseOut", "504": "WaitEndedError", **{key: f"{name}Error" for key, name in ERRORS.items()}}
    answers = {**{key: answer for key, answer in read["responses"].items() if key != "200"}, **_answers(refs)}
    operation = {
        **read,
        "operationId": "clarification_wait",
        "description": DESCRIPTION,
        "parameters": [*read["parameters"], TIMEOUT],
        "responses": dict(sorted(answers.items())),
    }
    result["paths"][f"{BUNDLE}/wait"] = {"get": operation}
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


def _answers(refs: dict[str, str]) -> dict[str, Any]:
    return {
        status: {
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}},
            "description": "",
        }
        for status, name in refs.items()
    }
