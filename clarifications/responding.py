"""Respond (contract 4), the same for REST, MCP and pages: identify, authorize, validate, claim, hand over, finalize."""

import datetime as dt
from typing import Any

from django.conf import settings
from django.utils import timezone

from clarifications import answers, bundles, claiming, delivering, drafting
from clarifications.claiming import Lost
from tasks import failpoints, rates
from tasks.principals import Need, Principal


def respond(principal: Principal, pending_id: str, payload: object) -> dict[str, Any]:
    """The 200 body for winner and loser; raises a KandevError for every other outcome of contract 4."""
    deadline = timezone.now() + dt.timedelta(seconds=settings.KANDEV_CLAIM_TIMEOUT_S)
    bundle = bundles.reach(principal, pending_id, Need.ANSWER)
    refuse_agents(principal)
    rates.count_answer(principal)
    said = answers.clean(payload, bundle.rows)
    claimed = claiming.claim(principal, bundle, said, deadline)
    if isinstance(claimed, Lost):
        return claimed.body
    failpoints.reach("respond.after_claim")
    body = delivering.deliver(claimed, bundle.session)
    if claimed.drafted:
        drafting.forget(principal, pending_id)
    return body


def refuse_agents(principal: Principal) -> None:
    """An agent does not answer its own question."""
    from tasks.errors import Forbidden

    if principal.is_agent:
        raise Forbidden("an agent does not answer questions")
