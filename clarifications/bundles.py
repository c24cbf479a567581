"""A bundle as a value: its rows, its turn, whose it is, and its state (contract 3)."""

import datetime as dt
import uuid
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from clarifications.errors import UnknownClarification
from clarifications.models import Claim, ClaimState, WaiterLease
from tasks import access, prepared
from tasks.errors import Forbidden, NotFound
from tasks.models import Session
from tasks.principals import Need, Principal
from turns.models import QUESTION, Dispatch, Message

MAX_ID = 200


@dataclass(frozen=True)
class Bundle:
    """The rows of one request in question order, with its session (its task loaded)."""

    pending_id: str
    session: Session
    rows: list[Message]

    @property
    def turn_id(self) -> uuid.UUID | None:
        return turn_identity(self.rows)


def turn_identity(rows: list[Message]) -> uuid.UUID | None:
    """The one turn that the rows name; empty legacy ids do not hide it, two different ones invalidate it (C8)."""
    named = {row.turn_id for row in rows if row.turn_id is not None}
    return named.pop() if len(named) == 1 else None


def well_formed(rows: list[Message]) -> bool:
    """One session, one turn, questions only (A8)."""
    one_session = len({row.session_id for row in rows}) == 1
    return one_session and all(row.type == QUESTION for row in rows) and turn_identity(rows) is not None


def reach(principal: Principal, pending_id: str, need: Need = Need.READ) -> Bundle:
    """The bundle for this caller: access to its own task is checked before anything else (H1).

    The task comes from the durable rows. UnknownClarification for unknown, malformed and foreign alike; Forbidden for
    one who may see but not do. An agent may do what its own session's bundles need.
    """
    rows = _rows(pending_id)
    try:
        need = Need.READ if principal.is_agent else need
        session = access.session(principal, rows[0].session_id if rows else uuid.uuid4(), need)
    except Forbidden:
        raise
    except NotFound:
        raise UnknownClarification from None
    if any(row.session_id != session.pk for row in rows):
        _check_others(principal, rows)
    return Bundle(pending_id, session, rows)


def _rows(pending_id: str) -> list[Message]:
    if not 0 < len(pending_id) <= MAX_ID or "\0" in pending_id:
        return []
    return stored(pending_id)


@prepared.rows
def stored(pending_id: str) -> QuerySet[Message]:
    """The bundle's rows as they are."""
    return Message.objects.bundle(pending_id)


def _check_others(principal: Principal, rows: list[Message]) -> None:
    """A malformed bundle spread over sessions is shown only to one who may see all of them."""
    for session_id in {row.session_id for row in rows}:
        try:
            access.session(principal, session_id)
        except NotFound:
            raise UnknownClarification from None


def state_of(bundle: Bundle, now: dt.datetime | None = None) -> str:
    """`active_live`, `active_detached`, `delivery_claimed`, `terminal` or `superseded_history`."""
    rows = list(Message.objects.bundle(bundle.pending_id).with_active())
    if well_formed(rows) and any(row.is_active for row in rows):
        live = WaiterLease.objects.live(now or timezone.now()).filter(pending_id=bundle.pending_id).exists()
        return "active_live" if live else "active_detached"
    claim = newest_claim(bundle.pending_id)
    if claim is not None and is_provisional(claim):
        return "delivery_claimed"
    pending = any(row.says_pending for row in rows)
    return "superseded_history" if pending and not bundle.session.terminal else "terminal"


def newest_claim(pending_id: str) -> Claim | None:
    """The claim whose outcome the rows carry: the latest one that was not given back."""
    rows = Claim.objects.filter(pending_id=pending_id).exclude(state=ClaimState.RESTORED)
    return rows.order_by("-responded_at", "-id").first()


def is_provisional(claim: Claim) -> bool:
    """The hand-over is under way. Confirmed or accepted it is over: the answer is delivered, whatever of its records is
    still to be written (rulings, Delivery). Once nobody can know its outcome the bundle shows as terminal (contract 4).
    """
    if claim.state != ClaimState.CLAIMED:
        return False
    return not Dispatch.objects.filter(claim_id=claim.pk, ambiguous=True).unsettled().exists()
