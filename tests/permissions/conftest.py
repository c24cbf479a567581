"""A running session whose agent asks for leave, in this process and on the database under test."""

import uuid
from dataclasses import dataclass
from typing import Any

import pytest

from tests.core.conftest import make_stage, runner, running_session, serving, stage
from tests.support.climbing import Outcome, Stage, rest_of
from tests.support.scripted import Frame
from turns.models import Message

__all__ = ["make_stage", "runner", "running_session", "serving", "stage"]

OPTIONS = [
    {"option_id": "yes", "name": "Yes", "kind": "allow_once"},
    {"option_id": "always", "name": "Always", "kind": "allow_always"},
    {"option_id": "no", "name": "No", "kind": "reject_once"},
]


@dataclass
class Request:
    """A permission request that the stage's agent made."""

    stage: Stage
    frame: Frame

    @property
    def row(self) -> Message:
        return Message.objects.get(type="permission_request", metadata__request_id=self.frame["request_id"])

    @property
    def status(self) -> str:
        return str(self.row.status)

    def say(self) -> None:
        """The runner sends it (again)."""
        self.stage.says("permission", **self.frame)

    def answer(self, option_id: Any = "yes", who: str = "person") -> Outcome:
        return rest_of(self.stage, who)("POST", f"/permissions/{self.row.pk}/answer", {"option_id": option_id})

    def told(self) -> list[str | None]:
        """The answers that the runner was sent or is owed, oldest first."""
        self.stage.runner.take()
        frames = self.stage.runner.got("permission_answer")
        return [frame["option_id"] for frame in frames if frame["request_id"] == self.frame["request_id"]]


def ask(stage: Stage, **over: Any) -> Request:
    """The agent asks for leave in the running prompt."""
    said = {"title": "Delete the old backups", "tool": {"kind": "delete"}, "options": OPTIONS}
    request = Request(stage, {"request_id": str(uuid.uuid4()), **said, **over})
    request.say()
    return request


@pytest.fixture
def request_(running_session: Stage) -> Request:
    return ask(running_session)
