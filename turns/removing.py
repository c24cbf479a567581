"""Remove one transcript row. Turn ownership never moves for it (A3); the last pending row of a bundle ends it (R40); a
prompt that waits in the queue leaves it with its row.
"""

import uuid

from django.db import transaction
from django.utils import timezone

from tasks import access, revisions
from tasks.errors import Conflict, NotFound
from tasks.models import Session
from tasks.principals import Need, Principal
from turns import draining, permitting, points, transcript
from turns.models import Message


class NotQueued(Conflict):
    code, message = "not_queued", "this message does not wait in the queue any more"


def remove(principal: Principal, message_id: object, only_queued: bool = False) -> None:
    """NotFound when unknown, gone or not the caller's to see; Forbidden when he may not write.

    `only_queued`: NotQueued, and nothing removed, when the prompt has gone out meanwhile.
    """
    pk = access.parse_id(message_id)
    row = Message.objects.filter(pk=pk).first()
    session = access.session(principal, row.session_id if row else uuid.uuid4(), Need.READ)
    access.session(principal, session.pk, Need.WRITE)
    with transaction.atomic():
        revisions.lock_session(session.pk)
        session = Session.objects.select_related("task").get(pk=session.pk)
        row = Message.objects.filter(pk=pk).first()
        now = timezone.now()
        if row is None:
            raise NotFound
        if not draining.withdraw_queued(session, row.pk) and only_queued:
            raise NotQueued
        permitting.removing(row, session, now)
        if not Message.objects.filter(pk=pk).delete()[0]:
            raise NotFound
        row.pk = pk
        transcript.tell(transcript.DELETED, session, [row], now)
        points.message_deleted.run(row, session, now)
