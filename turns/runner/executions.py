"""What the server's frames do on this runner: take, refuse, revoke, cancel, stop. Each dispatch runs at most once."""

import asyncio
import logging
from collections.abc import Callable

from turns.runner import frames
from turns.runner.frames import Dispatch, Frame, FrameError, PromptKey
from turns.runner.journal import Journal
from turns.runner.outbox import Outbox
from turns.runner.requests import Requests
from turns.runner.sessions import Setup, TaskSession, Why

log = logging.getLogger("kandev.runner")


class Executions:
    """`handle` never awaits: a frame is journaled and answered before the next one is read. So whenever the socket is
    lost, nothing is read and undecided."""

    def __init__(self, setup: Setup, journal: Journal, outbox: Outbox) -> None:
        self._setup, self._journal, self._outbox = setup, journal, outbox
        self._requests = Requests(outbox)
        self._sessions: dict[str, TaskSession] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._actions: dict[str, Callable[[Frame], None]] = {
            "dispatch": self._dispatch,
            "revoke": self._revoke,
            "cancel": self._cancel,
            "stop": self._stop,
            "permission_answer": self._requests.answer,
        }

    def recover(self) -> None:
        """Ends what an earlier process took and never ended, for its agents died with it. Comes before connecting."""
        for dispatch_id, key in self._journal.interrupted():
            ending = key.frame("failed", error="the runner was restarted during this prompt", fatal=False)
            self._journal.finish(dispatch_id, ending)

    def handle(self, frame: Frame) -> None:
        """Acts on one frame; unknown types are left for newer runners, malformed ones are logged."""
        action = self._actions.get(str(frame.get("type")))
        if action is None:
            log.debug("a frame of unknown type was ignored")
            return
        try:
            action(frame)
        except FrameError as error:
            log.warning("a malformed `%s` frame was ignored: %s", frame.get("type"), error)

    def _dispatch(self, frame: Frame) -> None:
        dispatch_id = frames.text(frame, "dispatch_id")
        if self._journal.entry(dispatch_id) is None:
            try:
                self._decide(frames.dispatch(frame))
            except FrameError as error:
                self._journal.reject(dispatch_id, "malformed", str(error))
        self._answer(dispatch_id)

    def _decide(self, dispatch: Dispatch) -> None:
        if refusal := self._refusal(dispatch):
            self._journal.reject(dispatch.dispatch_id, *refusal)
        elif self._journal.accept(dispatch.dispatch_id, dispatch.key):
            self._start(dispatch)

    def _refusal(self, dispatch: Dispatch) -> tuple[str, str] | None:
        """The code and reason to reject a dispatch for, or None."""
        if dispatch.agent not in self._setup.agents:
            return "unknown_agent", f"this runner offers no agent named {dispatch.agent!r}"
        if dispatch.replaces and self._journal.has_received(dispatch.replaces):
            return "already_received", "the prompt to be replaced has already taken the answer"
        others = sum(session.busy for name, session in self._sessions.items() if name != dispatch.key.session_id)
        if others >= self._setup.max_sessions:
            return "busy", f"this runner already runs {others} sessions"
        return None

    def _answer(self, dispatch_id: str) -> None:
        """Says what the journal says, so a dispatch that is sent again hears the same again."""
        entry = self._journal.entry(dispatch_id)
        if entry is None:
            return
        if entry.outcome == "rejected":
            why = {"code": entry.code, "reason": entry.reason}
            self._outbox.reply({"type": "rejected", "dispatch_id": dispatch_id, **why})
        else:
            known = "revoked" if entry.outcome == "revoked" else "accepted"
            self._outbox.reply({"type": known, "dispatch_id": dispatch_id})

    def _start(self, dispatch: Dispatch) -> None:
        name = dispatch.key.session_id
        known = self._sessions.pop(name, None)
        session = known or TaskSession(name, self._setup, self._journal, self._outbox, self._requests)
        self._make_room()
        self._sessions[name] = session
        session.start(dispatch)

    def _make_room(self) -> None:
        """Agents that wait for a next prompt give way to one that has a prompt, the longest idle first."""
        idle = [session for session in self._sessions.values() if not session.busy]
        for session in idle[: max(0, len(self._sessions) + 1 - self._setup.max_sessions)]:
            self._end(session, "cancel")

    def _end(self, session: TaskSession, why: Why) -> None:
        self._sessions.pop(session.session_id, None)
        task = asyncio.create_task(session.close(why))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _revoke(self, frame: Frame) -> None:
        dispatch_id = frames.text(frame, "dispatch_id")
        self._outbox.reply({"type": self._journal.revoke(dispatch_id), "dispatch_id": dispatch_id})

    def _cancel(self, frame: Frame) -> None:
        """`cancelled` follows when the prompt has ended, at once for one that does not run here (any more)."""
        key = frames.prompt_key(frame)
        session = self._sessions.get(key.session_id)
        prompt = session.prompt if session and session.busy else None
        if prompt and matches(key, prompt.dispatch.key):
            prompt.stop("cancel")
        else:
            self._outbox.reply(key.frame("cancelled"))

    def _stop(self, frame: Frame) -> None:
        if session := self._sessions.get(frames.text(frame, "session_id")):
            self._end(session, "cancel")

    async def close(self) -> None:
        """Ends all prompts and agent processes; their endings are journaled for the next connection."""
        for session in list(self._sessions.values()):
            self._end(session, "shutdown")
        while self._closing:
            await asyncio.wait(self._closing)


def matches(wanted: PromptKey, key: PromptKey) -> bool:
    """A cancel without a generation means whatever that execution runs."""
    same = wanted.execution_id == key.execution_id
    return same and wanted.prompt_generation in (None, key.prompt_generation)
