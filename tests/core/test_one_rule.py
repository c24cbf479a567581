"""The rule stands once in the code (A10): a walk over the syntax trees finds every place that orders turns or tests a
question's status for pending, and each must be one of those listed here."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("kandev", "clarifications", "turns", "tasks")
RULE = "turns/querysets.py"

# Places that name the first key of turn order, and why they are no second rule.
ORDERS_TURNS = {
    f"{RULE}:newest_first",
    "turns/models.py:Turn.Meta",  # the index that the rule uses, and the default order
    "turns/api/views.py:get",  # the public list of turns, ascending
    "turns/reserving.py:_start_after_newest",  # the successor's start must sort last; no turn is chosen by it
    "turns/admin.py:TurnAdmin",  # a column of the admin's list
    "turns/shapes.py:turn",  # a key of the wire shape
    "tasks/admin.py:InstanceAdmin",  # the start of a process
    "tasks/admin.py:RateWindowAdmin",  # the start of a window
}
NAMED = ("PENDING", "says_pending")
# Places that look for the status "pending".
TESTS_PENDING = {
    f"{RULE}:PENDING",
    f"{RULE}:open_in_current_turn",
    f"{RULE}:pending",
    "turns/models.py:Message.Meta",  # the index that the rule uses
    "turns/models.py:PENDING_QUESTION",
    "turns/models.py:PENDING_PERMISSION",
    "turns/models.py:says_pending",
    # Written, not looked for.
    "clarifications/questions.py:metadata",
    "clarifications/restoring.py:given_back",
    "turns/permitting.py:_metadata",
    # Shown, not decided: the row's status, and the `delivery` of contract 4.
    "clarifications/shapes.py:DELIVERY",
    "clarifications/shapes.py:question",
    "clarifications/api/schemas.py:OutcomeOut",
    "clarifications/mcp/schemas.py:ANSWER_RESULT",
    # After the rule has said what is active: which rows of that bundle are meant, and how a settled one is called.
    "clarifications/bundles.py:state_of",
    "clarifications/claiming.py:_store",
    "clarifications/claiming.py:_may_come_back",
    "clarifications/closing.py:_whole",
    "clarifications/closing.py:message_deleted",
    "clarifications/late.py:offered",
    "clarifications/overview.py:_open_rows",
    "clarifications/pages/history.py:_state",
    "clarifications/pages/reading.py:open",
}
# Users of the queryset method `pending`: the rule, and a walk along its index whose rows the rule then judges.
WALKS_PENDING = {f"{RULE}:open_in_current_turn", "clarifications/discovering.py:_visible"}
PICKS_LAST = {"latest", "earliest", "last", "reverse", "in_bulk", "raw", "extra"}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for layer in LAYERS:
        for file in sorted((ROOT / layer).rglob("*.py")):
            if "migrations" not in file.parts:
                yield str(file.relative_to(ROOT)), ast.parse(file.read_text(encoding="utf-8"))


def places(path: str, tree: ast.Module, found: "Finder") -> Iterator[str]:
    """`path:function` (or `path:Class`, `path:NAME` outside of functions) of each node that `found` picks."""

    def walk(node: ast.AST, where: str) -> Iterator[str]:
        if found(node):
            yield f"{path}:{where}"
        for child in ast.iter_child_nodes(node):
            yield from walk(child, _name(child, where))

    return walk(tree, "")


class Finder:
    def __call__(self, node: ast.AST) -> bool:
        raise NotImplementedError


class Text(Finder):
    """A string that is one of `texts`, or a name that stands for them."""

    def __init__(self, *texts: str, names: tuple[str, ...] = ()) -> None:
        self.texts, self.names = texts, names

    def __call__(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.names and isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.Attribute):
            return node.attr in self.names
        return isinstance(node, ast.Constant) and node.value in self.texts


class Call(Finder):
    """A call of a queryset method of that name without arguments, or with field names only."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def __call__(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in self.names


def _name(node: ast.AST, where: str) -> str:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name
    if isinstance(node, ast.ClassDef):
        return f"{where}.{node.name}".lstrip(".")
    if isinstance(node, ast.Assign) and not where and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return where


def seen(found: Finder) -> set[str]:
    return {place for path, tree in sources() for place in places(path, tree, found)}


@pytest.mark.once
@pytest.mark.scenario("A10", "A6")
def test_only_the_rule_orders_turns_to_find_the_newest() -> None:
    found = seen(Text("started_at", "-started_at"))
    assert f"{RULE}:newest_first" in found
    assert not found - ORDERS_TURNS
    assert seen(Call(PICKS_LAST)) <= {f"{RULE}:current_of"}, seen(Call(PICKS_LAST))


@pytest.mark.once
@pytest.mark.scenario("A10", "A1")
def test_only_the_rule_filters_questions_for_pending() -> None:
    found = seen(Text("pending", names=NAMED))
    assert any(place.startswith(RULE) for place in found)
    assert not found - TESTS_PENDING - PATHS
    assert not seen(Call({"pending"})) - WALKS_PENDING


# `PENDING` of the REST addresses is a documented path parameter.
PATHS = {
    f"clarifications/api/views.py:{name}" for name in ("OneBundle", "Respond", "Cancel", "LateAnswer", "get", "post")
}
CONSUMERS = {
    "projection": "clarifications/hooks.py:question_exists",
    "guard": "clarifications/hooks.py:blocked_since",
    "input_capable": "clarifications/hooks.py:input_capable",
    "discovery": "clarifications/discovering.py:heads",
    "claim": "clarifications/claiming.py:_asked",
    "detach": "clarifications/detaching.py:detach",
    "rejoin": "clarifications/detaching.py:reattach",
    "cancel": "clarifications/closing.py:cancel",
    "expiry": "clarifications/closing.py:expire_session",
    "deletion": "clarifications/closing.py:message_deleted",
    "joining": "clarifications/asking.py:_same",
    "waiting": "clarifications/standing.py:_active",
    "waiter's look": "clarifications/confirming.py:_stands",
    "late answer": "clarifications/late.py:check",
    "state": "clarifications/bundles.py:state_of",
    "permission's projection": "turns/permitting.py:exists",
    "permission's guard": "turns/permitting.py:blocked_since",
    "permission's answer": "turns/permitting.py:_set",
    "permission's end": "turns/permitting.py:turn_over",
    "permission's repeat": "turns/permitting.py:store",
    "permission's deletion": "turns/permitting.py:removing",
}
TURN_CONSUMERS = {
    "restore": "clarifications/restoring.py:restore_locked",
    "confirm": "clarifications/confirming.py:_current",
    "reserve": "clarifications/delivering.py:_may_reserve",
    "attempt": "turns/attempting.py:_source_is_current",
    "busy": "turns/busy.py:turn_open",
    "completion": "turns/completing.py:_judge_session",
    "pause": "turns/pausing.py:cancel_locked",
    "watchdog": "clarifications/watching.py:_begin",
}


@pytest.mark.once
@pytest.mark.scenario("A10")
def test_every_consumer_uses_the_rule() -> None:
    rows = seen(Call({"active", "with_active", "open_in_current_turn"}))
    assert set(CONSUMERS.values()) <= rows, set(CONSUMERS.values()) - rows
    turns = seen(Call({"current_of"}))
    assert set(TURN_CONSUMERS.values()) <= turns, set(TURN_CONSUMERS.values()) - turns


@pytest.mark.once
@pytest.mark.scenario("A10")
@pytest.mark.parametrize(
    "line",
    [
        'Message.objects.filter(status="pending")',
        'Message.objects.filter(metadata__status__in=["", "pending"])',
        "Message.objects.filter(status__in=PENDING)",
        "any(row.says_pending for row in rows)",
        'any(row.metadata.get("status") == "pending" for row in rows)',
    ],
)
def test_a_second_look_for_pending_would_be_found(line: str) -> None:
    tree = ast.parse(f"def sly():\n    return {line}\n")
    assert set(places("x.py", tree, Text("pending", names=NAMED))) == {"x.py:sly"}


@pytest.mark.once
@pytest.mark.scenario("A10")
@pytest.mark.parametrize(
    "line", ['Turn.objects.order_by("-started_at").first()', 'Turn.objects.latest("created_at")', "Turn.objects.last()"]
)
def test_a_second_order_of_turns_would_be_found(line: str) -> None:
    tree = ast.parse(f"def sly():\n    return {line}\n")
    text, call = Text("started_at", "-started_at"), Call(PICKS_LAST)
    assert {*places("x.py", tree, text), *places("x.py", tree, call)} == {"x.py:sly"}
