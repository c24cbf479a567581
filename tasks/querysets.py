"""Queries that more than one place needs. Visibility is here, so that lists and single access agree (promise H3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from tasks.principals import Need, Principal

if TYPE_CHECKING:
    from tasks.models import Session, Task, Workspace

ROLES = {Need.READ: ("viewer", "answerer", "admin"), Need.ANSWER: ("answerer", "admin"), Need.WRITE: ("admin",)}


def workspace_condition(principal: Principal, need: Need, path: str = "") -> Q:
    """What `principal` may do in the workspace at `path` of the row ("" = the row itself); also right for dangling ids."""
    from tasks.models import Membership

    if principal.unscoped:
        return Q()
    if principal.user is None:
        return Q(pk__in=[])
    reference = f"{path}__pk" if path else "pk"
    member = Membership.objects.filter(workspace=OuterRef(reference), user=principal.user, role__in=ROLES[need])
    owner = f"{path}__owner" if path else "owner"
    return Q(**{owner: principal.user.pk}) | Q(Exists(member))


class WorkspaceQuerySet(QuerySet["Workspace"]):
    def reachable(self, principal: Principal, need: Need = Need.READ) -> WorkspaceQuerySet:
        return self.filter(workspace_condition(principal, need))


class TaskQuerySet(QuerySet["Task"]):
    def reachable(self, principal: Principal, need: Need = Need.READ) -> TaskQuerySet:
        if principal.session_id is not None:
            return self.filter(sessions=principal.session_id)
        return self.filter(workspace_condition(principal, need, "workspace"))

    def with_pending(self) -> TaskQuerySet:
        """Adds `pending_kind` (any session) and `primary_pending_kind`, read now from the rule."""
        from tasks.models import Session
        from tasks.registry import pending_kind

        mine = Session.objects.filter(task=OuterRef("pk"))
        waiting = mine.annotate(kind=pending_kind()).exclude(kind="").order_by("kind").values("kind")[:1]
        primary = mine.filter(is_primary=True)
        return self.annotate(
            pending_kind=Coalesce(Subquery(waiting), Value("")),
            primary_pending_kind=Coalesce(Subquery(primary.annotate(kind=pending_kind()).values("kind")[:1]), Value("")),
            primary_session_id=Subquery(primary.values("pk")[:1]),
        )


class SessionQuerySet(QuerySet["Session"]):
    def reachable(self, principal: Principal, need: Need = Need.READ) -> SessionQuerySet:
        if principal.session_id is not None:
            return self.filter(pk=principal.session_id)
        return self.filter(workspace_condition(principal, need, "task__workspace"))

    def with_pending(self) -> SessionQuerySet:
        """Adds `pending_kind`, the rule read now, in the statement that reads the revision (promise I2, R31)."""
        from tasks.registry import pending_kind

        return self.annotate(pending_kind=pending_kind())

    def with_epoch(self) -> SessionQuerySet:
        from tasks.models import Epoch

        return self.annotate(current_epoch=Coalesce(Subquery(Epoch.objects.filter(pk=1).values("value")[:1]), Value(0)))

    def newest_first(self) -> SessionQuerySet:
        return self.order_by(F("created_at").desc(), F("id").desc())
