"""`/api/v1/schema` and `/api/v1/docs`: what drf-spectacular serves, with our errors."""

from typing import Any

from django.http import JsonResponse
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from tasks.errors import translate


class Schema(SpectacularAPIView):
    metadata_class = None


class Docs(SpectacularSwaggerView):
    """A page for everybody. An error has no template to be shown with; it is JSON like any other."""

    metadata_class = None
    authentication_classes = ()

    def handle_exception(self, exc: Exception) -> Any:
        refusal = translate(exc)
        return JsonResponse(refusal.body(), status=refusal.status)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(response, JsonResponse):
            return response
        return super().finalize_response(request, response, *args, **kwargs)
