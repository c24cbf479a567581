"""Permission requests of agents: stored once, answered once with one offered option, over with their turn.

Other writers of such a row: a second answer, the end or cancel of its turn, the session's end, its deletion. All take
the session lock first and restate `active` (or that the row is still open) in their update; the count decides. The
answer is owed to the runner in the transaction that stores it, so it is sent if and only if it counts.
"""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Exists, Min, OuterRef
from django.utils import timezone

from tasks import access, revisions
from tasks.errors import Conflict, NotFound, invalid
from tasks.models import Session
from tasks.principals import Need, Principal
from tasks.registry import PendingKind
from turns import background, completing, outgoing, transcript
from turns.models import PERMISSION, Author, FrameKind, Message, MessageType, Turn

LONGEST_ID, MOST_OPTIONS = 200, 50


class NotActive(Conflict):
    code, message = "not_active", "permission request is no longer active"


@dataclass(frozen=True)
class Asked:
    """A checked `permission` frame."""

    request_id: str
    title: str
    tool: dict[str, Any]
    options: list[dict[str, str]]


def read(frame: dict[str, Any]) -> Asked | None:
    """None without a usable `request_id`. One with malformed options has none, and is answered with null."""
    request_id, tool = frame.get("request_id"), frame.get("tool")
    if not isinstance(request_id, str) or not 0 < len(request_id) <= LONGEST_ID:
        return None
    title = frame.get("title")
    return Asked(
        request_id,
        title if isinstance(title, str) else "",
        tool if isinstance(tool, dict) else {},
        _options(frame.get("options")),
    )


def _options(offered: object) -> list[dict[str, str]]:
    """The offered options, each id once; [] when one is malformed."""
    if not isinstance(offered, list) or len(offered) > MOST_OPTIONS:
        return []
    found: dict[str, dict[str, str]] = {}
    for one in offered:
        values = {key: one.get(key) if isinstance(one, dict) else None for key in ("option_id", "name", "kind")}
        option = {key: value for key, value in values.items() if isinstance(value, str)}
        if len(option) < len(values) or not option["option_id"]:
            return []
        found.setdefault(option["option_id"], option)
    return list(found.values())


def store(session: Session, turn: Turn, asked: Asked, now: dt.datetime) -> bool:
    """Stores a request of an open turn; True when this call did. Needs the session lock.

    A runner sends an open request again after each hello: one that is known hears what became of it. In a turn that is
    being cancelled or replaced nothing is stored (R21): the agent hears `cancelled`.
    """
    revisions.require_transaction()
    pk = uuid.uuid5(turn.pk, asked.request_id)
    known = Message.objects.filter(pk=pk).first()
    if known is not None:
        if not Message.objects.filter(pk=pk).active(PERMISSION).exists():
            _tell_runner(turn, asked.request_id, _metadata_of(known).get("option_id"), now)
        return False
    if not asked.options or turn.cancel_requested_at or turn != Turn.objects.current_of(session.pk):
        _tell_runner(turn, asked.request_id, None, now)
        return False
    metadata = _metadata(asked)
    author, kind = Author.AGENT, MessageType.PERMISSION
    transcript.add(
        session, now, author=author, kind=kind, content=asked.title, turn_id=turn.pk, metadata=metadata, pk=pk
    )
    revisions.advance(session.pk, last_activity_at=now)
    return True


def _metadata(asked: Asked) -> dict[str, Any]:
    said = {"request_id": asked.request_id, "title": asked.title, "tool": asked.tool, "options": asked.options}
    return {**said, "status": "pending"}


def reach(principal: Principal, message_id: object) -> Message:
    """A permission request that `principal` may answer. NotFound alike for unknown and foreign ones, else Forbidden."""
    row = Message.objects.filter(pk=access.parse_id(message_id), type=PERMISSION).first()
    access.session(principal, row.session_id if row else uuid.uuid4(), Need.ANSWER)
    if row is None:
        raise NotFound
    return row


def answer(asked: Message, option_id: str) -> dict[str, Any]:
    """Decides a request that was reached with `reach`; a loser hears the winner's choice.

    Invalid for an option that was not offered, NotActive when nobody answered and the request is over.
    """
    if option_id not in [one["option_id"] for one in _options(_metadata_of(asked).get("options"))]:
        raise invalid("option_id", "must be one of the offered options")
    with transaction.atomic():
        session = _locked(asked.session_id)
        row = Message.objects.filter(pk=asked.pk).first()
        if row is None:
            raise NotFound
        claimed = _set(row, timezone.now(), status="answered", option_id=option_id)
        if claimed:
            _tell(row, option_id, row.updated_at)
            _changed(session, [row], row.updated_at)
        elif row.status != "answered":
            raise NotActive
    return {"success": True, "claimed": claimed, "option_id": str(_metadata_of(row).get("option_id") or "")}


def _locked(session_id: uuid.UUID) -> Session:
    revisions.lock_session(session_id)
    return Session.objects.select_related("task").get(pk=session_id)


def _set(row: Message, now: dt.datetime, **marks: str) -> bool:
    """One guarded update of an active row; needs the session lock."""
    metadata = {**_metadata_of(row), **marks}
    if not Message.objects.filter(pk=row.pk).active(PERMISSION).update(metadata=metadata, updated_at=now):
        return False
    row.metadata, row.updated_at = metadata, now
    return True


def _changed(session: Session, rows: list[Message], now: dt.datetime) -> None:
    """What follows every end of a request: revision, event, and the step that it may have held back (R33)."""
    revisions.advance(session.pk)
    transcript.tell(transcript.UPDATED, session, rows, now)
    background.after_commit(completing.judge, session.task_id)


def turn_over(session: Session, turn_id: uuid.UUID, now: dt.datetime) -> None:
    """The turn has ended or is being cancelled, which the runner knows or is told: nobody waits for an answer any more.

    Inside that transaction; needs the session lock. The session may be terminal by now.
    """
    revisions.require_transaction()
    rows = list(Message.objects.filter(session=session.pk, turn_id=turn_id).open_in_current_turn(PERMISSION))
    for row in rows:
        row.metadata, row.updated_at = {**_metadata_of(row), "status": "cancelled"}, now
    if rows:
        Message.objects.bulk_update(rows, ["metadata", "updated_at"])
        _changed(session, rows, now)


def removing(row: Message, session: Session, now: dt.datetime) -> None:
    """Inside the deletion of a transcript row, before it, session locked: an open request is cancelled at the agent."""
    if row.type != PERMISSION or not Message.objects.filter(pk=row.pk).active(PERMISSION).exists():
        return
    _tell(row, None, now)
    revisions.advance(session.pk)
    background.after_commit(completing.judge, session.task_id)


def _metadata_of(row: Message) -> dict[str, Any]:
    """An imported row's may hold anything."""
    return row.metadata if isinstance(row.metadata, dict) else {}


def _tell(row: Message, option_id: str | None, now: dt.datetime) -> None:
    """The row is active, so its turn is the current one."""
    turn = Turn.objects.current_of(row.session_id)
    if turn is not None:
        _tell_runner(turn, str(_metadata_of(row).get("request_id") or ""), option_id, now)


def _tell_runner(turn: Turn, request_id: str, option_id: str | None, now: dt.datetime) -> None:
    named = {"execution_id": str(turn.execution_id), "prompt_generation": turn.prompt_generation}
    tell_runner(turn.runner_id, turn.session_id, {**named, "request_id": request_id, "option_id": option_id}, now)


def tell_runner(runner_id: str, session_id: uuid.UUID, payload: dict[str, Any], now: dt.datetime) -> None:
    """Owes the runner a `permission_answer`; needs an open transaction."""
    if runner_id:
        whole = {"session_id": str(session_id), **payload}
        outgoing.owe(runner_id, FrameKind.PERMISSION_ANSWER, session_id, whole, now)


def exists(reference: OuterRef) -> Exists:
    return Exists(Message.objects.filter(session=reference).active(PERMISSION))


def blocked_since(session_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, dt.datetime]:
    rows = Message.objects.filter(session__in=session_ids).active(PERMISSION)
    return dict(rows.order_by().values_list("session").annotate(Min("created_at")))


KIND = PendingKind("permission", 1, exists, "turns:permission-panel", blocked_since)
