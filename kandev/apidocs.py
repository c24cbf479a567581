"""`/api/v1/schema` and `/api/v1/docs`: what drf-spectacular serves, with our errors."""

from typing import Any

from django.http import JsonResponse
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView
from rest_framework.views import APIView

from kandev.middleware import as_json
from tasks.errors import translate


class _JsonErrors(APIView):
    """The view writes YAML or a page; an error is JSON like any other."""

    metadata_class = None

    def handle_exception(self, exc: Exception) -> Any:
        response = as_json(translate(exc))
        if response.status_code == 405:
            response.headers["Allow"] = ", ".join(self.allowed_methods)
        return response

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(response, JsonResponse):
            return response
        return super().finalize_response(request, response, *args, **kwargs)


class Schema(_JsonErrors, SpectacularAPIView):
    pass


class Docs(_JsonErrors, SpectacularSwaggerView):
    """A page for everybody."""

    authentication_classes = ()
