"""Products of real processes, on the database under test."""

import pytest

from tests.conftest import MakeProduct
from tests.support.processes import Product, Server


def first_server(product: Product) -> Server:
    server = product.processes[0]
    assert isinstance(server, Server)
    return server


def test_a_product_is_ready_and_knows_its_people(product: Product) -> None:
    for name in ("owner", "answerer", "viewer", "stranger"):
        assert product.client(name).get("/boot").status_code == 200


def test_a_killed_server_comes_back_on_its_port_and_its_database(product: Product) -> None:
    server = first_server(product)
    owner = product.client("owner")
    workspace = owner.post("/workspaces", json={"name": "kept"}).json()["id"]
    server.kill9()
    assert server.exit_code == -9
    server.restart()
    assert product.client("owner", server).get(f"/workspaces/{workspace}").json()["name"] == "kept"


def test_a_server_stops_when_asked(product: Product) -> None:
    server = first_server(product)
    server.term()
    assert server.exit_code is not None
    assert "Traceback" not in server.logs()


def test_products_do_not_share_a_database(make_product: MakeProduct) -> None:
    first, second = make_product(), make_product()
    first.manage("shell", "-c", "from django.contrib.auth.models import User; User.objects.create_user('only-here')")
    count = "from django.contrib.auth.models import User; print(User.objects.filter(username='only-here').count())"
    assert first.manage("shell", "-v0", "-c", count).stdout.strip() == "1"
    assert second.manage("shell", "-v0", "-c", count).stdout.strip() == "0"


@pytest.mark.parametrize("redis", [False, True])
def test_a_frozen_server_wakes_up(make_product: MakeProduct, redis: bool) -> None:
    product = make_product(redis=redis)
    server = product.start()
    server.freeze()
    server.thaw()
    server.ready()
