"""Reserve: a successor turn that exists but is not published, and the dispatch that will carry its prompt.

Other writers: a second reservation of the same session loses against the constraint `dispatch_one_unsettled`.
If the process dies here, recovery deletes the reservation and gives the claimed rows back (promise E2).
"""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from tasks import hints, instances, revisions
from tasks.models import Session
from turns.models import Dispatch, DispatchKind, Turn


@dataclass(frozen=True)
class Order:
    """What is to be dispatched. `claim_id` and `message_ids` name the answer that rides on it; `replaces` a silent
    prompt.
    """

    kind: DispatchKind
    prompt: str
    attended_until: dt.datetime
    source_turn_id: uuid.UUID | None = None
    pending_id: str = ""
    claim_id: uuid.UUID | None = None
    message_ids: list[str] = field(default_factory=list)
    admission_id: int | None = None
    replaces: dict[str, Any] | None = None


def reserve(session: Session, order: Order, now: dt.datetime) -> Dispatch:
    """The stored reservation. Needs the session lock and an idle session (`busy.is_busy` read under it)."""
    revisions.require_transaction()
    turn = Turn.objects.create(
        session=session, started_at=_start_after_newest(session.pk, now), created_at=now, metadata=_markers(order)
    )
    generation = Dispatch.objects.filter(session=session).aggregate(last=Max("prompt_generation"))["last"] or 0
    return Dispatch.objects.create(
        session=session,
        turn_id=turn.pk,
        kind=order.kind,
        prompt=order.prompt,
        agent=session.agent,
        execution_id=uuid.uuid4(),
        prompt_generation=generation + 1,
        replaces=order.replaces,
        claim_id=order.claim_id,
        claimed_message_ids=order.message_ids,
        admission_id=order.admission_id,
        owner=instances.generation(),
        attended_until=order.attended_until,
        reserved_at=now,
    )


def when_free(
    session_id: uuid.UUID, may: Callable[[Session], bool | None], order: Callable[[], Order], deadline: dt.datetime
) -> Dispatch | None:
    """The reservation of `order()` as soon as `may` says True of the locked session; None when it says None (never
    again), or a second before `deadline`, which the dispatch itself needs.
    """
    with hints.Waiting(f"session:{session_id}") as waiting:
        while True:
            with transaction.atomic():
                session = revisions.lock_session(session_id)
                ready = may(session)
                if ready:
                    return reserve(session, order(), timezone.now())
            left = (deadline - timezone.now()).total_seconds() - 1
            if ready is None or left <= 0:
                return None
            waiting.wait(left)


def _start_after_newest(session_id: uuid.UUID, now: dt.datetime) -> dt.datetime:
    """A successor must sort last even when its process' clock is behind the one that wrote its predecessor (A6)."""
    last = Turn.objects.filter(session=session_id).aggregate(last=Max("started_at"))["last"]
    return max(now, last + dt.timedelta(microseconds=1)) if last else now


def _markers(order: Order) -> dict[str, Any]:
    markers: dict[str, Any] = {"prompt_dispatch_pending": True, "owner_instance": instances.generation()}
    if order.claim_id is not None:
        markers |= {
            "source_turn_id": str(order.source_turn_id),
            "pending_id": order.pending_id,
            "claim_id": str(order.claim_id),
            "claimed_message_ids": order.message_ids,
        }
    return markers
