"""REST addresses of this layer under /api/v1/. An id is any text: a malformed one is the same 404 as an unknown one."""

from django.urls import path, re_path

from tasks import openapi as openapi  # registers how callers authenticate
from tasks.api.boot import Boot
from tasks.api.sessions import EndSession, OneSession, TaskSessions
from tasks.api.tasks import Move, OneTask, Tasks
from tasks.api.workspaces import Board, OneWorkspace, Workspaces

urlpatterns = [
    path("boot", Boot.as_view()),
    path("workspaces", Workspaces.as_view()),
    path("workspaces/<str:pk>", OneWorkspace.as_view()),
    path("workspaces/<str:pk>/board", Board.as_view()),
    path("tasks", Tasks.as_view()),
    path("tasks/<str:pk>", OneTask.as_view()),
    path("tasks/<str:pk>/move", Move.as_view()),
    path("tasks/<str:pk>/task-sessions", TaskSessions.as_view()),
    path("task-sessions/<str:pk>", OneSession.as_view()),
    re_path(r"^task-sessions/(?P<pk>[^/]+)/(?P<verb>complete|fail|cancel)$", EndSession.as_view()),
]
