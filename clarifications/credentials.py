"""Calls that wait end when their caller may no longer wait, within the bound that holds for sockets (B15, H6): when
the credential dies, and when a person loses the sight of the task.
"""

import uuid
from collections.abc import Callable

from clarifications.errors import UnknownClarification
from tasks.errors import KandevError, Unauthorized
from tasks.hub import Key
from tasks.models import Token
from tasks.principals import Principal
from tasks.socketauth import Caller
from tasks.socketwatch import Watch

watch = Watch()
NOTHING: frozenset[Key] = frozenset()


class Watched:
    """A call as the watch sees it. Of a token's caller only the token's number is kept, for there may be ten thousand:
    the watch reads the token anew each time. `end` is called once the call may not wait any more; `why` says why.

    An agent's token lives and dies with its session, so that only a person needs `task_id`.
    """

    __slots__ = ("_caller", "_end", "_token_id", "followed", "why")

    def __init__(self, caller: Caller, end: Callable[[], object], task_id: uuid.UUID | None = None) -> None:
        token = caller.principal.token
        self._token_id = token.pk if token is not None else None
        self._caller = None if token is not None else caller
        self._end = end
        self.followed = frozenset({Key("task", task_id)}) if task_id is not None else NOTHING
        self.why: KandevError | None = None

    @property
    def caller(self) -> Caller:
        return self._caller or Caller(Principal(token=Token(pk=self._token_id)))

    @caller.setter
    def caller(self, caller: Caller) -> None:
        """As it is now: nothing of it counts but that it lives."""

    def push_text(self, text: str) -> None:
        """There is nothing to tell but the end."""

    def close(self, code: int) -> None:
        self._over(Unauthorized())

    def unfollow(self, key: Key) -> None:
        """The task is out of sight: for this caller the question does not exist (H1)."""
        self.followed = NOTHING
        self._over(UnknownClarification())

    def _over(self, why: KandevError) -> None:
        self.why = why
        self._end()
