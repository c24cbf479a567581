"""How an agent's permission requests are answered: at once by a policy, or by a person (`ask`, see `requests`)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse, ToolCallUpdate

POLICIES = ("allow", "deny", "ask")
# "Once" goes first: the policy of this run must not leave a standing rule behind in the agent's own settings.
KINDS: dict[str, tuple[str, ...]] = {
    "allow": ("allow_once", "allow_always"),
    "deny": ("reject_once", "reject_always"),
    "ask": (),  # outside of a prompt there is nobody to ask
}
Ask = Callable[[ToolCallUpdate, Sequence[PermissionOption]], Awaitable[RequestPermissionResponse]]


class Policy(Protocol):
    asks: bool

    async def decide(self, tool_call: ToolCallUpdate, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
        """Returns one of the offered options, or `cancelled`."""


class FixedPolicy:
    """Picks the first offered option of the right kind; when none is offered the answer is `cancelled`."""

    def __init__(self, name: str) -> None:
        if name not in POLICIES:
            raise ValueError(f"unknown permission policy {name!r}: choose from {', '.join(POLICIES)}")
        self.kinds = KINDS[name]
        self.asks = name == "ask"

    async def decide(
        self,
        tool_call: ToolCallUpdate,
        options: Sequence[PermissionOption],
    ) -> RequestPermissionResponse:
        for kind in self.kinds:
            for option in options:
                if option.kind == kind:
                    return response(option.option_id)
        return response(None)


def response(option_id: str | None) -> RequestPermissionResponse:
    """What the agent hears: the option that was picked, or that its request was cancelled."""
    if option_id is None:
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
    return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option_id))
