"""Who in this process follows which task or workspace, and the delivery of notifications to them.

Touched on the event loop only, so it needs no lock. A notification is one text that was serialised once; a thousand
sockets get the same object.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Key(NamedTuple):
    """What a socket follows: kind "task" or "workspace" and its id."""

    kind: str
    pk: uuid.UUID

    @property
    def field(self) -> str:
        """The name of the id on the wire: task_id or workspace_id."""
        return f"{self.kind}_id"


@dataclass(frozen=True, slots=True)
class Notification:
    """`text` is the whole envelope of contract 7, the ids say who gets it; a task's own event has no `session_id`."""

    text: str
    task_id: uuid.UUID
    workspace_id: uuid.UUID | None = None
    session_id: uuid.UUID | None = None

    def pack(self) -> list[str]:
        """Plain values for the channel layer."""
        return [self.text, *(pk.hex if pk else "" for pk in (self.task_id, self.workspace_id, self.session_id))]

    @classmethod
    def unpack(cls, packed: list[str]) -> "Notification":
        text, task, workspace, session = packed
        return cls(text, uuid.UUID(task), *(uuid.UUID(pk) if pk else None for pk in (workspace, session)))


class Follower(Protocol):
    """`push` takes a notification at once or closes its socket; it never blocks and never raises."""

    def push(self, notification: Notification) -> None: ...


_followers: dict[Key, set[Follower]] = defaultdict(set)


def follow(key: Key, follower: Follower) -> None:
    _followers[key].add(follower)


def unfollow(key: Key, follower: Follower) -> None:
    _followers[key].discard(follower)
    if not _followers[key]:
        del _followers[key]


def deliver(notifications: Iterable[Notification]) -> None:
    """Pushes each to everybody who follows its task or its workspace, once even to who follows both."""
    for notification in notifications:
        for follower in _of(notification):
            follower.push(notification)


def _of(notification: Notification) -> set[Follower]:
    found = set(_followers.get(Key("task", notification.task_id), ()))
    if notification.workspace_id is not None:
        found |= _followers.get(Key("workspace", notification.workspace_id), set())
    return found


def followed() -> list[Key]:
    return list(_followers)


def followers(key: Key) -> list[Follower]:
    return list(_followers.get(key, ()))
