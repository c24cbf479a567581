"""Drafts: what a person has entered for a question and not sent, so that another device or a reload loses nothing.

Other writers: the same person's other page. Each saves only what changed in it, question by question; the last one
stays. A draft never touches the bundle, and nobody but its person sees it.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from clarifications import answers, bundles, shapes
from clarifications.models import Draft
from clarifications.questions import Faults
from tasks import prepared
from tasks.errors import Invalid, NotFound
from tasks.principals import Need, Principal
from turns.models import Message

REASON = ""
LONGEST_ID = 200


@dataclass(frozen=True)
class Entry:
    question_id: str
    selected: list[str]
    text: str

    @property
    def empty(self) -> bool:
        return not self.selected and not self.text


def save(principal: Principal, pending_id: str, payload: object) -> None:
    """Keeps the entries given; an empty one is forgotten. NotFound without a person: the browser alone keeps it."""
    bundle = bundles.reach(principal, pending_id, Need.ANSWER)
    user = _person(principal)
    if len(pending_id) > LONGEST_ID:
        return
    for entry in clean(payload, bundle.rows):
        _save(user, bundle.session.pk, pending_id, entry)


def _person(principal: Principal) -> User:
    if principal.user is None:
        raise NotFound
    return principal.user


def _save(user: User, session_id: uuid.UUID, pending_id: str, entry: Entry) -> None:
    key: dict[str, Any] = {"user": user, "pending_id": pending_id, "question_id": entry.question_id}
    if entry.empty:
        Draft.objects.filter(**key).delete()
        return
    values = {"selected": entry.selected, "text": entry.text, "updated_at": timezone.now(), "session_id": session_id}
    Draft.objects.update_or_create(**key, defaults=values)


def clean(payload: object, rows: list[Message]) -> list[Entry]:
    """The limits of an answer (contract 4), but any number of its questions and nothing trimmed."""
    if not isinstance(payload, dict):
        raise Invalid("the body must be an object")
    faults = Faults()
    known = {row.metadata.get("question_id"): shapes.question(row) for row in rows}
    given = payload.get("answers", [])
    if not isinstance(given, list):
        faults.add("answers", "must be a list")
        given = []
    found = [_entry(raw, known, f"answers.{index}", faults) for index, raw in enumerate(given)]
    if "reject_reason" in payload:
        found.append(Entry(REASON, [], answers.limited(payload, "reject_reason", "reject_reason", faults)))
    faults.raise_if_any("the draft is not valid")
    return [entry for entry in found if entry is not None]


def _entry(raw: object, known: Mapping[Any, Any], at: str, faults: Faults) -> Entry | None:
    question_id = raw.get("question_id") if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(question_id, str) or not question_id or question_id not in known:
        faults.add(f"{at}.question_id", "must name a question of this request")
        return None
    if len(question_id) > LONGEST_ID:
        return None
    selected = answers.selected_ids(raw.get("selected_options", []), known[question_id], at, faults)
    return Entry(question_id, selected, answers.limited(raw, "custom_text", f"{at}.custom_text", faults))


def drop(principal: Principal, pending_id: str) -> None:
    """The person wants it no more."""
    bundles.reach(principal, pending_id)
    forget(principal, pending_id)


def forget(principal: Principal, pending_id: str) -> None:
    """Whatever this person had entered for the bundle is over. Again is a no-op."""
    if principal.user is not None:
        _forget(principal.user.pk, pending_id)


@prepared.delete
def _forget(user_id: int, pending_id: str) -> QuerySet[Draft]:
    return Draft.objects.filter(user=user_id, pending_id=pending_id)


def of(principal: Principal, pending_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The person's own drafts by bundle: `{question_id: [selected, text]}`."""
    wanted = list(pending_ids)
    found: dict[str, dict[str, Any]] = {pending_id: {} for pending_id in wanted}
    if principal.user is not None:
        for row in Draft.objects.filter(user=principal.user, pending_id__in=wanted):
            found[row.pending_id][row.question_id] = [row.selected, row.text]
    return found
