"""Writing to a session: the form, what waits in its queue, and the agents that runners offer."""

from django.http import HttpResponse

from tasks import access
from tasks.pages.base import PageRequest, may, page, show
from tasks.principals import Need, Principal
from turns import busy, runners
from turns.models import Admission, AdmissionState


@page
def composer(request: PageRequest, principal: Principal, session_id: str) -> HttpResponse:
    session = access.session(principal, session_id)
    context = {"session": session, "may_write": may(access.session, principal, session.pk, Need.WRITE)}
    return show(request, principal, "turns/composer.html", context)


@page
def queue(request: PageRequest, principal: Principal, session_id: str) -> HttpResponse:
    """What the session does now and what waits for it; refreshed often, so it holds nothing that is typed."""
    session = access.session(principal, session_id)
    waiting = Admission.objects.filter(session=session, state=AdmissionState.QUEUED).order_by("id")
    context = {
        "session": session,
        "waiting": list(waiting[:20]),
        "waiting_count": waiting.count(),
        "may_write": may(access.session, principal, session.pk, Need.WRITE),
        "busy": busy.is_busy(session.pk),
        "offered": session.agent in runners.offered_agents(),
    }
    return show(request, principal, "turns/queue.html", context)


@page
def agents(request: PageRequest, principal: Principal) -> HttpResponse:
    return show(request, principal, "turns/agents.html", {"agents": sorted(runners.offered_agents())})
