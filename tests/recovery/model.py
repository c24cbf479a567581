"""What a question may be, written from the promises and rulings alone: a small model beside the database.

One session and its newest question. A step that the product refuses must be one that the model refuses, and what people
see must be the same after each.
"""

from dataclasses import dataclass


@dataclass
class Model:
    """`question` is none, open, claimed, answered, rejected, cancelled, expired, retired or history; `waits` says who
    waits for it: nobody, the request's own first moment, or a call. `newer`: a later turn than its own is there.
    """

    question: str = "none"
    waits: str = ""
    turn: bool = True
    newer: bool = False
    ended: bool = False

    @property
    def state(self) -> set[str]:
        """As contract 3 names it."""
        if self.question == "open":
            return {"active_live" if self.waits else "active_detached"}
        if self.question == "claimed":
            return {"delivery_claimed"}
        return {"superseded_history"} if self.question == "history" and not self.ended else {"terminal"}

    @property
    def pending_action(self) -> str | None:
        return "clarification" if self.question == "open" else None

    @property
    def busy(self) -> bool:
        """An open turn or an outstanding answer keeps prompts in the queue (rulings, Busy)."""
        return self.turn or self.question == "claimed"

    def ask(self) -> None:
        self.question, self.waits, self.newer = "open", "request", False

    def restore(self) -> None:
        """Pending again; retired when the session has ended or a newer turn is there (R7)."""
        if self.question == "claimed":
            self.question = "retired" if self.ended or self.newer else "open"

    def crash(self) -> None:
        """A call dies with its process, the request's first moment does not (E1, E12)."""
        self.restore()
        self.waits = "" if self.waits == "call" else self.waits

    def end_turn(self) -> None:
        """Whatever ends a turn takes its waiters with it (END_TAKES_LEASE)."""
        self.turn, self.waits = False, ""

    def new_turn(self) -> None:
        """What was pending is history (A2)."""
        self.turn = self.newer = True
        self.question = "history" if self.question == "open" else self.question

    def end_session(self) -> None:
        """Open questions expire; a claim under way is decided by whoever settles it (F3, R7)."""
        self.end_turn()
        self.ended = True
        self.question = "expired" if self.question == "open" else self.question
