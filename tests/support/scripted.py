"""A runner inside the test's process: it acts on the database the way a runner's socket does.

`on_dispatch`, `on_revoke` and `on_cancel` say what it does with such a frame; by default it takes, revokes and cancels
as a good runner would. Everything that it was sent stands in `frames`.
"""

import threading
import uuid
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.utils import timezone

from tasks import hints
from tests.support.waiting import until
from turns import hello, incoming, outgoing, runners, settling
from turns.hello import Hello
from turns.models import DispatchState

Frame = dict[str, Any]
Reaction = Callable[[Frame], object]


class ScriptedRunner:
    """`start` connects it and lets it react in a thread of its own; unstarted, a test takes frames by hand."""

    def __init__(
        self, runner_id: str = "runner-1", agents: tuple[str, ...] = ("demo",), max_sessions: int = 50
    ) -> None:
        self.runner_id, self.agents, self.max_sessions = runner_id, list(agents), max_sessions
        self.connection_id = uuid.uuid4()
        self.frames: list[Frame] = []
        self.on_dispatch: Reaction = self.accept
        self.on_revoke: Reaction = self.revoked
        self.on_cancel: Reaction = self.cancelled
        self._wake, self._over, self._taking = threading.Event(), threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None

    def connect(self, journal: dict[uuid.UUID, str] | None = None) -> None:
        """Says hello on a new connection; `journal` settles what it lists."""
        self.connection_id = uuid.uuid4()
        said = Hello(self.runner_id, "test", self.agents, self.max_sessions, journal or {})
        assert hello.connect(None, said, self.connection_id)
        hello.settle(said)

    def disconnect(self) -> None:
        assert runners.disconnect(self.runner_id, self.connection_id)

    def start(self) -> "ScriptedRunner":
        self.connect()
        hints.listen(f"runner:{self.runner_id}", self._wake.set)
        self._thread = threading.Thread(target=self._run, name=self.runner_id)
        self._thread.start()
        return self

    def stop(self) -> None:
        self._over.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(20)
            hints.unlisten(f"runner:{self.runner_id}", self._wake.set)

    def take(self) -> list[Frame]:
        """The frames that it is owed now; they are recorded, nothing is done about them."""
        with self._taking:  # what its own thread takes at this moment is recorded before anybody looks
            taken = outgoing.take(self.runner_id, self.connection_id, timezone.now())
            self.frames += taken
        return taken

    def got(self, kind: str) -> list[Frame]:
        return [frame for frame in list(self.frames) if frame["type"] == kind]

    def expect(self, kind: str, number: int = 1) -> Frame:
        """The n-th frame of that kind, once it came."""
        return until(lambda: self.got(kind)[number - 1 : number], what=f"{kind} number {number}")[0]

    def accept(self, frame: Frame) -> bool:
        return settling.accept(uuid.UUID(frame["dispatch_id"]), self.runner_id)

    def reject(self, frame: Frame, code: str = "busy", reason: str = "not now") -> bool:
        return settling.refuse(uuid.UUID(frame["dispatch_id"]), self.runner_id, DispatchState.REJECTED, code, reason)

    def revoked(self, frame: Frame) -> bool:
        dispatch = uuid.UUID(frame["dispatch_id"])
        return settling.refuse(dispatch, self.runner_id, DispatchState.REVOKED, "revoked", "revoked")

    def cancelled(self, frame: Frame) -> None:
        self.say("cancelled", frame)

    def say(self, kind: str, frame: Frame, /, **more: Any) -> None:
        """A frame about the execution that `frame` (a dispatch or a cancel) names."""
        named = {key: frame[key] for key in ("session_id", "execution_id", "prompt_generation")}
        incoming.handle(self.runner_id, {"type": kind, **named, **more})

    @staticmethod
    def ignore(frame: Frame) -> None:
        """Silence."""

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self._wake.clear()
                for frame in self.take():
                    self._react(frame)
                self._wake.wait(0.2)
        finally:
            connection.close()

    def _react(self, frame: Frame) -> None:
        reactions = {"dispatch": self.on_dispatch, "revoke": self.on_revoke, "cancel": self.on_cancel}
        reactions.get(frame["type"], self.ignore)(frame)
