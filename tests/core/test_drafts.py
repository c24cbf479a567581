"""A draft goes with the answer of its person, and only then."""

from typing import Any

import pytest

from clarifications import drafting
from clarifications.models import Draft
from tasks.principals import Principal
from tests.support.climbing import SKIP, Question, answers


@pytest.mark.parametrize("said", [answers(), SKIP], ids=["answer", "skip"])
def test_the_winner_s_draft_goes_and_another_person_s_stays(detached_: Question, said: dict[str, Any]) -> None:
    person, owner = detached_.stage.person, Principal(user=detached_.stage.workspace.owner)
    for one in (person, owner):
        drafting.save(one, detached_.pending_id, {"answers": [{"question_id": "q1", "custom_text": "hm"}]})
    assert detached_.respond(said).short == (200, True)
    assert list(Draft.objects.values_list("user", flat=True)) == [owner.user and owner.user.pk]


def test_a_refused_hand_over_keeps_the_draft(detached_: Question) -> None:
    stage = detached_.stage
    drafting.save(stage.person, detached_.pending_id, {"answers": [{"question_id": "q1", "custom_text": "hm"}]})
    stage.runner.on_dispatch = stage.runner.reject
    assert detached_.respond().short == (503, "delivery_failed")
    assert Draft.objects.count() == 1
