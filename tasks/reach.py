"""What many callers may see, in a few statements: the rule of `querysets.workspace_condition` for sets (promise H6).

A test holds the two against each other. Here the callers are many and the ids known; there it is one caller and a list.
"""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tasks.hub import Key
from tasks.models import Membership, Session, Task, Workspace
from tasks.principals import Need, Principal
from tasks.querysets import ROLES


@dataclass(frozen=True)
class Reach:
    """The rows behind a set of keys: which exist, in which workspace, and who may read those."""

    workspace_of_task: Mapping[uuid.UUID, uuid.UUID | None]
    workspaces: set[uuid.UUID]
    readers: set[tuple[uuid.UUID, int]]
    task_of_session: dict[uuid.UUID, uuid.UUID]

    def sees(self, principal: Principal, key: Key) -> bool:
        """Whether `principal` may follow `key`, as `access.task` and `access.workspace` would say."""
        if key.kind == "task":
            return self._sees_task(principal, key.pk)
        return key.pk in self.workspaces and self._reads(principal, key.pk)

    def _sees_task(self, principal: Principal, pk: uuid.UUID) -> bool:
        if pk not in self.workspace_of_task:
            return False
        if principal.session_id is not None:
            return self.task_of_session.get(principal.session_id) == pk
        return self._reads(principal, self.workspace_of_task[pk])

    def _reads(self, principal: Principal, workspace: uuid.UUID | None) -> bool:
        if principal.unscoped or principal.user is None or workspace is None:
            return principal.unscoped
        return (workspace, principal.user.pk) in self.readers


def read(principals: Collection[Principal], keys: Collection[Key]) -> Reach:
    """Reads what `sees` needs for these principals and keys."""
    tasks = _workspace_of_task({key.pk for key in keys if key.kind == "task"})
    wanted = {key.pk for key in keys if key.kind == "workspace"} | {pk for pk in tasks.values() if pk is not None}
    owners = {row.pk: row.owner_id for row in Workspace.objects.filter(pk__in=wanted).only("owner")}
    people = {principal.user.pk for principal in principals if principal.user is not None}
    members = Membership.objects.filter(workspace__in=owners, user__in=people, role__in=ROLES[Need.READ])
    readers = {(workspace, owner) for workspace, owner in owners.items() if owner is not None}
    readers |= set(members.values_list("workspace_id", "user_id"))
    agents = {principal.session_id for principal in principals if principal.session_id is not None}
    sessions = dict(Session.objects.filter(pk__in=agents).values_list("pk", "task_id"))
    return Reach(tasks, set(owners), readers, sessions)


def _workspace_of_task(ids: set[uuid.UUID]) -> dict[uuid.UUID, uuid.UUID | None]:
    return {task.pk: task.workspace_id for task in Task.objects.filter(pk__in=ids).only("workspace_id")}
