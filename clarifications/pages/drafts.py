"""Saves and forgets a person's draft while it is typed (`sync.js`)."""

from django.http import HttpResponse

from clarifications import drafting
from tasks import strictjson
from tasks.pages.base import PageRequest, page
from tasks.principals import Principal


@page
def draft(request: PageRequest, principal: Principal, pending_id: str) -> HttpResponse:
    if request.method == "DELETE":
        drafting.drop(principal, pending_id)
    else:
        drafting.save(principal, pending_id, strictjson.parse(request.body))
    return HttpResponse(status=204)
