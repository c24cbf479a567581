"""The outside history of a run, and what must hold of it. Nothing here looks into the database."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kandev.torture.rest import LOST, Told

MARK = re.compile(r"mark-[0-9a-f]{12}")
NEVER = {409, 404, 429}


@dataclass
class Answer:
    """One try to answer a request; `mark` is in its text."""

    mark: str
    pending_id: str
    session: str
    rejects: bool
    told: Told

    @property
    def won(self) -> bool:
        return self.told.status == 200 and bool(self.told.body.get("claimed"))

    @property
    def lost(self) -> bool:
        return self.told.status == 200 and not self.told.body.get("claimed")

    @property
    def shown(self) -> set[str]:
        return set(MARK.findall(str(self.told.body.get("response"))))


@dataclass
class Message:
    """One ordinary message; `told` is what its last try heard."""

    mark: str
    session: str
    told: Told = field(default_factory=lambda: Told(LOST, {}))


@dataclass
class Receipt:
    """The agent got a text: as the live answer of a request, as a prompt, or as a fallback."""

    mark: str
    how: str
    session: str


class History:
    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.messages: list[Message] = []
        self.receipts: list[Receipt] = []
        self.ended: set[str] = set()
        self.shown: dict[str, dict[tuple[int, int], set[Any]]] = defaultdict(lambda: defaultdict(set))
        self.kept: dict[str, tuple[tuple[int, int], Any]] = {}

    def prompt(self, frame: dict[str, Any]) -> None:
        how = "fallback" if frame.get("replaces") else "prompt"
        for mark in dict.fromkeys(MARK.findall(frame["prompt"])):
            self.receipts.append(Receipt(mark, how, frame["session_id"]))

    def live(self, text: str, session: str) -> None:
        for mark in dict.fromkeys(MARK.findall(text)):
            self.receipts.append(Receipt(mark, "live", session))

    def projection(self, session: str, revision: dict[str, Any], action: Any) -> None:
        """A client keeps the greater (epoch, sequence) and drops the rest."""
        stamp = int(revision["epoch"]), int(revision["sequence"])
        self.shown[session][stamp].add(action)
        if session not in self.kept or self.kept[session][0] <= stamp:
            self.kept[session] = stamp, action

    # --- judgement

    def violations(self) -> list[str]:
        return [
            *self.winners(),
            *self._answers(),
            *self._losers(),
            *self._bundles(),
            *self._messages(),
            *self._pages(),
        ]

    def count(self, mark: str) -> tuple[int, int]:
        """(as an answer or prompt, as a fallback)."""
        mine = [receipt.how for receipt in self.receipts if receipt.mark == mark]
        return len(mine) - mine.count("fallback"), mine.count("fallback")

    def winners(self) -> list[str]:
        """Requests with more than one; nothing that happens later can mend one of these."""
        by_bundle: dict[str, list[Answer]] = defaultdict(list)
        for answer in self.answers:
            if answer.won:
                by_bundle[answer.pending_id].append(answer)
        return [
            f"request {pending_id} has {len(won)} winners: {[answer.mark for answer in won]}"
            for pending_id, won in by_bundle.items()
            if len(won) > 1
        ]

    def _answers(self) -> Iterator[str]:
        for answer in self.answers:
            direct, fallback = self.count(answer.mark)
            told = f"{answer.mark} ({answer.pending_id}, {answer.told.status} {answer.told.code})"
            if direct > 1 or fallback > 1:
                yield f"{told} was received {direct} times and {fallback} times as fallback"
            if answer.rejects:
                continue
            acknowledged = answer.won or answer.told.code == "dispatch_accepted_unpublished"
            if acknowledged and direct + fallback == 0 and answer.session not in self.ended:
                yield f"{told} was acknowledged and never received"
            if self._surely_not(answer) and direct + fallback:
                yield f"{told} was refused or lost, and received"

    @staticmethod
    def _surely_not(answer: Answer) -> bool:
        refused = answer.told.status in NEVER or (answer.told.status == 503 and answer.told.body.get("retryable"))
        return refused or (answer.lost and answer.mark not in answer.shown)

    def _losers(self) -> Iterator[str]:
        winner = {answer.pending_id: answer for answer in self.answers if answer.won}
        for answer in self.answers:
            if not answer.lost or answer.told.body.get("delivery") != "delivered":
                continue
            won = winner.get(answer.pending_id)
            # A replayed rejection has no reason.
            if won is not None and answer.shown != (set() if won.rejects else won.shown):
                yield f"{answer.mark} lost to {won.mark} and was shown {answer.shown}"

    def _bundles(self) -> Iterator[str]:
        received: dict[str, set[str]] = defaultdict(set)
        for answer in self.answers:
            if sum(self.count(answer.mark)):
                received[answer.pending_id].add(answer.mark)
        for pending_id, marks in received.items():
            if len(marks) > 1:
                yield f"the agent received several answers to {pending_id}: {sorted(marks)}"

    def _messages(self) -> Iterator[str]:
        for message in self.messages:
            direct, _ = self.count(message.mark)
            told = f"message {message.mark} ({message.told.status} {message.told.code})"
            if direct > 1:
                yield f"{told} was received {direct} times"
            if message.told.status in (200, 201) and not direct and message.session not in self.ended:
                yield f"{told} was taken and never received"
            if message.told.status in NEVER and message.told.code != "in_progress" and direct:
                yield f"{told} was refused and received"

    def _pages(self) -> Iterator[str]:
        for session, stamps in self.shown.items():
            for stamp, actions in stamps.items():
                if len(actions) > 1:
                    yield f"session {session} was shown {actions} under one revision {stamp}"

    def unreceived(self, pending_id: str, bundle: dict[str, Any]) -> list[str]:
        """The answers of a bundle that stands as answered and that never reached its agent."""
        marks = set(MARK.findall(str([question.get("response") for question in bundle.get("questions", [])])))
        lost = [mark for mark in marks if not sum(self.count(mark))]
        return [f"request {pending_id} stands as answered with {mark}, which was never received" for mark in lost]

    def stale(self, session: str, revision: dict[str, Any], action: Any) -> str | None:
        """After the quiet: what a socket's client kept must be what REST says."""
        if session not in self.kept:
            return None
        stamp = int(revision["epoch"]), int(revision["sequence"])
        kept, shown = self.kept[session]
        if kept <= stamp and shown == action:
            return None
        return f"session {session}: a page keeps {shown} {kept}, REST says {action} {stamp}"
