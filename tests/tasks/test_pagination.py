"""Cursor pages: whole, stable under change, and strict about their cursors (B17)."""

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from tasks.models import Task
from tests.tasks.conftest import Scene, add_session, add_task


@pytest.fixture
def many(scene: Scene) -> list[str]:
    """Nine tasks, several of the same moment, oldest first."""
    made = [scene.task, *(add_task(scene.workspace, f"t{n}") for n in range(8))]
    start = timezone.now() - dt.timedelta(hours=1)
    for number, task in enumerate(made):
        Task.objects.filter(pk=task.pk).update(created_at=start + dt.timedelta(seconds=number // 4))
    return [str(task.pk) for task in Task.objects.order_by("created_at", "id")]


def ids(page: Any) -> list[str]:
    return [row["id"] for row in page["results"]]


def test_pages_follow_each_other_and_lead_back(scene: Scene, many: list[str]) -> None:
    page = scene["viewer"].ok("GET", "/tasks?limit=4")
    assert page["previous"] is None
    seen, pages = ids(page), [page]
    while page["next"]:
        page = scene["viewer"].ok("GET", page["next"])
        seen, pages = seen + ids(page), [*pages, page]
    assert seen == many
    assert [len(ids(one)) for one in pages] == [4, 4, 1]
    for earlier in reversed(pages[:-1]):
        page = scene["viewer"].ok("GET", page["previous"])
        assert ids(page) == ids(earlier)
    assert page["previous"] is None
    assert ids(scene["viewer"].ok("GET", page["next"])) == ids(pages[1])


def test_rows_that_come_and_go_shift_nothing(scene: Scene, many: list[str]) -> None:
    first = scene["viewer"].ok("GET", "/tasks?limit=4")
    Task.objects.filter(pk__in=ids(first)).delete()
    add_task(scene.workspace)
    assert ids(scene["viewer"].ok("GET", first["next"])) == many[4:8]


def test_a_cursor_that_outlived_its_rows_gives_an_empty_page(scene: Scene, many: list[str]) -> None:
    first = scene["viewer"].ok("GET", "/tasks?limit=4")
    Task.objects.filter(pk__in=many[4:]).delete()
    assert scene["viewer"].ok("GET", first["next"]) == {"next": None, "previous": None, "results": []}


def test_a_link_keeps_the_filters(scene: Scene, many: list[str]) -> None:
    page = scene["viewer"].ok("GET", f"/tasks?limit=3&state=todo&workspace={scene.workspace.pk}")
    assert "state=todo" in page["next"]
    assert ids(scene["viewer"].ok("GET", page["next"])) == many[3:6]


def test_a_limit_is_capped(scene: Scene, many: list[str]) -> None:
    for limit in ("200", "201", "9" * 30):
        assert ids(scene["viewer"].ok("GET", f"/tasks?limit={limit}")) == many


def bad_cursors(good: str) -> list[str]:
    flipped = good[:-1] + ("A" if good[-1] != "A" else "B")
    turned = ("A" if good[0] != "A" else "B") + good[1:]
    return [
        "",
        "null",
        "with%20space",
        good[:-2],
        flipped,
        turned,
        good + "x",
        "x" * 10_000,
        "%00",
        "%FF",
        good + "%00",
    ]


def test_a_broken_cursor_is_a_400_that_names_it(scene: Scene, many: list[str]) -> None:
    good = scene["viewer"].ok("GET", "/tasks?limit=2")["next"].split("cursor=")[1].split("&")[0]
    assert scene["viewer"]("GET", f"/tasks?cursor={good}").status_code == 200
    for bad in bad_cursors(good):
        got = scene["viewer"]("GET", f"/tasks?cursor={bad}")
        assert (got.status_code, list(got.json()["fields"])) == (400, ["cursor"]), bad  # type: ignore[attr-defined]


def test_a_cursor_of_another_list_is_a_400(scene: Scene, many: list[str]) -> None:
    for _ in range(2):
        add_session(scene.task)
    path = f"/tasks/{scene.task.pk}/task-sessions"
    cursor = scene["viewer"].ok("GET", f"{path}?limit=1")["next"].split("cursor=")[1].split("&")[0]
    assert scene["viewer"]("GET", f"{path}?cursor={cursor}").status_code == 200
    assert scene["viewer"]("GET", f"/tasks?cursor={cursor}").status_code == 400


def test_another_persons_cursor_is_a_400_also_where_he_sees_the_same(scene: Scene, many: list[str]) -> None:
    following = scene["viewer"].ok("GET", "/tasks?limit=2")["next"]
    for name in ("stranger", "owner", "agent"):
        got = scene[name]("GET", following)
        assert (got.status_code, list(got.json()["fields"])) == (400, ["cursor"])  # type: ignore[attr-defined]


def test_a_cursor_of_the_same_list_elsewhere_is_a_400(scene: Scene) -> None:
    other = add_task(scene.workspace)
    for task in (scene.task, other):
        add_session(task), add_session(task)
    cursor = scene["viewer"].ok("GET", f"/tasks/{other.pk}/task-sessions?limit=1")["next"].split("cursor=")[1]
    assert scene["viewer"]("GET", f"/tasks/{scene.task.pk}/task-sessions?cursor={cursor}").status_code == 400


@pytest.mark.parametrize("count", [1, 200])
def test_a_page_costs_the_same_few_queries_whatever_its_length(
    scene: Scene, django_assert_max_num_queries: Any, count: int
) -> None:
    for number in range(count - 1):
        add_session(add_task(scene.workspace, str(number)), is_primary=True)
    scene["viewer"].ok("GET", "/tasks")
    with django_assert_max_num_queries(6):
        assert len(scene["viewer"].ok("GET", "/tasks?limit=200")["results"]) == count
