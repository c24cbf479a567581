"""REST addresses of this layer under /api/v1/."""

from django.urls import path

from turns.api.permissions import AnswerPermission
from turns.api.views import Messages, OneMessage, Turns

urlpatterns = [
    path("task-sessions/<str:pk>/turns", Turns.as_view()),
    path("task-sessions/<str:pk>/messages", Messages.as_view()),
    path("messages/<str:pk>", OneMessage.as_view()),
    path("permissions/<str:pk>/answer", AnswerPermission.as_view()),
]
