"""Remove one transcript row. Turn ownership never moves for it (A3); the last pending row of a bundle ends it (R40)."""

import uuid

from django.db import transaction
from django.utils import timezone

from tasks import access, revisions
from tasks.errors import NotFound
from tasks.models import Session
from tasks.principals import Need, Principal
from turns import permitting, points, transcript
from turns.models import Message


def remove(principal: Principal, message_id: object) -> None:
    """NotFound when unknown, gone or not the caller's to see; Forbidden when he may not write."""
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
        permitting.removing(row, session, now)
        if not Message.objects.filter(pk=pk).delete()[0]:
            raise NotFound
        row.pk = pk
        transcript.tell(transcript.DELETED, session, [row], now)
        points.message_deleted.run(row, session, now)
