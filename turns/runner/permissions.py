"""How an agent's permission requests are answered: by a policy. A later policy may ask a person; `decide` may take its time."""

from collections.abc import Sequence
from typing import Any, Protocol

from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse

POLICIES = ("allow", "deny")
# "Once" goes first: the policy of this run must not leave a standing rule behind in the agent's own settings.
KINDS = {"allow": ("allow_once", "allow_always"), "deny": ("reject_once", "reject_always")}


class Policy(Protocol):
    async def decide(self, session_id: str, tool_call: Any, options: Sequence[PermissionOption]) -> RequestPermissionResponse: ...


class FixedPolicy:
    """Picks the first offered option of the right kind. Only offered options are ever picked; none fits → `cancelled`."""

    def __init__(self, name: str) -> None:
        if name not in POLICIES:
            raise ValueError(f"unknown permission policy {name!r}: choose from {', '.join(POLICIES)}")
        self.kinds = KINDS[name]

    async def decide(self, session_id: str, tool_call: Any, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
        for kind in self.kinds:
            for option in options:
                if option.kind == kind:
                    return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
