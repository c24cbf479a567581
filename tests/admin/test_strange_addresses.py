"""Addresses that nobody types: the same answer on both databases, and never a 500 (B03, B32 of the fault list)."""

import pytest
from django.contrib import admin
from django.test import Client

from tests.admin.conftest import Desk
from tests.admin.test_read_only import MODELS, url

STRANGE = ["%00", "a%00b", "%FF", "9" * 30, "[]"]


@pytest.mark.parametrize("text", STRANGE)
def test_a_strange_filter_search_page_or_id_is_refused_or_finds_nothing(desk: Desk, root: Client, text: str) -> None:
    root.raise_request_exception = False
    for model in MODELS:
        filters = [name for name in admin.site._registry[model].list_filter if isinstance(name, str)]
        queries = ["q", "p", "o", "e", "id__exact", *(f"{name}__exact" for name in filters)]
        for query in queries:
            got = root.get(f"{url(model)}?{query}={text}")
            assert got.status_code < 500, (model, query)
        assert root.get(url(model, text, "change").replace("%25", "%")).status_code < 500, model


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/tasks?workspace=%00", 400),
        ("/questions?%00=1", 400),
        ("/?a=b&a=%00", 400),
        ("/admin/autocomplete/?app_label=tasks&model_name=task&field_name=workspace&term=%00", 400),
        ("/tasks/%00", 404),
        ("/admin/turns/runner/a%00/change/", 404),
        ("/static/%00", 404),
    ],
)
def test_a_nul_in_an_address_is_refused(desk: Desk, root: Client, address: str, status: int) -> None:
    root.raise_request_exception = False
    assert root.get(address).status_code == status
