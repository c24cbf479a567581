"""What every page shares: who calls, refusals as pages, and nothing of a page in a cache."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django_htmx.middleware import HtmxDetails

from tasks.authentication import address_of, auth_off, identify_user
from tasks.errors import Forbidden, KandevError, TooMany
from tasks.principals import Need, Principal

P = ParamSpec("P")


class PageRequest(HttpRequest):
    """A request that has passed the middleware."""

    htmx: HtmxDetails


def page(view: Callable[Concatenate[PageRequest, Principal, P], HttpResponse]) -> Callable[..., HttpResponse]:
    """A view that is given its caller. Nobody is sent to sign in; a fragment is refused, so that typed text stays."""

    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        principal = identify_user(request.user, address_of(request))
        if principal is None:
            return _sign_in(request)
        try:
            return view(request, principal, *args, **kwargs)  # type: ignore[arg-type]
        except KandevError as error:
            return refusal(request, error, principal)

    return guarded


def show(request: HttpRequest, principal: Principal, template: str, context: Mapping[str, Any]) -> HttpResponse:
    """A page or fragment; the same address gives either, told by htmx's header."""
    response = render(request, template, {**context, "principal": principal, "auth_off": auth_off()})
    patch_vary_headers(response, ["HX-Request"])
    return response


def _sign_in(request: HttpRequest) -> HttpResponse:
    if is_fragment(request) or wants_json(request):
        return HttpResponse(status=401)
    return redirect_to_login(request.get_full_path())


def is_fragment(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"


def wants_json(request: HttpRequest) -> bool:
    return request.headers.get("Accept", "").startswith("application/json")


def refusal(request: HttpRequest, error: KandevError, principal: Principal | None = None) -> HttpResponse:
    """The page of a refusal: the same bytes for what is unknown and what is not the caller's."""
    title, text = _words(error)
    context = {"title": title, "text": text, "principal": principal, "auth_off": auth_off()}
    response = render(request, "error.html", context, status=error.status)
    if isinstance(error, TooMany):
        response["Retry-After"] = str(error.retry_after_s)
    return response


def _words(error: KandevError) -> tuple[str, str]:
    if isinstance(error, TooMany):
        return _("Too many attempts"), _("Wait %(seconds)s seconds, then try again.") % {"seconds": error.retry_after_s}
    words = {
        403: (_("Not allowed"), _("You may see this, but not do that.")),
        404: (_("Not found"), _("It does not exist, or it is not yours to see.")),
        503: (_("Busy just now"), _("Try again in a moment.")),
    }
    return words.get(error.status, (_("Something failed"), _("The server could not do this. Nothing was changed.")))


def may(read: Callable[[Principal, object, Need], object], principal: Principal, pk: object, need: Need) -> bool:
    """Whether an access function would give the row for `need`; what is not visible at all still raises NotFound."""
    try:
        return bool(read(principal, pk, need))
    except Forbidden:
        return False
