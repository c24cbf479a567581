"""What a person may answer (contract 4): checked against the bundle's questions and brought into the one normal form,
so that two submissions that mean the same give the same bytes (promise G5)."""

from dataclasses import dataclass
from typing import Any

from clarifications import shapes
from clarifications.questions import Faults
from tasks import strictjson
from tasks.errors import Invalid
from turns.models import Message

LIMIT = 2000
ENTRY = {"question_id", "selected_options", "custom_text"}


@dataclass(frozen=True)
class Submission:
    """A valid answer: one entry a question in the bundle's order, or a rejection with its reason."""

    rejected: bool
    answers: list[dict[str, Any]]
    reject_reason: str = ""

    @property
    def status(self) -> str:
        return "rejected" if self.rejected else "answered"

    def entry(self, question_id: str) -> dict[str, Any]:
        return next(answer for answer in self.answers if answer["question_id"] == question_id)


def clean(payload: object, rows: list[Message]) -> Submission:
    """Invalid names every field that is wrong; nothing was read of the bundle's state (promises G4, G6)."""
    strictjson.check(payload)
    if not isinstance(payload, dict):
        raise Invalid("the body must be an object")
    faults = Faults()
    if any(not row.metadata.get("question_id") for row in rows):
        faults.add("pending_id", "a question of this request has no id, so it cannot be answered")
    rejected = payload.get("rejected", False)
    if not isinstance(rejected, bool):
        faults.add("rejected", "must be true or false")
    reason = limited(payload, "reject_reason", "reject_reason", faults)
    raw = payload.get("answers", [])
    if not isinstance(raw, list):
        faults.add("answers", "must be a list")
    faults.raise_if_any("the answer is not valid")
    return _rejection(raw, reason) if rejected else Submission(False, _entries(raw, rows))


def clean_answers(payload: object, rows: list[Message]) -> Submission:
    """The same rules for a late answer, which cannot be a rejection."""
    if isinstance(payload, dict):
        payload = {"answers": payload.get("answers")}
    return clean(payload, rows)


def _rejection(raw: list[Any], reason: str) -> Submission:
    if raw:
        raise Invalid("a rejection has no answers", fields={"answers": ["must be empty when rejected is true"]})
    return Submission(True, [], reason.strip())


def _entries(raw: list[Any], rows: list[Message]) -> list[dict[str, Any]]:
    faults = Faults()
    known = {row.metadata["question_id"]: shapes.question(row) for row in rows}
    given: dict[str, dict[str, Any]] = {}
    for index, item in enumerate(raw):
        entry = _entry(item, known, f"answers.{index}", faults)
        if entry is not None and entry["question_id"] in given:
            faults.add(f"answers.{index}.question_id", f"{entry['question_id']} is answered twice")
        elif entry is not None:
            given[entry["question_id"]] = entry
    for question_id in known:
        if question_id not in given:
            faults.add("answers", f"question {question_id} has no entry")
    faults.raise_if_any("the answers are not valid")
    return [given[question_id] for question_id in known]


def _entry(raw: object, known: dict[str, Any], at: str, faults: Faults) -> dict[str, Any] | None:
    """An entry may be empty, so a misspelt key would turn a choice into none: it is refused, not ignored."""
    if not isinstance(raw, dict):
        faults.add(at, "must be an object")
        return None
    question_id = raw.get("question_id")
    if not isinstance(question_id, str) or question_id not in known:
        faults.add(f"{at}.question_id", "must name a question of this request")
        return None
    for key in raw.keys() - ENTRY - ({"id"} if raw.get("id") == question_id else set()):
        faults.add(f"{at}.{key}", f"is not known here; an entry has {', '.join(sorted(ENTRY))}")
    return {
        "question_id": question_id,
        "selected_options": selected_ids(raw.get("selected_options", []), known[question_id], at, faults),
        "custom_text": limited(raw, "custom_text", f"{at}.custom_text", faults).strip(),
    }


def selected_ids(raw: object, question: dict[str, Any], at: str, faults: Faults) -> list[str]:
    """The chosen ids in the question's option order, without exact duplicates."""
    options = [option["option_id"] for option in question["options"]]
    if not isinstance(raw, list) or not all(isinstance(item, str) for item in raw):
        faults.add(f"{at}.selected_options", "must be a list of option ids")
        return []
    unknown = [item for item in raw if item not in options]
    if unknown:
        faults.add(f"{at}.selected_options", "must name options of this question")
    return [option for option in options if option in raw]


def limited(raw: dict[str, Any], key: str, where: str, faults: Faults) -> str:
    """A text of at most 2,000 code points, counted before it is trimmed."""
    value = raw.get(key, "")
    if not isinstance(value, str):
        faults.add(where, "must be a text")
        return ""
    if len(value) > LIMIT:
        faults.add(where, f"must have at most {LIMIT} characters")
    return value
