"""Sign in and out: Django's own views, with failed log-ins counted per address (promise H8)."""

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from tasks import rates
from tasks.authentication import address_of
from tasks.errors import TooMany
from tasks.pages.base import refusal


class SignIn(LoginView):
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """An address that used up its failures is not even asked for a password; looking at the form is free."""
        try:
            if request.method == "POST":
                rates.check_login(address_of(request))
            return super().dispatch(request, *args, **kwargs)
        except TooMany as error:
            return refusal(request, error)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        rates.count_failed_login(address_of(self.request))
        return super().form_invalid(form)
