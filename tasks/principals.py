"""Who calls: a person, the agent of one session, a runner, or anybody when authentication is off."""

import enum
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from tasks.models import Token


class Need(enum.Enum):
    """What a caller wants to do with what he reaches. ASK is the agent's side: it, or a person who may write."""

    READ = "read"
    ANSWER = "answer"
    WRITE = "write"
    ASK = "ask"


SCOPES = {"read": {Need.READ}, "answer": {Need.READ, Need.ANSWER}, "all": set(Need)}
AGENT_NEEDS = frozenset({Need.READ, Need.ASK})


@dataclass(frozen=True)
class Principal:
    """The identified caller; DRF sees it as `request.user`.

    `unscoped` sees everything (authentication off, superuser). A session's agent has `session_id` and `token`.
    `anybody` says that authentication is off, so that nobody is denied whatever token came along (promise H4).
    """

    user: Optional["User"] = None
    token: Optional["Token"] = None
    unscoped: bool = False
    address: str = ""
    anybody: bool = False

    is_authenticated = True

    @property
    def session_id(self) -> uuid.UUID | None:
        return self.token.session_id if self.token and self.token.kind == "session" else None

    @property
    def is_agent(self) -> bool:
        return self.session_id is not None

    @property
    def pk(self) -> str:
        """A stable key of the caller, for rate limits: the person, whichever of his tokens he uses."""
        if self.user is not None:
            return f"user:{self.user.pk}"
        return f"token:{self.token.pk}" if self.token else f"address:{self.address}"

    def scope_allows(self, need: Need) -> bool:
        return self.anybody or self.token is None or need in SCOPES[self.token.scope]
