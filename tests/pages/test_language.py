"""German, complete: every text has a translation with the same places for values, and pages and scripts speak it."""

import os
import re

import pytest
from django.test import Client

from tests.pages.conftest import Signed, World
from tests.support import catalogue

FOLDER = catalogue.ROOT / "kandev" / "locale" / "de" / "LC_MESSAGES"
TEXTS = {"django": catalogue.python_texts, "djangojs": catalogue.script_texts}
GERMAN = {"Accept-Language": "de"}


@pytest.mark.once
@pytest.mark.parametrize("name", TEXTS)
def test_every_text_is_translated_and_no_translation_is_left_over(name: str) -> None:
    known = {key.split("\0")[0]: value for key, value in catalogue.read(FOLDER / f"{name}.po").items() if key}
    texts = TEXTS[name]()
    assert len(texts) > 50
    assert texts - set(known) == set()
    assert set(known) - texts == set()
    assert [key for key, value in known.items() if not all(value.split("\0"))] == []


@pytest.mark.once
@pytest.mark.parametrize("name", TEXTS)
def test_a_translation_has_the_places_of_its_text(name: str) -> None:
    def places(text: str) -> list[str]:
        return sorted(re.findall(r"%(?:\(\w+\))?s", text))

    for key, value in catalogue.read(FOLDER / f"{name}.po").items():
        for form in value.split("\0"):
            assert places(form) in [places(text) for text in key.split("\0")], key


@pytest.mark.once
@pytest.mark.parametrize("name", TEXTS)
def test_the_compiled_catalogue_is_that_of_the_texts(name: str) -> None:
    path = FOLDER / f"{name}.mo"
    if os.environ.get("CATALOGUE") == "write":
        path.write_bytes(catalogue.compiled(FOLDER / f"{name}.po"))
    assert path.read_bytes() == catalogue.compiled(FOLDER / f"{name}.po"), "stale: run this test with CATALOGUE=write"


@pytest.mark.once
def test_pages_and_scripts_speak_the_language_of_the_browser(world: World, signed: Signed) -> None:
    world.ask(world.session())
    page = signed("owner").get("/questions", headers=GERMAN).content.decode()
    assert '<html lang="de">' in page
    assert "Der Agent pausiert. Ihre Antwort lässt ihn weiterarbeiten." in page
    scripts = Client().get("/texts.js", headers=GERMAN).content.decode()
    assert "Verbindung wird wiederhergestellt" in scripts
    assert '<html lang="en">' in signed("owner").get("/questions", headers={"Accept-Language": "fr"}).content.decode()
