from django.urls import path
from django.views.decorators.http import require_GET

from turns.pages import composer, permissions, transcript

app_name = "turns"
urlpatterns = [
    path("sessions/<str:session_id>/transcript", require_GET(transcript.transcript), name="transcript"),
    path("sessions/<str:session_id>/composer", require_GET(composer.composer), name="composer"),
    path("sessions/<str:session_id>/queue", require_GET(composer.queue), name="queue"),
    path("sessions/<str:session_id>/permissions", require_GET(permissions.pending), name="permission-panel"),
    path("agents", require_GET(composer.agents), name="agents"),
]
