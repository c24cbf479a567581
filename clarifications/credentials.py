"""Calls that wait end when the credential that they came with dies, within the bound that holds for sockets (B15)."""

from collections.abc import Callable

from tasks.hub import Key
from tasks.models import Token
from tasks.principals import Principal
from tasks.socketauth import Caller
from tasks.socketwatch import Watch

watch = Watch()


class Watched:
    """A call as the watch sees it; it follows nothing. Of a token's caller only the token's number is kept, for there
    may be ten thousand: the watch reads the token anew each time. `end` is called once the credential is dead.
    """

    __slots__ = ("_caller", "_end", "_token_id", "is_dead")

    def __init__(self, caller: Caller, end: Callable[[], object]) -> None:
        token = caller.principal.token
        self._token_id = token.pk if token is not None else None
        self._caller = None if token is not None else caller
        self._end = end
        self.is_dead = False

    @property
    def caller(self) -> Caller:
        return self._caller or Caller(Principal(token=Token(pk=self._token_id)))

    @caller.setter
    def caller(self, caller: Caller) -> None:
        """As it is now: nothing of it counts but that it lives."""

    @property
    def followed(self) -> set[Key]:
        return set()

    def push_text(self, text: str) -> None:
        """There is nothing to tell: only the credential is looked after."""

    def close(self, code: int) -> None:
        self.is_dead = True
        self._end()

    def unfollow(self, key: Key) -> None:
        """It follows nothing."""
