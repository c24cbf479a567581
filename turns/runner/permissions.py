"""How an agent's permission requests are answered: by a policy. One that asks a person may come: `decide` may wait."""

from collections.abc import Sequence
from typing import Protocol

from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse, ToolCallUpdate

POLICIES = ("allow", "deny")
# "Once" goes first: the policy of this run must not leave a standing rule behind in the agent's own settings.
KINDS = {"allow": ("allow_once", "allow_always"), "deny": ("reject_once", "reject_always")}


class Policy(Protocol):
    async def decide(self, tool_call: ToolCallUpdate, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
        """Returns one of the offered options, or `cancelled`."""


class FixedPolicy:
    """Picks the first offered option of the right kind; when none is offered the answer is `cancelled`."""

    def __init__(self, name: str) -> None:
        if name not in POLICIES:
            raise ValueError(f"unknown permission policy {name!r}: choose from {', '.join(POLICIES)}")
        self.kinds = KINDS[name]

    async def decide(
        self,
        tool_call: ToolCallUpdate,
        options: Sequence[PermissionOption],
    ) -> RequestPermissionResponse:
        for kind in self.kinds:
            for option in options:
                if option.kind == kind:
                    picked = AllowedOutcome(outcome="selected", option_id=option.option_id)
                    return RequestPermissionResponse(outcome=picked)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
