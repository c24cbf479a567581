"""The one place for the wire shape of a response and of a bundle (contract 3 and 4), on every surface."""

import datetime as dt
from typing import Any

from clarifications.models import Claim, ClaimState
from turns.models import Message
from turns.shapes import time

RESOLVED = ("answered", "rejected")
RESPONSE = ("pending_id", "answers", "rejected", "reject_reason", "responded_at")
ENTRY = ("question_id", "selected_options", "custom_text")
DELIVERY = {ClaimState.CLAIMED: "pending", ClaimState.RETIRED: "undelivered", ClaimState.RESTORED: "pending"}


def response(
    pending_id: str, rows: list[Message], responded_at: dt.datetime | None, reason: str = ""
) -> dict[str, Any]:
    """The `response` object, rebuilt from the rows in the bundle's order; a row without a response gives no entry
    (R35).
    """
    status = resolved_status(rows)
    rejected = status == "rejected"
    answers = [] if rejected else [_entry(row) for row in rows if isinstance(row.metadata.get("response"), dict)]
    return {
        "pending_id": pending_id,
        "answers": answers,
        "rejected": rejected,
        "reject_reason": reason if rejected else "",
        "responded_at": time(responded_at),
    }


def _entry(row: Message) -> dict[str, Any]:
    stored = row.metadata["response"]
    return {
        "question_id": stored.get("question_id", row.metadata.get("question_id", "")),
        "selected_options": list(stored.get("selected_options") or []),
        "custom_text": stored.get("custom_text") or "",
    }


def resolved_status(rows: list[Message]) -> str | None:
    """The status of the first answered or rejected row, or None when nobody won."""
    return next((row.status for row in rows if row.status in RESOLVED), None)


def outcome(claimed: bool, status: str, delivery: str, body: dict[str, Any]) -> dict[str, Any]:
    """The 200 of `respond` for winner and loser alike."""
    whole = {key: _ordered(body[key]) for key in RESPONSE}
    return {"success": True, "claimed": claimed, "status": status, "delivery": delivery, "response": whole}


def _ordered(part: Any) -> Any:
    """Answers read back from the claim: PostgreSQL's JSON keeps its own order of keys, every reader gets ours (G5)."""
    return [{key: entry[key] for key in ENTRY} for entry in part] if isinstance(part, list) else part


def delivery(claim: Claim | None) -> str:
    """What a loser is told of the winner's hand-over; a row that was resolved without a claim record was delivered."""
    return DELIVERY.get(ClaimState(claim.state), "delivered") if claim else "delivered"


def question(row: Message) -> dict[str, Any]:
    """A question as lists and pages show it: every field present, never null."""
    asked = row.metadata.get("question")
    asked = asked if isinstance(asked, dict) else {}
    return {
        "question_id": row.metadata.get("question_id") or "",
        "title": asked.get("title") or "",
        "prompt": asked.get("prompt") or row.content,
        "multi_select": bool(asked.get("multi_select")),
        "status": row.status or "pending",
        "options": [option(item) for item in asked.get("options") or []],
    }


def option(raw: dict[str, Any]) -> dict[str, Any]:
    return {
        "option_id": raw.get("option_id") or "",
        "label": raw.get("label") or "",
        "description": raw.get("description") or "",
        "recommended": bool(raw.get("recommended")),
    }


def bundle(rows: list[Message], state: str, task_id: object, turn_id: object) -> dict[str, Any]:
    """`GET /clarification/{pending_id}`."""
    first = rows[0]
    return {
        "pending_id": first.pending_id,
        "session_id": str(first.session_id),
        "task_id": str(task_id),
        "turn_id": str(turn_id) if turn_id else None,
        "state": state,
        "context": first.metadata.get("context") or "",
        "created_at": time(first.created_at),
        "questions": [question(row) | _resolved(row) for row in rows],
    }


def _resolved(row: Message) -> dict[str, Any]:
    return {"response": _entry(row)} if isinstance(row.metadata.get("response"), dict) else {}
