"""Question rows as pages show them."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from clarifications import drafting, shapes
from clarifications.bundles import well_formed
from clarifications.models import WaiterLease
from tasks.models import Session
from tasks.principals import Principal
from turns.models import Message
from turns.querysets import PENDING, MessageQuerySet


@dataclass(frozen=True)
class Option:
    id: str
    label: str
    description: str
    recommended: bool
    chosen: bool


@dataclass(frozen=True)
class Question:
    """One row: what is asked and, once resolved, what was answered."""

    message_id: uuid.UUID
    id: str
    title: str
    prompt: str
    multi: bool
    options: list[Option]
    status: str
    custom_text: str
    index: int
    total: int

    @property
    def open(self) -> bool:
        return self.status in PENDING

    @property
    def chosen(self) -> list[Option]:
        return [option for option in self.options if option.chosen]


@dataclass(frozen=True)
class Bundle:
    """The questions of one request."""

    pending_id: str
    session: Session
    questions: list[Question]
    context: str
    detached: bool
    created_at: dt.datetime
    draft: str | None = None  # JSON of the person's own; None where the server keeps none

    @property
    def key(self) -> str:
        """A name for element ids; an imported `pending_id` may hold anything."""
        return self.questions[0].message_id.hex


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def question(row: Message) -> Question:
    asked, answer = shapes.question(row), _dict(_dict(row.metadata).get("response"))
    index, total = row.metadata.get("question_index"), row.metadata.get("question_total")
    return Question(
        message_id=row.pk,
        id=asked["question_id"],
        title=asked["title"],
        prompt=asked["prompt"],
        multi=asked["multi_select"],
        options=[_option(option, answer.get("selected_options") or []) for option in asked["options"]],
        status=row.status,
        custom_text=answer.get("custom_text") or "",
        index=index if isinstance(index, int) else 0,
        total=total if isinstance(total, int) else 1,
    )


def _option(shown: dict[str, Any], chosen: list[str]) -> Option:
    option_id = shown["option_id"]
    return Option(option_id, shown["label"], shown["description"], shown["recommended"], option_id in chosen)


def open_bundles(rows: MessageQuerySet) -> list[Bundle]:
    """Whole bundles among `rows` that can be answered now, resolved siblings beside the open ones, oldest first."""
    # Unordered: for an order SQLite would walk the whole transcript instead of the few pending rows.
    active = set(rows.active().order_by().values_list("pending_id", flat=True)) - {""}
    # The exclusion is what lets SQLite use the index of bundles, which leaves rows of none out.
    whole = Message.objects.filter(pending_id__in=active).exclude(pending_id="").select_related("session__task")
    groups = groupby(whole.order_by("pending_id", "created_at", "id"), lambda row: row.pending_id)
    found = [group for group in (list(rows) for _pending_id, rows in groups) if can_be_claimed(group)]
    live = set(
        WaiterLease.objects.live(timezone.now()).filter(pending_id__in=active).values_list("pending_id", flat=True)
    )
    made = [bundle(group, group[0].pending_id in live) for group in found]
    return sorted(made, key=lambda one: (one.created_at, one.pending_id))


def can_be_claimed(rows: list[Message]) -> bool:
    """A malformed bundle, or one with a row that no answer could name, is not offered (A8)."""
    return well_formed(rows) and all(row.metadata.get("question_id") for row in rows)


def bundle(rows: list[Message], live: bool) -> Bundle:
    first = rows[0]
    return Bundle(
        pending_id=first.pending_id,
        session=first.session,
        questions=sorted((question(row) for row in rows), key=lambda one: one.index),
        context=str(first.metadata.get("context") or ""),
        detached=not live,
        created_at=first.created_at,
    )


def with_drafts(principal: Principal, found: Sequence[Bundle]) -> list[Bundle]:
    """The bundles with what this person has entered and not sent."""
    if principal.user is None:
        return list(found)
    drafts = drafting.of(principal, [one.pending_id for one in found])
    return [replace(one, draft=json.dumps(drafts[one.pending_id])) for one in found]


def ended_words(status: str) -> str:
    """What became of a question that is no longer open."""
    words = {
        "answered": _("Answered"),
        "rejected": _("Skipped"),
        "cancelled": _("Withdrawn by the agent"),
        "expired": _("Expired without an answer"),
    }
    return words.get(status, _("Closed without an answer"))
