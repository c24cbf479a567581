"""A person's own tokens: made, shown once, revoked."""

import datetime as dt

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
    """The text is in the answer to the POST and nowhere else: no redirect could carry it without storing it."""
    form = TokenForm(request.POST or None)
    made = form.mint(principal) if principal.user and form.is_valid() else ""
    rows = (
        Token.objects.filter(user=principal.user, kind=TokenKind.PERSONAL, revoked_at__isnull=True)
        if principal.user
        else []
    )
    context = {"form": TokenForm() if made else form, "made": made, "tokens": rows, "now": timezone.now()}
    return show(request, principal, "tasks/tokens.html", context)


@page
def revoke(request: PageRequest, principal: Principal, pk: int) -> HttpResponse:
    if principal.user is None or not tokens.revoke_own(principal.user, pk):
        raise NotFound
    return redirect("tasks:tokens")
