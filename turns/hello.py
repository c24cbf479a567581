"""A runner says hello: its socket speaks for it from now on, its journal settles what it lists, and what it does not
list is asked for with `revoke` (R13). A new journal is a new `runner_id`, so it settles nothing of an old one."""

import datetime as dt
import uuid
from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from tasks import hints, instances
from tasks.errors import invalid
from tasks.models import Token
from turns import background, dispatching, draining, settling
from turns.models import (
    Dispatch,
    DispatchState,
    FrameKind,
    Runner,
    RunnerFrame,
    Timer,
    TimerKind,
    Turn,
)

TAKEN = (DispatchState.ACCEPTED, DispatchState.PUBLISHED)
UNHEARD_AFTER = dt.timedelta(seconds=5)
OUTCOMES = {"accepted", "completed", "rejected", "revoked"}


@dataclass(frozen=True)
class Hello:
    """The checked `hello` frame; `journal` maps dispatch ids to outcomes."""

    runner_id: str
    version: str
    agents: list[str]
    max_sessions: int
    journal: dict[uuid.UUID, str]


def parse(frame: dict[str, object]) -> Hello:
    """Invalid names the field that is wrong."""
    runner_id, agents, journal = frame.get("runner_id"), frame.get("agents"), frame.get("journal", [])
    if not isinstance(runner_id, str) or not 1 <= len(runner_id) <= 200:
        raise invalid("runner_id", "must be a text of 1 to 200 characters")
    if not isinstance(agents, list) or not all(isinstance(name, str) and 0 < len(name) <= 200 for name in agents):
        raise invalid("agents", "must be a list of names")
    most = frame.get("max_sessions", 1)
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= 100_000:
        raise invalid("max_sessions", "must be a whole number of at least 1")
    return Hello(runner_id, str(frame.get("version", ""))[:100], list(agents), most, _journal(journal))


def _journal(entries: object) -> dict[uuid.UUID, str]:
    if not isinstance(entries, list):
        raise invalid("journal", "must be a list")
    found: dict[uuid.UUID, str] = {}
    for entry in entries:
        outcome = entry.get("outcome") if isinstance(entry, dict) else None
        if outcome not in OUTCOMES:
            raise invalid("journal", "each entry needs a dispatch_id and an outcome")
        try:
            found[uuid.UUID(str(entry.get("dispatch_id")))] = str(outcome)
        except ValueError:
            continue  # an id that this server never made settles nothing
    return found


def connect(token: Token | None, said: Hello, connection_id: uuid.UUID) -> bool:
    """Makes `connection_id` the runner's socket; False when the id belongs to another token's runner."""
    with transaction.atomic():
        known = Runner.objects.select_for_update().filter(pk=said.runner_id).first()
        if known is not None and _belongs_to_another(known, token):
            return False
        fields = {
            "token": token,
            "version": said.version,
            "agents": said.agents,
            "max_sessions": said.max_sessions,
            "owner": instances.generation(),
            "connection_id": connection_id,
            "connected_at": Now(),
            "last_seen_at": Now(),
        }
        Runner.objects.update_or_create(pk=said.runner_id, defaults=fields)
    hints.send(f"runner:{said.runner_id}")
    return True


def _belongs_to_another(known: Runner, token: Token | None) -> bool:
    """A runner id stays with its token; a new token may take it over once the old one is revoked."""
    holder = known.token
    return holder is not None and token is not None and holder.pk != token.pk and holder.revoked_at is None


def settle(said: Hello) -> None:
    """What the journal lists is settled by it; every other unsettled dispatch of this runner is asked for."""
    waiting = Dispatch.objects.filter(runner_id=said.runner_id, state=DispatchState.ATTEMPTED)
    for dispatch in list(waiting):
        outcome = said.journal.get(dispatch.pk)
        if outcome in ("accepted", "completed"):
            settling.accept(dispatch.pk, said.runner_id)
        elif outcome in ("rejected", "revoked"):
            settling.refuse(dispatch.pk, said.runner_id, DispatchState(outcome), outcome, f"the runner {outcome} it")
        elif not attended(dispatch) and not _revoke_waits(dispatch):
            dispatching.revoke(dispatch.pk, timezone.now())
    _note_unheard_ends(said)
    for session_id in draining.due(timezone.now()):
        background.submit(draining.drain, session_id)


def _note_unheard_ends(said: Hello) -> None:
    """Open turns that the journal lists as completed: the runner first sends what it still has."""
    turns = Turn.objects.filter(runner_id=said.runner_id, completed_at__isnull=True)
    taken = Dispatch.objects.filter(turn_id__in=turns.values("pk"), state__in=TAKEN)
    for dispatch in [row for row in taken if said.journal.get(row.pk) == "completed"]:
        Timer.objects.update_or_create(
            kind=TimerKind.UNHEARD_END,
            turn_id=dispatch.turn_id,
            pending_id="",
            defaults={"session_id": dispatch.session_id, "due_at": timezone.now() + UNHEARD_AFTER},
        )


def attended(dispatch: Dispatch) -> bool:
    """Whether a responder still waits for this dispatch's word; then it asks by itself."""
    return not dispatch.ambiguous and instances.alive().filter(pk=dispatch.owner).exists()


def _revoke_waits(dispatch: Dispatch) -> bool:
    """An unsent revoke goes out on this connection anyway."""
    payload = {"dispatch_id": str(dispatch.pk)}
    return RunnerFrame.objects.filter(kind=FrameKind.REVOKE, payload=payload, sent_at__isnull=True).exists()
