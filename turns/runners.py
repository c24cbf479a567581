"""Runners: who is connected, which one a session's prompt goes to (sticky), and when one is gone."""

import datetime as dt
import uuid

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now

from tasks import instances
from tasks.models import TERMINAL, Session
from turns.models import Runner, Turn


def connected() -> QuerySet[Runner]:
    """Runners whose socket lives in a living process."""
    return Runner.objects.filter(connection_id__isnull=False, owner__in=instances.alive().values("pk"))


def offered_agents() -> set[str]:
    return {name for runner in connected() for name in runner.agents}


def lease() -> dt.timedelta:
    return dt.timedelta(seconds=settings.KANDEV_RUNNER_LEASE_S)


def choose(session: Session, exclude: set[str] = frozenset()) -> tuple[Runner | None, str]:  # type: ignore[assignment]
    """The runner for the session's next prompt, or None and the reason (promise D12).

    A session stays with the runner that holds its agent; only when that one has been silent past its lease may another
    one begin anew.
    """
    bound = session.runner_id
    if bound and bound not in exclude and Runner.objects.filter(pk=bound, last_seen_at__gt=Now() - lease()).exists():
        runner = connected().filter(pk=bound).first()
        if runner is None:
            return None, f"the runner of this session ({bound}) is not connected"
        return (
            (runner, "")
            if session.agent in runner.agents
            else (None, f"its runner does not offer the agent {session.agent}")
        )
    able = [runner for runner in connected() if session.agent in runner.agents and runner.pk not in exclude]
    if not able:
        return None, f"no connected runner offers the agent {session.agent}"
    free = [(load, runner) for runner in able if (load := _load(runner, session)) < runner.max_sessions]
    if not free:
        return None, f"every runner that offers the agent {session.agent} is busy"
    return min(free, key=lambda pair: (pair[0], pair[1].pk))[1], ""


def _load(runner: Runner, session: Session) -> int:
    """Sessions with an open turn on this runner, beside this one."""
    return (
        Turn.objects.filter(runner_id=runner.pk, completed_at__isnull=True)
        .exclude(session=session)
        .exclude(session__state__in=TERMINAL)
        .values("session")
        .distinct()
        .count()
    )


def touch(runner_id: str, connection_id: uuid.UUID) -> bool:
    """Renews the runner's lease; False when another connection has replaced this one."""
    return bool(Runner.objects.filter(pk=runner_id, connection_id=connection_id).update(last_seen_at=Now()))


def is_connected(runner_id: str) -> bool:
    return Runner.objects.filter(pk=runner_id, connection_id__isnull=False).exists()


def disconnect(runner_id: str, connection_id: uuid.UUID) -> bool:
    """The socket is gone; the runner's lease runs on from now."""
    return bool(
        Runner.objects.filter(pk=runner_id, connection_id=connection_id).update(connection_id=None, last_seen_at=Now())
    )


def silent() -> QuerySet[Runner]:
    """Runners whose lease is over."""
    return Runner.objects.filter(last_seen_at__lte=Now() - lease())
