"""The table of access is the product's, and whole: an address that is not in it fails here."""

import os
import re

import pytest
from pytest_django import Settings

from kandev import server
from tasks import instances
from tasks.models import Session
from tasks.threads import in_thread
from tests.access import administration, beside, calling, reading, routes, table
from tests.access import cast as casting
from tests.access.cast import CALLERS, Cast

pytestmark = [pytest.mark.scenario("H1", "H3", "H4", "H5"), pytest.mark.timeout(400)]
DJANGO = {"REST": table.REST, "pages": table.PAGES, "admin": table.ADMIN}
DOCS = routes.ROOT / "docs" / "access.md"


@pytest.mark.parametrize("part", DJANGO)
def test_each_caller_hears_what_the_table_says(cast: Cast, settings: Settings, part: str) -> None:
    rows = reading.rows(DJANGO[part])
    for column, name in enumerate(CALLERS):
        if name == "auth off":
            settings.KANDEV_AUTH = "off"
        heard = {row: str(calling.status(cast, row, name, cast.ids)) for row in rows}
        assert heard == {row: cells[column] for row, cells in rows.items()}, name


@pytest.mark.parametrize("name", ["viewer", "agent", "staff", "superuser"])
def test_each_page_of_the_admin_opens_to_those_the_table_names(cast: Cast, name: str) -> None:
    administration.fill(cast)
    wanted = reading.models()
    heard: dict[str, dict[str, list[str]]] = {}
    for model, pages in wanted.items():
        pk = administration.models()[model]._default_manager.first().pk
        for page in pages:
            address = f"GET /admin/{model}/{administration.PAGES[page]}".replace("{pk}", str(pk))
            heard.setdefault(model, {})[page] = [str(calling.status(cast, address, name, {}))]
    column = {"staff": 0, "superuser": 1}.get(name)
    expected = {
        model: {page: ["302" if column is None else cells[column]] for page, cells in pages.items()}
        for model, pages in wanted.items()
    }
    assert heard == expected


@pytest.mark.parametrize("row", reading.rows(table.BESIDE))
async def test_what_is_served_beside_django_answers_as_the_table_says(
    transactional_db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    monkeypatch.setattr(server, "is_ready", lambda: True)
    heard = {}
    for name in CALLERS:
        settings.KANDEV_AUTH = "off" if name == "auth off" else "required"
        cast = await in_thread(_anew)
        heard[name] = str(await beside.status(cast, row, name, cast.ids))
    assert heard == dict(zip(CALLERS, reading.rows(table.BESIDE)[row], strict=True))


def _anew() -> Cast:
    """An answer cannot be taken back here, so each caller finds a question of his own."""
    from django.contrib.auth.models import User

    Session.objects.all().delete()
    User.objects.all().delete()
    if not instances.generation():
        instances.register()
    return casting.gather()


@pytest.mark.once
def test_every_address_of_django_is_in_the_table() -> None:
    listed = {_plain(row) for text in DJANGO.values() for row in reading.rows(text)}
    for model in reading.models():
        listed |= {f"/admin/{model}/{routes.plain(path)}" for path in administration.PAGES.values()}
    served = {route for route in routes.django_routes() if route not in PLUMBING}
    assert served - {_general(route) for route in listed} == set()


# Redirects and the password form that Django's admin adds to its models; and its catch-all.
PLUMBING = {f"/admin/{model}/{{}}/" for model in administration.models()} | {
    "/admin/auth/user/{}/password/",
    "/admin/{}",
}


def _plain(row: str) -> str:
    return routes.plain(row.split(" ")[1])


def _general(route: str) -> str:
    """The verbs of a session and an application of the admin stand for a pattern."""
    route = re.sub(r"(/task-sessions/\{\})/(complete|fail|cancel)$", r"\1/{}", route)
    return re.sub(r"^/admin/(tasks|auth)/$", "/admin/{}/", route)


@pytest.mark.once
def test_every_method_of_a_rest_view_is_in_the_table() -> None:
    listed = {f"{row.split(' ')[0]} {_general(_plain(row))}" for row in reading.rows(table.REST)}
    assert routes.api_methods() - listed == set()


@pytest.mark.once
def test_every_address_beside_django_is_in_the_table() -> None:
    assert routes.beside_django() == {_plain(row) for row in reading.rows(table.BESIDE)}


@pytest.mark.once
def test_every_model_of_the_admin_is_in_the_table() -> None:
    assert set(administration.models()) == set(reading.models())


@pytest.mark.once
def test_the_page_of_access_is_made_from_the_table() -> None:
    if os.environ.get("ACCESS_PAGE") == "write":
        DOCS.write_text(reading.page(), encoding="utf-8")
    assert DOCS.read_text(encoding="utf-8") == reading.page(), "stale: run this test with ACCESS_PAGE=write"
