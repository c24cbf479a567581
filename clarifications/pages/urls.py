from django.urls import path
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from clarifications.pages import drafts, forms, plain

app_name = "clarifications"
urlpatterns = [
    path("questions", require_GET(forms.inbox), name="inbox"),
    path("questions/count", require_GET(forms.count), name="count"),
    path("questions/<path:pending_id>/draft", require_http_methods(["PUT", "DELETE"])(drafts.draft), name="draft"),
    path("questions/<path:pending_id>/answer", require_POST(plain.answer), name="answer"),
    path("questions/<path:pending_id>/late", require_GET(forms.late), name="late"),
    path("sessions/<str:session_id>/questions", require_GET(forms.pending), name="question-panel"),
]
