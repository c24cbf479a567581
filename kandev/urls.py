from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.decorators.cache import cache_control
from django.views.generic import RedirectView
from django.views.i18n import JavaScriptCatalog
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from tasks.api.base import Missing
from tasks.pages.accounts import SignIn

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include("tasks.urls")),
    path("api/v1/", include("turns.urls")),
    path("api/v1/", include("clarifications.urls")),
    path("api/v1/schema", SpectacularAPIView.as_view(), name="schema"),
    path("api/v1/docs", SpectacularSwaggerView.as_view(url_name="schema", authentication_classes=[]), name="docs"),
    re_path(r"^api/", Missing.as_view()),
    path("admin/login/", RedirectView.as_view(pattern_name="login", query_string=True)),
    path("admin/", admin.site.urls),
    path("", include("tasks.pages.urls")),
    path("", include("turns.pages.urls")),
    path("", include("clarifications.pages.urls")),
    path("accounts/login/", SignIn.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("texts.js", cache_control(private=True, max_age=3600)(JavaScriptCatalog.as_view()), name="javascript-catalog"),
]
