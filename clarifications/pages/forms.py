"""Forms for open questions: those of one session on its task page, and all of them in the inbox."""

import datetime as dt
import json
from dataclasses import dataclass

from django.http import HttpResponse

from clarifications import bundles, discovering
from clarifications import late as late_answers
from clarifications.pages import reading
from tasks import access
from tasks.models import Session, Workspace
from tasks.pages.base import PageRequest, may, page, show
from tasks.principals import Need, Principal
from turns.models import PERMISSION, Message
from turns.pages import permissions
from turns.querysets import MessageQuerySet

INBOX_LIMIT = 100
NAMED = 200


@dataclass(frozen=True)
class Entry:
    """One thing that waits: a bundle of questions, or an agent's request for leave."""

    since: dt.datetime
    bundle: reading.Bundle | None = None
    permission: permissions.Permission | None = None


@page
def pending(request: PageRequest, principal: Principal, session_id: str) -> HttpResponse:
    """The open questions of a session, oldest first."""
    session = access.session(principal, session_id)
    found = reading.open_bundles(Message.objects.filter(session=session))
    context = {
        "entries": [Entry(one.created_at, one) for one in reading.with_drafts(principal, found)],
        "session": session,
        "may_answer": may(access.session, principal, session.pk, Need.ANSWER),
        "inbox": False,
    }
    return show(request, principal, "clarifications/pending.html", context)


@page
def inbox(request: PageRequest, principal: Principal) -> HttpResponse:
    """Every question and every request for leave that this person may answer, the longest blocked first."""
    rows = answerable(principal)
    found = reading.open_bundles(rows)
    questions = [Entry(one.created_at, one) for one in reading.with_drafts(principal, found[:INBOX_LIMIT])]
    asked = [Entry(one.message.created_at, permission=one) for one in permissions.opened(rows)]
    context = {
        "entries": sorted(questions + asked, key=lambda one: one.since)[:INBOX_LIMIT],
        "total": len(found) + rows.active(PERMISSION).order_by().count(),
        "may_answer": True,
        "inbox": True,
        "workspaces": Workspace.objects.reachable(principal),
    }
    return show(
        request, principal, "clarifications/pending.html" if request.htmx else "clarifications/inbox.html", context
    )


@page
def count(request: PageRequest, principal: Principal) -> HttpResponse:
    """How many things wait, and their names, so that a page announces each of them once."""
    rows = answerable(principal)
    questions = discovering.heads(rows).order_by().values_list("pending_id", flat=True)
    names = [*questions, *map(str, rows.active(PERMISSION).order_by().values_list("pk", flat=True))]
    context = {"number": len(names), "names": json.dumps(names[:NAMED])}
    return show(request, principal, "clarifications/count.html", context)


@page
def late(request: PageRequest, principal: Principal, pending_id: str) -> HttpResponse:
    """The form that sends the answer to an unanswered question of the past as a new message."""
    known = bundles.reach(principal, pending_id)
    session, found = known.session, reading.bundle(known.rows, live=False)
    context = {
        "bundle": reading.with_drafts(principal, [found])[0],
        "session": session,
        "may_answer": may(access.session, principal, session.pk, Need.ANSWER),
        "offered": late_answers.offered(pending_id),
    }
    return show(request, principal, "clarifications/late.html", context)


def answerable(principal: Principal) -> MessageQuerySet:
    """Rows of sessions in which this person may answer; visibility is part of the query."""
    mine = Session.objects.reachable(principal, Need.ANSWER).values("pk")
    return Message.objects.filter(session__in=mine)
