from django.urls import path
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from tasks.pages import activation, board, icon, task, tokens

app_name = "tasks"
urlpatterns = [
    path("", require_GET(board.board), name="board"),
    path("favicon.ico", icon.favicon),
    path("tasks", require_GET(task.switcher), name="switcher"),
    path("tasks/<str:task_id>", require_GET(task.task), name="task"),
    path("tasks/<str:task_id>/open", require_GET(activation.open_task), name="open"),
    path("settings/tokens", require_http_methods(["GET", "POST"])(tokens.token_list), name="tokens"),
    path("settings/tokens/<int:pk>/revoke", require_POST(tokens.revoke), name="revoke_token"),
]
