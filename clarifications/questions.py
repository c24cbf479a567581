"""What an agent may ask (contract 3): checked, completed with ids, and turned into rows of one bundle."""

import hashlib
import json
import unicodedata
from typing import Any

from tasks import strictjson
from tasks.errors import Invalid

MAX_QUESTIONS, MIN_OPTIONS, MAX_OPTIONS = 4, 2, 6


class Faults:
    """Collects every fault of a request by field, so that one answer names them all."""

    def __init__(self) -> None:
        self.fields: dict[str, list[str]] = {}

    def add(self, field: str, sentence: str) -> None:
        self.fields.setdefault(field, []).append(sentence)

    def raise_if_any(self, sentence: str) -> None:
        if self.fields:
            raise Invalid(f"{sentence}: " + ", ".join(self.fields), fields=self.fields)


def clean(raw: object, context: object = "") -> tuple[list[dict[str, Any]], str]:
    """Questions with all keys and ids, and the context. Invalid names each field that is wrong (promise B2)."""
    strictjson.check(raw, "questions")
    strictjson.check(context, "context")
    faults = Faults()
    if not isinstance(context, str):
        faults.add("context", "must be a text")
    if not isinstance(raw, list) or not 1 <= len(raw) <= MAX_QUESTIONS:
        faults.add("questions", f"must be a list of 1 to {MAX_QUESTIONS} questions")
        faults.raise_if_any("the questions are not valid")
    assert isinstance(raw, list)
    made = [_question(item, index, faults) for index, item in enumerate(raw)]
    _unique([question["question_id"] for question in made], "questions", "id", faults)
    faults.raise_if_any("the questions are not valid")
    return made, str(context)


def _question(raw: object, index: int, faults: Faults) -> dict[str, Any]:
    at = f"questions.{index}"
    if not isinstance(raw, dict):
        faults.add(at, "must be an object")
        return {"question_id": f"q{index + 1}", "options": []}
    question_id = _id(raw, ("id", "question_id"), f"q{index + 1}", at, faults)
    return {
        "question_id": question_id,
        "title": _text(raw, "title", at, faults, required=False),
        "prompt": _text(raw, "prompt", at, faults),
        "options": _options(raw.get("options"), question_id, at, faults),
        "multi_select": _bool(raw, "multi_select", at, faults),
    }


def _options(raw: object, question_id: str, at: str, faults: Faults) -> list[dict[str, Any]]:
    where = f"{at}.options"
    if not isinstance(raw, list) or not MIN_OPTIONS <= len(raw) <= MAX_OPTIONS:
        faults.add(where, f"must be a list of {MIN_OPTIONS} to {MAX_OPTIONS} options")
        return []
    made = [_option(item, question_id, index, f"{where}.{index}", faults) for index, item in enumerate(raw)]
    _unique([option["option_id"] for option in made], where, "option_id", faults)
    _unique([option.get("label", "") for option in made], where, "label", faults)
    return made


def _option(raw: object, question_id: str, index: int, at: str, faults: Faults) -> dict[str, Any]:
    made_id = f"{question_id}_opt{index + 1}"
    if not isinstance(raw, dict):
        faults.add(at, "must be an object")
        return {"option_id": made_id}
    option = {
        "option_id": _id(raw, ("option_id",), made_id, at, faults),
        "label": _text(raw, "label", at, faults),
        "description": _text(raw, "description", at, faults),
    }
    return option | ({"recommended": True} if _bool(raw, "recommended", at, faults) else {})


def _id(raw: dict[str, Any], keys: tuple[str, ...], default: str, at: str, faults: Faults) -> str:
    """The id, which may be given under any of the keys, but not in two ways; " a" and "a" are the same."""
    found: list[str] = []
    for key in keys:
        value = raw.get(key)
        if value is None:
            continue
        if not isinstance(value, str) or not value.strip() or len(value) > 200:
            faults.add(f"{at}.{key}", "must be a text of 1 to 200 characters")
        elif found and value.strip() != found[0]:
            faults.add(f"{at}.{key}", f"is another id than {found[0]}")
        else:
            found.append(value.strip())
    return found[0] if found else default


def _text(raw: dict[str, Any], key: str, at: str, faults: Faults, required: bool = True) -> str:
    value = raw.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not strictjson.visible(value)):
        faults.add(f"{at}.{key}", "must be a text that is not empty" if required else "must be a text")
        return ""
    return value


def _bool(raw: dict[str, Any], key: str, at: str, faults: Faults) -> bool:
    value = raw.get(key, False)
    if value is not None and not isinstance(value, bool):
        faults.add(f"{at}.{key}", "must be true or false")
    return value is True


def _unique(found: list[str], at: str, key: str, faults: Faults) -> None:
    """Nothing twice that looks the same: blanks around it and the way in which accents are composed do not count, case
    does. What is missing was complained of already.
    """
    seen: set[str] = set()
    for index, item in enumerate(found):
        folded = unicodedata.normalize("NFC", item).strip()
        if folded and folded in seen:
            faults.add(f"{at}.{index}.{key}", f"{item} is used twice")
        seen.add(folded)


def fingerprint(questions: list[dict[str, Any]]) -> str:
    """The same for the same questions: what joins a repeated ask to its bundle (promise B3)."""
    return hashlib.sha256(json.dumps(questions, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def metadata(pending_id: str, questions: list[dict[str, Any]], context: str) -> list[dict[str, Any]]:
    """The metadata of a bundle's rows, in question order."""
    mark = fingerprint(questions)
    return [
        {
            "pending_id": pending_id,
            "question_id": question["question_id"],
            "question": question,
            "question_index": index,
            "question_total": len(questions),
            "context": context,
            "status": "pending",
            "agent_disconnected": False,
            "asked_fingerprint": mark,
        }
        for index, question in enumerate(questions)
    ]
