"""Frames of a runner that name no prompt (H5, K1)."""

from collections.abc import Callable

import pytest

from tests.support.climbing import Stage
from turns.models import Message

OPTIONS = [{"option_id": "o", "name": "Allow", "kind": "allow_once"}]


@pytest.mark.scenario("H5", "K1")
@pytest.mark.parametrize("kind", ["frame", "ready", "failed", "permission"])
@pytest.mark.parametrize("spelt", [str, float, lambda number: number + 0.9, lambda _: True, lambda _: 2**70])
def test_a_generation_is_a_whole_number_and_anything_else_names_no_prompt(
    running_session: Stage, kind: str, spelt: Callable[[int], object]
) -> None:
    stage = running_session
    named = {**stage.dispatched, "prompt_generation": spelt(stage.dispatched["prompt_generation"])}
    rows = Message.objects.filter(session=stage.session).count()
    stage.runner.say(kind, named, kind="message", content="x", request_id="r", title="t", options=OPTIONS)
    assert Message.objects.filter(session=stage.session).count() == rows
    assert stage.turn.completed_at is None
    stage.ready()  # the control: the number itself does
    assert stage.turn.completed_at is not None
