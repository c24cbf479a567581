"""A scripted runner with a journal that keeps to the protocol: it runs an id at most once, answers `revoke` by what it
has written down, and its words are handled the way the server's socket handles them (tried again while the database is
away).
"""

import threading
import uuid
from collections.abc import Callable

from django.db import OperationalError

from tests.support.climbing import Stage
from tests.support.scripted import Frame, ScriptedRunner
from turns import incoming, settling
from turns.models import DispatchState, RunnerFrame


class SteadyRunner(ScriptedRunner):
    """`taken` holds every prompt that it runs, once each; `refuses` makes it reject."""

    def __init__(self) -> None:
        super().__init__()
        self.journal: dict[str, str] = {}
        self.taken: list[Frame] = []
        self.refuses = False
        self.busy = threading.Lock()
        self.on_dispatch, self.on_revoke = self._dispatch, self._revoke

    def pending(self) -> bool:
        """Whether it has not yet done everything that it was told."""
        if RunnerFrame.objects.filter(runner_id=self.runner_id, sent_at__isnull=True).exists():
            return True
        with self.busy:
            return False

    def entries(self) -> dict[uuid.UUID, str]:
        return {uuid.UUID(pk): outcome for pk, outcome in self.journal.items()}

    def talk(self, text: str = "I go on", kind: str = "message") -> None:
        """A frame of the prompt that it took last."""
        named = {key: self.taken[-1][key] for key in ("session_id", "execution_id", "prompt_generation")}
        incoming.handle(self.runner_id, {"type": "frame", **named, "kind": kind, "content": text, "data": {}})

    def _react(self, frame: Frame) -> None:
        with self.busy:
            super()._react(frame)

    def _dispatch(self, frame: Frame) -> None:
        pk = frame["dispatch_id"]
        if pk not in self.journal:
            self.journal[pk] = "rejected" if self.refuses else "accepted"
            self.taken += [] if self.refuses else [frame]
        self._say(pk)

    def _revoke(self, frame: Frame) -> None:
        self.journal.setdefault(frame["dispatch_id"], "revoked")
        self._say(frame["dispatch_id"])

    def _say(self, pk: str) -> None:
        outcome, dispatch = self.journal[pk], uuid.UUID(pk)
        if outcome == "accepted":
            self._patiently(lambda: settling.accept(dispatch, self.runner_id))
        else:
            state = DispatchState(outcome)
            self._patiently(lambda: settling.refuse(dispatch, self.runner_id, state, outcome, outcome))

    @staticmethod
    def _patiently(work: Callable[[], object]) -> None:
        for _ in range(3):
            try:
                work()
            except OperationalError:
                continue
            return


def runner_of(stage: Stage) -> SteadyRunner:
    assert isinstance(stage.runner, SteadyRunner)
    return stage.runner


def prompted(stage: Stage, text: str) -> int:
    return sum(text in frame["prompt"] for frame in runner_of(stage).taken)
