"""Who gets in: the right kind of living token, and nobody else."""

import httpx2
import pytest

from tests.conftest import MakeProduct
from tests.mcp.conftest import MakeScene
from tests.mcp.scenes import ANSWER, LIST, TASKS, Scene, message, post, result_of, tool_call
from tests.support.web import LOCAL

SURFACES = ("/mcp/session", "/mcp")


@pytest.mark.scenario("H5")
@pytest.mark.parametrize("surface", SURFACES)
def test_no_dead_and_wrong_tokens_are_401(scene: Scene, surface: str) -> None:
    wrong = {"/mcp/session": scene.product.tokens["owner"], "/mcp": scene.token}[surface]
    for token in (None, "", "nonsense", "kdv_ses_unknown", "kdv_pat_unknown", wrong, scene.product.tokens["runner-1"]):
        got = post(scene.url(surface), token, message("tools/list"))
        assert (got.status_code, got.headers["www-authenticate"]) == (401, "Bearer"), token
        assert got.json()["code"] == "unauthorized"


@pytest.mark.scenario("H5")
def test_a_revoked_token_is_401(scene: Scene) -> None:
    token = scene.product.manage("token", "personal", "--user", "owner").stdout.strip()
    assert post(scene.url("/mcp"), token, message("tools/list")).status_code == 200
    scene.product.manage("token", "revoke", token)
    assert post(scene.url("/mcp"), token, message("tools/list")).status_code == 401


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_post_is_served(scene: Scene, method: str) -> None:
    url, bearer = scene.url("/mcp"), {"Authorization": f"Bearer {scene.product.tokens['owner']}"}
    got = httpx2.request(method, url, headers=bearer, **LOCAL)
    assert (got.status_code, got.headers["allow"]) == (405, "POST")
    assert httpx2.request(method, url, **LOCAL).status_code == 401


@pytest.mark.scenario("H8")
def test_failed_tokens_are_limited_and_a_good_one_still_works(make_product: MakeProduct, make_scene: MakeScene) -> None:
    product = make_product(KANDEV_RATE_TOKEN="3/m")
    product.start()
    scene = make_scene(product)
    statuses = [post(scene.url(), "kdv_ses_guess", message("ping")) for _ in range(5)]
    assert [one.status_code for one in statuses] == [401, 401, 401, 429, 429]
    assert int(statuses[-1].headers["retry-after"]) > 0
    assert post(scene.url(), scene.token, message("ping")).status_code == 200


@pytest.mark.scenario("H4")
def test_without_authentication_anybody_acts_for_a_person(make_product: MakeProduct, make_scene: MakeScene) -> None:
    product = make_product(KANDEV_AUTH="off")
    product.start()
    scene = make_scene(product)
    for token in (None, "kdv_pat_unknown"):
        listed = result_of(post(scene.url("/mcp"), token, tool_call(TASKS, {})))["structuredContent"]
        assert [task["task_id"] for task in listed["tasks"]] == [scene.task]
    assert post(scene.url(), None, message("ping")).status_code == 401
    assert post(scene.url(), scene.token, message("ping")).status_code == 200


@pytest.mark.scenario("H1", "H3")
def test_what_each_person_may_do(served: object, make_scene: MakeScene, scene: Scene) -> None:
    mine = make_scene(scene.product, viewer="viewer", answerer="answerer")
    asked = mine.ask()
    answers = {}
    for name in ("stranger", "viewer", "answerer"):
        token = mine.product.tokens[name]
        found = result_of(post(mine.url("/mcp"), token, tool_call(LIST, {"workspace_id": mine.workspace})))
        assert found["structuredContent"]["count"] == (0 if name == "stranger" else 1)
        body = {"pending_id": asked, **mine.answer(asked, "from the answerer")}
        answers[name] = result_of(post(mine.url("/mcp"), token, tool_call(ANSWER, body)))
    unknown = {"pending_id": "00000000-0000-4000-8000-000000000000", **mine.answer(asked)}
    token = mine.product.tokens["stranger"]
    assert answers["stranger"] == result_of(post(mine.url("/mcp"), token, tool_call(ANSWER, unknown)))
    assert answers["stranger"]["structuredContent"]["code"] == "not_found"
    assert answers["viewer"]["structuredContent"]["code"] == "forbidden"
    assert "isError" not in answers["answerer"] or not answers["answerer"]["isError"]
