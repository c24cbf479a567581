"""Ask: one function for REST and MCP; the bundle's rows are written in one transaction (promises B1-B3, B7).

Other writers: an identical ask (joins), a cancel or a reservation of this turn (refused, R21), the session's end. All
are read under the session lock. If the process dies after the commit, the question stands and detaches with the lease.
"""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from clarifications import detaching, leases, questions
from clarifications.models import Claim, ClaimState
from tasks import access, revisions
from tasks.errors import invalid
from tasks.models import Session
from tasks.principals import Need, Principal
from turns import incoming, pausing, points, transcript
from turns.admitting import SessionUnavailable
from turns.models import Author, Message, MessageType, Turn


@dataclass(frozen=True)
class Asked:
    """`created` is False when the same questions joined an existing bundle."""

    pending_id: str
    created: bool


def ask(principal: Principal, session_id: object, raw: object, context: object = "") -> Asked:
    """Stores the questions in the session's current turn, or joins the same active ones.

    Raises Invalid (field named), NotFound, Forbidden, or SessionUnavailable without an open turn of the caller.
    """
    session = _session(principal, session_id)
    made, text = questions.clean(raw, context)
    with transaction.atomic():
        revisions.lock_session(session.pk)
        session = Session.objects.select_related("task").get(pk=session.pk)
        turn = open_turn(principal, session)
        now = timezone.now()
        known = _same(turn, questions.fingerprint(made))
        if known is not None:
            _join(session, turn, known, now)
            return Asked(known, False)
        return Asked(_store(session, turn, made, text, now), True)


def _session(principal: Principal, session_id: object) -> Session:
    """A malformed id in a body is a 400; a foreign one looks like an unknown one."""
    try:
        parsed = uuid.UUID(str(session_id))
    except ValueError:
        raise invalid("session_id", "must be a session's id") from None
    return access.session(principal, parsed, Need.READ if principal.is_agent else Need.WRITE)


def open_turn(principal: Principal, session: Session) -> Turn:
    """The session's current turn, which runs, is not told to end, and is the caller's own (R21, R26); needs the
    lock.
    """
    turn = Turn.objects.current_of(session.pk)
    if session.terminal or turn is None or turn.completed_at is not None or turn.cancel_requested_at is not None:
        raise SessionUnavailable("this session has no running turn to ask in")
    if principal.token is not None and principal.token.turn_id not in (None, turn.pk):
        raise SessionUnavailable("the turn of this token is over")
    return turn


def _same(turn: Turn, fingerprint: str) -> str | None:
    """The bundle that the same questions join: active, claimed but not handed over, or handed over and not yet taken
    (R19, R20).
    """
    mine = Message.objects.questions().filter(session=turn.session_id, turn_id=turn.pk)
    asked = mine.filter(metadata__asked_fingerprint=fingerprint).order_by("-created_at", "-id")
    active = [str(pk) for pk in asked.active().values_list("pending_id", flat=True)[:1]]
    if active:
        return active[0]
    for pending_id in dict.fromkeys(map(str, asked.values_list("pending_id", flat=True))):
        claims = Claim.objects.filter(pending_id=pending_id, turn_id=turn.pk)
        if claims.filter(state=ClaimState.CLAIMED).exists() or claims.filter(replayable=True).exists():
            return pending_id
    return None


def _join(session: Session, turn: Turn, pending_id: str, now: dt.datetime) -> None:
    pausing.unschedule(turn.pk, pending_id)
    detaching.reattach(session.pk, pending_id, now)
    if not leases.is_live(pending_id, now):
        leases.first_moment(session.pk, turn.pk, pending_id, now)


def _store(session: Session, turn: Turn, made: list[dict[str, Any]], context: str, now: dt.datetime) -> str:
    pending_id = str(uuid.uuid4())
    incoming.evidence(turn, now)
    marks = questions.metadata(pending_id, made, context)
    rows = [_row(session, turn, mark, now + dt.timedelta(microseconds=index)) for index, mark in enumerate(marks)]
    Message.objects.bulk_create(rows)
    leases.first_moment(session.pk, turn.pk, pending_id, now)
    revisions.advance(session.pk, last_activity_at=now)
    transcript.tell(transcript.ADDED, session, rows, now)
    # Another question of the running turn is a sign of life like any frame: the agent has gone on from its last answer.
    points.activity.run(turn, "ask", now)
    return pending_id


def _row(session: Session, turn: Turn, mark: dict[str, Any], at: dt.datetime) -> Message:
    """Rows of a bundle differ by a microsecond, so that (created_at, id) is the question order."""
    return Message(
        session=session,
        turn_id=turn.pk,
        author_type=Author.AGENT,
        type=MessageType.QUESTION,
        content=mark["question"]["prompt"],
        metadata=mark,
        created_at=at,
        updated_at=at,
    )
