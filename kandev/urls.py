from django.contrib import admin
from django.contrib.auth.views import LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.decorators.cache import cache_control
from django.views.i18n import JavaScriptCatalog

from kandev.apidocs import Docs, Schema
from tasks.api.base import Missing
from tasks.pages.accounts import SignIn


def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """There is one sign-in form; who is signed in, no member of the staff and sent here nevertheless is told so."""
    if request.user.is_authenticated and not admin.site.has_permission(request):
        raise PermissionDenied
    return redirect_to_login(request.GET.get("next") or "/admin/")


urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include("tasks.urls")),
    path("api/v1/", include("turns.urls")),
    path("api/v1/", include("clarifications.urls")),
    path("api/v1/schema", Schema.as_view(), name="schema"),
    path("api/v1/docs", Docs.as_view(url_name="schema"), name="docs"),
    re_path(r"^api/", Missing.as_view()),
    path("admin/login/", admin_sign_in),
    path("admin/", admin.site.urls),
    path("", include("tasks.pages.urls")),
    path("", include("turns.pages.urls")),
    path("", include("clarifications.pages.urls")),
    path("accounts/login/", SignIn.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("texts.js", cache_control(private=True, max_age=3600)(JavaScriptCatalog.as_view()), name="javascript-catalog"),
]
