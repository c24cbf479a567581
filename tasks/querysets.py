"""Queries that more than one place needs. Visibility is here, so that lists and single access agree (promise H3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import (
    BooleanField,
    Case,
    Exists,
    F,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from tasks.principals import AGENT_NEEDS, Need, Principal

if TYPE_CHECKING:
    from tasks.models import Session, Task, Workspace  # noqa: F401 - the classes below are generic in them

ROLES = {
    Need.READ: ("viewer", "answerer", "admin"),
    Need.ANSWER: ("answerer", "admin"),
    Need.WRITE: ("admin",),
    Need.ASK: ("admin",),
}
NOTHING = Q(pk__in=[])


def workspace_condition(principal: Principal, need: Need, path: str = "") -> Q:
    """What `principal` may do in the workspace at `path` of the row ("" = the row itself); also right for dangling ids.

    An agent and a runner reach nothing through a workspace: only people are in one.
    """
    from tasks.models import Membership

    if not principal.scope_allows(need):
        return NOTHING
    if principal.unscoped:
        return Q()
    if principal.user is None:
        return NOTHING
    reference = f"{path}__pk" if path else "pk"
    member = Membership.objects.filter(workspace=OuterRef(reference), user=principal.user, role__in=ROLES[need])
    owner = f"{path}__owner" if path else "owner"
    return Q(**{owner: principal.user.pk}) | Q(Exists(member))


def session_condition(principal: Principal, need: Need, own: str, workspace: str) -> Q:
    """An agent reaches the row at `own` of its own session (promise H5), anybody else what is in his workspaces."""
    if principal.session_id is None or principal.unscoped:
        return workspace_condition(principal, need, workspace)
    return Q(**{own: principal.session_id}) if need in AGENT_NEEDS else NOTHING


class WorkspaceQuerySet(QuerySet["Workspace"]):
    def reachable(self, principal: Principal, need: Need = Need.READ) -> WorkspaceQuerySet:
        return self.filter(workspace_condition(principal, need))

    def with_people(self) -> WorkspaceQuerySet:
        """Loads owner and members in two queries, the members by name."""
        from tasks.models import Membership

        members = Membership.objects.select_related("user").order_by("user__username")
        return self.select_related("owner").prefetch_related(Prefetch("memberships", members))


class TaskQuerySet(QuerySet["Task"]):
    def reachable(self, principal: Principal, need: Need = Need.READ) -> TaskQuerySet:
        return self.filter(session_condition(principal, need, "sessions", "workspace"))

    def with_pending(self) -> TaskQuerySet:
        """Adds `pending_kind` (any session) and `primary_pending_kind`, by the rule, and `primary_session_id`."""
        from tasks.models import Session
        from tasks.registry import pending_kind, pending_kind_of_task

        primary = Session.objects.filter(task=OuterRef("pk"), is_primary=True)
        primary_kind = primary.annotate(kind=pending_kind()).values("kind")[:1]
        added: dict[str, Any] = {
            "pending_kind": pending_kind_of_task(),
            "primary_pending_kind": Coalesce(Subquery(primary_kind), Value("")),
            "primary_session_id": Subquery(primary.values("pk")[:1]),
        }
        return self.annotate(**added)


class SessionQuerySet(QuerySet["Session"]):
    def reachable(self, principal: Principal, need: Need = Need.READ) -> SessionQuerySet:
        return self.filter(session_condition(principal, need, "pk", "task__workspace"))

    def live(self) -> SessionQuerySet:
        """Sessions that have not ended."""
        from tasks.models import TERMINAL

        return self.exclude(state__in=TERMINAL)

    def with_pending(self) -> SessionQuerySet:
        """Adds `pending_kind`, the rule read now, in the statement that reads the revision (promise I2, R31)."""
        from tasks.registry import pending_kind

        added = {"pending_kind": pending_kind()}
        return self.annotate(**added)

    def with_input_capable(self) -> SessionQuerySet:
        """Adds `input_capable`: not ended, and a runner offers its agent or it holds a detached question (R41)."""
        from tasks.models import TERMINAL
        from tasks.points import input_capable_condition

        capable = When(input_capable_condition() & ~Q(state__in=TERMINAL), then=Value(True))
        added = {"input_capable": Case(capable, default=Value(False), output_field=BooleanField())}
        return self.annotate(**added)

    def projected(self) -> SessionQuerySet:
        """Everything that a session shows, in one statement."""
        return self.with_pending().with_input_capable()

    def newest_first(self) -> SessionQuerySet:
        return self.order_by(F("created_at").desc(), F("id").desc())
