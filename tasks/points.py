"""The hooks of this layer. Each says when it runs; higher layers connect in `kandev.wiring`."""

import datetime as dt
import uuid

from django.db.models import Q

from tasks.hooks import Hook
from tasks.models import Session
from tasks.principals import Principal

# Inside the transaction that makes a session terminal, its row locked and already updated: (session, now).
session_ending: Hook[Session, dt.datetime] = Hook("session_ending")
# After that commit: (session_id, now). A failing receiver is logged and swept later; the end stands (R30).
session_ended: Hook[uuid.UUID, dt.datetime] = Hook("session_ended")
# After the commit that created a session with a first prompt: (session, prompt, principal). May raise a KandevError.
prompt_given: Hook[Session, str, Principal] = Hook("prompt_given")
# Whether something outstanding keeps a task where it is, beside its active questions (R3): (task_id) -> bool.
move_blocked: Hook[uuid.UUID] = Hook("move_blocked")
# Conditions on a Session row that make a session input-capable when it is not terminal (R41): () -> Q.
input_capable: Hook[[]] = Hook("input_capable")


def input_capable_condition() -> Q:
    """Any of the registered conditions; without one nothing is input-capable."""
    condition = Q(pk__in=[])
    for part in input_capable.run():
        condition |= part
    return condition
