"""REST addresses of this layer under /api/v1/; `…/wait` is served beside Django (`kandev.asgi`)."""

from django.urls import path

from clarifications.api.views import Ask, Cancel, LateAnswer, OneBundle, Respond
from clarifications.rest_discovery import Pending

urlpatterns = [
    path("clarifications", Pending.as_view()),
    path("clarification/request", Ask.as_view()),
    path("clarification/<str:pending_id>", OneBundle.as_view()),
    path("clarification/<str:pending_id>/respond", Respond.as_view()),
    path("clarification/<str:pending_id>/cancel", Cancel.as_view()),
    path("clarification/<str:pending_id>/late-answer", LateAnswer.as_view()),
]
