"""Changes of people, members and owners that Django's own forms make (admin, password, sign-out): open sockets are
looked after at once (H6, B15). What this layer writes itself sends the hint where it is written.
"""

from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_out
from django.db.models.signals import post_delete, post_save

from tasks import hints
from tasks.models import Membership, Workspace


def connect() -> None:
    for model in (User, Membership, Workspace):
        post_save.connect(_changed, sender=model, dispatch_uid=f"access saved {model.__name__}")
        post_delete.connect(_changed, sender=model, dispatch_uid=f"access deleted {model.__name__}")
    user_logged_out.connect(_changed, dispatch_uid="access signed out")


def _changed(update_fields: frozenset[str] | None = None, **_: Any) -> None:
    """A sign-in, which only notes its time, takes nothing away."""
    if update_fields != frozenset({"last_login"}):
        hints.after_commit(hints.ACCESS)
