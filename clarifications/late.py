"""Late answers (contract 5): an unanswered question that is superseded or expired, answered as one ordinary user
message.

It never touches the bundle's rows (L6). What may be answered late is judged under the session lock in the admitting
transaction (R37).
"""

import datetime as dt

from django.conf import settings
from django.utils import timezone

from clarifications import answers, bundles, drafting, wording
from clarifications.errors import AlreadyAnswered, Closed, StillActive
from clarifications.models import Claim, ClaimState
from clarifications.responding import refuse_agents
from tasks import fields, hints, rates
from tasks.errors import Unavailable, invalid
from tasks.models import Session
from tasks.principals import Need, Principal
from turns import admitting
from turns.admitting import Admitted, SessionUnavailable
from turns.models import Dispatch, DispatchState, Message


class _Undecided(Exception):
    """An attempt is unsettled: whether the question is superseded is not known yet (R10)."""


def answer(principal: Principal, pending_id: str, payload: object, client_message_id: object) -> Admitted:
    """Admits the answers as a message to the question's own session.

    Raises Invalid, StillActive, AlreadyAnswered, Closed, SessionUnavailable, and what any message may raise.
    """
    deadline = timezone.now() + dt.timedelta(seconds=settings.KANDEV_CLAIM_TIMEOUT_S)
    bundle = bundles.reach(principal, pending_id, Need.ANSWER)
    refuse_agents(principal)
    rates.count_answer(principal)
    said, key = answers.clean_answers(payload, bundle.rows), _key(client_message_id)
    content = wording.late(bundle.rows, said.answers)
    with hints.Waiting(f"session:{bundle.session.pk}") as waiting:
        while True:
            try:
                admitted = admitting.admit(bundle.session.pk, content, key, lambda s: check(pending_id, s))
                drafting.forget(principal, pending_id)
                return admitted
            except _Undecided:
                left = (deadline - timezone.now()).total_seconds()
                if left <= 0:
                    raise Unavailable from None
                waiting.wait(left)


def _key(value: object) -> str | None:
    """The caller's own id of the message; null is the same as absent."""
    if value is None:
        return None
    if not fields.is_key(value):
        raise invalid("client_message_id", fields.KEY_RULE)
    return str(value)


def check(pending_id: str, session: Session) -> None:
    """Raises unless the bundle may be answered late; needs the session lock."""
    rows = list(Message.objects.bundle(pending_id).with_active())
    claim = bundles.newest_claim(pending_id)
    claimed = Claim.objects.filter(pending_id=pending_id, state=ClaimState.CLAIMED)
    if any(row.is_active for row in rows) or claimed.exists():
        raise StillActive
    statuses = {row.status for row in rows}
    undelivered = claim is not None and claim.state == ClaimState.RETIRED
    if "answered" in statuses and not undelivered:
        raise AlreadyAnswered
    if statuses & {"rejected", "cancelled"} and not undelivered:
        raise Closed
    if session.terminal:
        raise SessionUnavailable("this session has ended, it takes no more messages")
    if Dispatch.objects.filter(session=session, state=DispatchState.ATTEMPTED).exists() and "expired" not in statuses:
        raise _Undecided


def offered(pending_id: str) -> bool:
    """Whether a page offers the late answer for this bundle; a hint, `check` decides."""
    rows = list(Message.objects.bundle(pending_id).with_active())
    if not rows or any(row.is_active for row in rows):
        return False
    claim = bundles.newest_claim(pending_id)
    retired = claim is not None and claim.state == ClaimState.RETIRED
    return retired or all(row.status in ("", "pending", "expired") for row in rows)
