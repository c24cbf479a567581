"""The task list with its icons: statements, and Python on top of a bare view."""

import time
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from rest_framework.request import Request
from rest_framework.response import Response

from kandev.bench import seeding
from kandev.bench.report import Plan, Row, median
from kandev.bench.seeding import Scene
from tasks.api.base import Api
from tasks.api.tasks import Tasks


class Bare(Api):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> Response:
        return Response({"next": None, "previous": None, "results": []})


def measure(scene: Scene, plan: Plan) -> Row:
    seeding.asked(scene, plan.tasks)
    list_tasks, bare = _call(Tasks.as_view(), scene), _call(Bare.as_view(), scene)
    found = list_tasks()  # mends the summaries
    assert len(found["results"]) == plan.tasks
    assert all(task["pending_action"] == "clarification" for task in found["results"])
    with CaptureQueriesContext(connection) as captured:
        list_tasks()
    pairs = [(_seconds(list_tasks), _seconds(bare)) for _ in range(plan.samples // 4 + 1)]
    above = median(ours - floor for ours, floor in pairs) * 1e3
    figures = f"{len(captured)} queries, {above:.0f} ms"
    met = len(captured) <= 6 and above <= 50
    return Row(
        f"task list of {plan.tasks} tasks", "at most 6 queries, 50 ms of Python on top of a bare view", figures, met
    )


def _call(view: Callable[..., Any], scene: Scene) -> Callable[[], dict[str, Any]]:
    def call() -> dict[str, Any]:
        path = f"/api/v1/tasks?limit=200&workspace={scene.workspace.pk}"
        request = RequestFactory().get(path, headers={"Authorization": f"Bearer {scene.token}", "Host": "127.0.0.1"})
        response = view(request)
        response.render()
        assert response.status_code == 200, response.content
        return dict(response.data)

    return call


def _seconds(call: Callable[[], object]) -> float:
    """CPU time of this thread: the database works in another process."""
    started = time.thread_time()
    call()
    return time.thread_time() - started
