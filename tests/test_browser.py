"""The browser of the page tests is a real one and runs scripts."""

import pytest
from playwright.sync_api import Browser

pytestmark = pytest.mark.once


def test_a_page_runs_its_script(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content("<p id=out></p><script>out.textContent = 6 * 7</script>")
    assert page.text_content("#out") == "42"
    page.close()
