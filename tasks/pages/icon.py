"""The address at which programs look for an icon without reading the page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.views.decorators.cache import cache_control


@cache_control(public=True, max_age=3600)
def favicon(_request: HttpRequest) -> HttpResponse:
    return redirect(static("kandev/favicon.svg"))
