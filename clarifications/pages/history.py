"""Questions as entries of the transcript. One that is no longer active never says that the agent waits (L1)."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clarifications.models import Claim, ClaimState
from clarifications.pages import reading
from clarifications.pages.reading import Question
from tasks import access
from tasks.pages.base import may
from tasks.principals import Need, Principal
from turns.models import QUESTION, Message
from turns.pages.entries import EntryKind, register


@dataclass(frozen=True)
class History:
    """`state` is open, handing_over, undelivered or superseded, else the row's own final status.

    `late` is true on the last row of a bundle that this person may answer as a new message.
    """

    question: Question
    pending_id: str
    state: str
    words: str
    late: bool


def prepare(rows: Sequence[Message], principal: Principal) -> Mapping[uuid.UUID, History]:
    """For the transcript of one session."""
    ids = [row.pk for row in rows]
    active = set(Message.objects.filter(pk__in=ids).active().values_list("pk", flat=True))
    claims = Claim.objects.filter(pending_id__in={row.pending_id for row in rows})
    newest = {claim.pending_id: claim.state for claim in claims.exclude(state=ClaimState.RESTORED)}
    may_answer = may(access.session, principal, rows[0].session_id, Need.ANSWER) if rows else False
    last = _last_rows({row.pending_id for row in rows}) if may_answer else set()
    return {row.pk: _history(row, row.pk in active, newest.get(row.pending_id), row.pk in last) for row in rows}


def _last_rows(pending_ids: set[str]) -> set[uuid.UUID]:
    """The last row that each bundle still has; one of its rows may have been deleted (R40)."""
    rows = Message.objects.filter(pending_id__in=pending_ids).exclude(pending_id="").order_by("created_at", "id")
    return set(dict(rows.values_list("pending_id", "pk")).values())


def _history(row: Message, active: bool, claim: str | None, last: bool) -> History:
    question = reading.question(row)
    state = _state(row, active, claim)
    late = last and state in ("superseded", "expired", "undelivered") and bool(question.id and row.pending_id)
    return History(question, row.pending_id, state, reading.ended_words(question.status), late)


def _state(row: Message, active: bool, claim: str | None) -> str:
    if active:
        return "open"
    if row.says_pending:
        return "superseded"
    if claim == ClaimState.RETIRED:
        return "undelivered"
    return "handing_over" if row.status == "answered" and claim == ClaimState.CLAIMED else row.status


def connect() -> None:
    register(QUESTION, EntryKind("clarifications/history.html", prepare))
