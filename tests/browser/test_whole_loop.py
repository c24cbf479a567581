"""A stranger's first minutes: start a task for the demo agent, answer its questions, read that it got them."""

import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import House, Open
from tests.browser.stage import Caller
from tests.support.processes import Process
from tests.support.waiting import until

pytestmark = pytest.mark.once


@pytest.fixture
def runner(house: House) -> Iterator[Process]:
    """A real runner with the real demo agent."""
    arguments = ["--url", house.url, "--agent", f'demo="{sys.executable}" -m kandev.demo.agent']
    folder = house.product.folder / "runner"
    folder.mkdir()
    places = ["--journal", str(folder / "journal.sqlite3"), "--workdir", str(folder)]
    token = house.product.tokens["runner-1"]
    process = house.product.spawn("runner", *arguments, *places, KANDEV_RUNNER_TOKEN=token)
    yield process
    process.term()


@pytest.mark.scenario("B1", "C1")
def test_from_a_new_task_to_the_agents_thanks(house: House, open_page: Open, runner: Process) -> None:
    caller = Caller(house.url, house.product.tokens["owner"])
    caller.post("/workspaces", {"name": "Mine", "owner": "owner"})
    caller.http.close()
    page = open_page("owner", "/")
    agents = f"{house.url}/agents"
    until(lambda: "demo" in page.request.get(agents).text(), within=40, what="the runner offers the agent")
    page.get_by_role("button", name="New task").click()
    expect(page.locator("#new-agents option[value=demo]")).to_be_attached()
    page.get_by_label("Title").fill("Try the demo agent")
    page.get_by_role("combobox", name="Agent").fill("demo")
    page.get_by_label("First prompt").fill("ask once")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/tasks/*")
    bundle = page.locator("[data-bundle]")
    expect(bundle).to_be_visible(timeout=30_000)
    for group in bundle.get_by_role("group").all():
        group.locator("input").first.check()
    bundle.get_by_label("In your own words").first.fill("thank you, agent")
    bundle.get_by_role("button", name="Submit").click()
    expect(page.locator("[data-outcome]")).to_contain_text("Your answer reached the agent.")
    said = page.locator(".entry.from-agent.type-message")
    expect(said.filter(has_text="thank you, agent")).to_be_visible(timeout=30_000)
    expect(page.get_by_text("Ready for a message.")).to_be_visible(timeout=30_000)
