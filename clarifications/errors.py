"""The refusals of this layer, one class each (contract 4 and 5)."""

from tasks.errors import Conflict, KandevError, NotFound, ServerFault, Unavailable


class UnknownClarification(NotFound):
    message = "clarification request not found"


class NotActive(Conflict):
    code, message = "not_active", "clarification request is no longer active"


class DeliveryFailed(Unavailable):
    code, message = "delivery_failed", "the answer did not reach the agent; the question stands, try again"


class DispatchAmbiguous(ServerFault):
    code = "dispatch_ambiguous"
    message = "the runner did not say whether it took the answer; it will be settled without you"


class DispatchUnpublished(ServerFault):
    code = "dispatch_accepted_unpublished"
    message = "the agent took the answer, a later step failed; do not send it again"


class ConvergenceFailed(Unavailable):
    code = "convergence_failed"
    message = "the answer did not reach the agent and the task's summary lags behind; the question stands, try again"


class StillActive(Conflict):
    code, message = "still_active", "the question is still active: answer it"


class AlreadyAnswered(Conflict):
    code, message = "already_answered", "the question has been answered"


class Closed(Conflict):
    code, message = "closed", "the question was rejected or cancelled"


__all__ = [
    "AlreadyAnswered",
    "Closed",
    "ConvergenceFailed",
    "DeliveryFailed",
    "DispatchAmbiguous",
    "DispatchUnpublished",
    "KandevError",
    "NotActive",
    "StillActive",
    "UnknownClarification",
]
