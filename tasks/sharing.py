"""Workspaces: who owns one and who is a member with which role. Members are replaced as a whole (contract 3)."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from tasks import hints
from tasks.errors import Invalid, NotFound
from tasks.models import Membership, Workspace


@dataclass(frozen=True)
class Member:
    user: str
    role: str


def create_workspace(owner: User | None, name: str, members: Iterable[Member] = ()) -> Workspace:
    """A workspace of its creator or whom he named; nobody's when authentication is off and nobody signed in."""
    people = _people_of(members)
    with transaction.atomic():
        made = Workspace.objects.create(name=name, owner=owner)
        _replace(made, people)
    return made


def change_workspace(
    workspace_id: uuid.UUID,
    *,
    name: str | None = None,
    owner: str | None = None,
    disown: bool = False,
    members: Iterable[Member] | None = None,
) -> None:
    """Changes what is given; `disown` leaves it without an owner. Access is the caller's to check.

    The row's lock keeps two replacements of the members apart: the later one stands whole.
    """
    changes: dict[str, object] = {} if name is None else {"name": name}
    if owner is not None or disown:
        changes["owner"] = owner_named(owner)
    people = None if members is None else _people_of(members)
    with transaction.atomic():
        row = lock_workspace(workspace_id)
        if changes:
            Workspace.objects.filter(pk=row.pk).update(**changes)
        if people is not None:
            row.memberships.all().delete()
            _replace(row, people)
        hints.after_commit(hints.ACCESS)


def owner_named(name: str | None) -> User | None:
    """The person with this user name, or nobody for None; Invalid for `owner` when there is no such person."""
    return None if name is None else find_people("owner", [name])[name]


def lock_workspace(workspace_id: uuid.UUID) -> Workspace:
    """The row, locked to the transaction's end; NotFound when it is gone. Before any lock on tasks and sessions."""
    row = Workspace.objects.select_for_update(of=("self",)).filter(pk=workspace_id).first()
    if row is None:
        raise NotFound
    return row


def find_people(field: str, names: Iterable[str]) -> dict[str, User]:
    """People by user name; Invalid for `field` when one is unknown."""
    wanted = set(names)
    found = {user.get_username(): user for user in User.objects.filter(username__in=wanted)}
    if missing := sorted(wanted - set(found)):
        raise Invalid(f"{field}: no such user", fields={field: [f"there is no user {name}" for name in missing]})
    return found


def _people_of(members: Iterable[Member]) -> list[tuple[User, str]]:
    listed = list(members)
    if len({member.user for member in listed}) < len(listed):
        raise Invalid("members: named twice", fields={"members": ["names a user twice"]})
    users = find_people("members", [member.user for member in listed])
    return [(users[member.user], member.role) for member in listed]


def _replace(workspace: Workspace, people: Iterable[tuple[User, str]]) -> None:
    Membership.objects.bulk_create(Membership(workspace=workspace, user=user, role=role) for user, role in people)
