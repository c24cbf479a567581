"""Wire shapes of turns and messages (contract 3): whitelists, so that no private dispatch field gets out (promise
D13).
"""

import datetime as dt
from typing import Any

from tasks.models import Session
from turns.models import Message, Turn

PRIVATE_METADATA = frozenset({"claim_id", "response_delivery_pending", "owner_instance", "asked_fingerprint"})


def time(value: dt.datetime | None) -> str | None:
    """RFC 3339 in UTC."""
    return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z") if value else None


def turn(row: Turn) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "session_id": str(row.session_id),
        "started_at": time(row.started_at),
        "completed_at": time(row.completed_at),
        "created_at": time(row.created_at),
    }


def message(row: Message, session: Session) -> dict[str, Any]:
    """A message; the session gives its task. Bookkeeping keys of the metadata stay inside."""
    return {
        "id": str(row.pk),
        "session_id": str(row.session_id),
        "task_id": str(session.task_id),
        "turn_id": str(row.turn_id) if row.turn_id else None,
        "author_type": row.author_type,
        "type": row.type,
        "content": row.content,
        "metadata": public_metadata(row.metadata),
        "created_at": time(row.created_at),
        "updated_at": time(row.updated_at),
    }


def public_metadata(metadata: Any) -> dict[str, Any]:
    return {k: v for k, v in metadata.items() if k not in PRIVATE_METADATA} if isinstance(metadata, dict) else {}
