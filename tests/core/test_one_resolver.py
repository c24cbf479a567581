"""There is one way to answer: one claim, one serializer of a response, and every surface calls the same function.

The code is walked; `test_one_rule` does the same for what is active.
"""

import ast

import pytest

from tests.core.test_one_rule import Call, Finder, places, seen, sources

RESPONSE_KEYS = {"pending_id", "answers", "rejected", "reject_reason", "responded_at"}
ENTRY_KEYS = {"question_id", "selected_options", "custom_text"}
OUTCOME_KEYS = {"success", "claimed", "status", "delivery", "response"}
SURFACES = {
    "clarifications/api/views.py:post",
    "clarifications/mcp/person_tools.py:_respond",
    "clarifications/pages/plain.py:answer",
}
# The form of a page without scripts is a client too: it writes what a caller of REST sends.
FORM = "clarifications/pages/plain.py:_payload"


class Keys(Finder):
    """A dictionary that spells all of `keys`."""

    def __init__(self, keys: set[str]) -> None:
        self.keys = keys

    def __call__(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Dict):
            return False
        return self.keys <= {key.value for key in node.keys if isinstance(key, ast.Constant)}


class Qualified(Finder):
    """A call of `module.name(…)`, or of the manager's method of a model."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and ast.unparse(node.func) in self.names


def product(found: Finder) -> set[str]:
    """Without what acts as a client (demo, benchmarks) and the description of the wire that MCP's tools give."""
    return {place for place in seen(found) if not place.startswith(("kandev/", "clarifications/mcp/schemas.py"))}


@pytest.mark.once
@pytest.mark.scenario("G1", "G5")
def test_one_function_writes_each_part_of_a_response() -> None:
    assert product(Keys(RESPONSE_KEYS)) == {"clarifications/shapes.py:response"}
    assert product(Keys(OUTCOME_KEYS)) == {"clarifications/shapes.py:outcome"}
    written = {"clarifications/shapes.py:_entry", "clarifications/answers.py:_entry"}
    assert product(Keys(ENTRY_KEYS)) - {FORM} == written


@pytest.mark.once
@pytest.mark.scenario("G1")
def test_a_claim_is_made_in_one_place_and_by_one_caller() -> None:
    assert seen(Qualified("Claim.objects.create", "Claim", "Claim.objects.bulk_create")) == {
        "clarifications/claiming.py:_store"
    }
    assert not seen(Qualified("Claim.objects.get_or_create", "Claim.objects.update_or_create"))
    assert product(Qualified("claiming.claim")) == {"clarifications/responding.py:respond"}
    assert product(Qualified("delivering.deliver")) == {"clarifications/responding.py:respond"}


@pytest.mark.once
@pytest.mark.scenario("G1", "H1")
def test_every_surface_answers_through_the_one_resolver() -> None:
    assert product(Qualified("responding.respond")) == SURFACES


@pytest.mark.once
@pytest.mark.scenario("G1")
def test_nothing_else_writes_the_status_of_an_answer() -> None:
    """`answered` and `rejected` are written by the claim; elsewhere the words are read, or describe the wire."""
    written = {place for path, tree in sources() for place in places(path, tree, Stored())}
    assert written <= {"clarifications/claiming.py:_answered"}


class Stored(Finder):
    """A dictionary with `status` beside the marks of a claimed row."""

    def __call__(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Dict) and any(
            isinstance(key, ast.Constant) and key.value == "response_delivery_pending" for key in node.keys
        )


@pytest.mark.once
@pytest.mark.scenario("G1")
@pytest.mark.parametrize(
    ("line", "finder"),
    [
        ("Claim.objects.create(pending_id=1)", Qualified("Claim.objects.create")),
        ("responding.respond(principal, pending_id, body)", Qualified("responding.respond")),
        (str(dict.fromkeys(sorted(RESPONSE_KEYS), 1)), Keys(RESPONSE_KEYS)),
        ("rows.bundle(pending_id).active()", Call({"active"})),
    ],
)
def test_a_second_one_would_be_found(line: str, finder: Finder) -> None:
    tree = ast.parse(f"def sly():\n    return {line}\n")
    assert set(places("x.py", tree, finder)) == {"x.py:sly"}
