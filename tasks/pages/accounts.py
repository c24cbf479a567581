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
        """Looking at the form is free, also for an address that used up its failures."""
        try:
            return super().dispatch(request, *args, **kwargs)
        except TooMany as error:
            return refusal(request, error)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Counted before the password is looked at, so that guesses at the same moment cannot all get through."""
        rates.count_login(address_of(request))
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        rates.forgive_login(address_of(self.request))
        return super().form_valid(form)
