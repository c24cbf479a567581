"""A person's own tokens: made, shown once, revoked."""

import datetime as dt
import time

from django import forms
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from tasks import tokens
from tasks.errors import NotFound
from tasks.models import Token, TokenKind, TokenScope
from tasks.pages.base import PageRequest, page, show
from tasks.principals import Principal

SCOPES = (
    (TokenScope.ANSWER, _("Read and answer questions")),
    (TokenScope.READ, _("Read only")),
    (TokenScope.ALL, _("Everything that I may do")),
)
DAYS = (("30", _("30 days")), ("7", _("7 days")), ("90", _("90 days")), ("365", _("One year")), ("", _("Never")))
MADE, SHOWN_WITHIN_S = "made_token", 120


class TokenForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=200)
    scope = forms.ChoiceField(label=_("What it may do"), choices=SCOPES)
    days = forms.ChoiceField(label=_("Expires after"), choices=DAYS, required=False, initial="30")

    def mint(self, principal: Principal) -> str:
        days = self.cleaned_data["days"]
        expires = timezone.now() + dt.timedelta(days=int(days)) if days else None
        fields = {"name": self.cleaned_data["name"], "scope": self.cleaned_data["scope"], "expires_at": expires}
        return tokens.mint(TokenKind.PERSONAL, user=principal.user, **fields)


@page
def token_list(request: PageRequest, principal: Principal) -> HttpResponse:
    """A POST leads to a GET that shows the text, so that a reload makes no second token and shows this one no more."""
    form = TokenForm(request.POST or None)
    if request.method == "POST" and principal.user and form.is_valid():
        request.session[MADE] = {"text": form.mint(principal), "at": time.time()}
        return redirect("tasks:tokens")
    rows = (
        Token.objects.filter(user=principal.user, kind=TokenKind.PERSONAL, revoked_at__isnull=True)
        if principal.user
        else []
    )
    listed = [(token, dict(SCOPES)[TokenScope(token.scope)]) for token in rows]
    context = {"form": form, "made": _just_made(request), "tokens": listed, "now": timezone.now()}
    return show(request, principal, "tasks/tokens.html", context)


def _just_made(request: PageRequest) -> str:
    """The text waits in the person's session for the one page that shows it; looked at too late, it is gone."""
    if request.method != "GET" or MADE not in request.session:
        return ""
    made = request.session.pop(MADE)
    return str(made["text"]) if 0 <= time.time() - made["at"] <= SHOWN_WITHIN_S else ""


@page
def revoke(request: PageRequest, principal: Principal, pk: int) -> HttpResponse:
    if principal.user is None or not tokens.revoke_own(principal.user, pk):
        raise NotFound
    return redirect("tasks:tokens")
