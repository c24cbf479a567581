"""Bundles as rows for the admin. A bundle is a value, not a table: its first question row stands for it.

`with_state` says in one statement, for a page of bundles, what `bundles.state_of` says of one.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db.models import Case, CharField, Exists, OuterRef, Q, QuerySet, Subquery, Value, When

from clarifications.models import Claim, ClaimState, WaiterLease
from tasks.models import TERMINAL
from turns.models import QUESTION, Dispatch, Message
from turns.querysets import PENDING, MessageQuerySet


class BundleQuerySet(MessageQuerySet):
    def heads(self) -> BundleQuerySet:
        """One row a bundle: its first question by (created_at, id)."""
        earlier = Q(created_at__lt=OuterRef("created_at")) | Q(created_at=OuterRef("created_at"), id__lt=OuterRef("id"))
        mine: BundleQuerySet = self.filter(type=QUESTION).exclude(pending_id="")
        return mine.filter(~Exists(_fellows().questions().filter(earlier)))

    def with_state(self, now: dt.datetime) -> BundleQuerySet:
        """Adds `state` as contract 3 names it."""
        live = WaiterLease.objects.live(now).filter(pending_id=OuterRef("pending_id"))
        state = Case(
            When(Q(answerable=True) & Exists(live), then=Value("active_live")),
            When(answerable=True, then=Value("active_detached")),
            When(Q(Exists(_provisional())), then=Value("delivery_claimed")),
            When(Q(Exists(_open_rows())) & ~Q(session__state__in=TERMINAL), then=Value("superseded_history")),
            default=Value("terminal"),
            output_field=CharField(),
        )
        added: list[dict[str, Any]] = [{"answerable": _answerable()}, {"state": state}]
        found: BundleQuerySet = self.annotate(**added[0]).annotate(**added[1])
        return found

    def asking(self, text: str) -> BundleQuerySet:
        """Bundles with this text in their id, their task's title or one of their questions."""
        asked = _fellows().filter(Q(content__icontains=text) | Q(metadata__question__prompt__icontains=text))
        return self.filter(Q(pending_id__icontains=text) | Q(session__task__title__icontains=text) | Q(Exists(asked)))


class Bundle(Message):
    """The first question of a request; the others share its `pending_id`."""

    # Annotations of BundleQuerySet.with_state.
    answerable: bool
    state: str

    objects = BundleQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        proxy = True
        verbose_name = "bundle"

    def __str__(self) -> str:
        return str(self.pending_id)


def _fellows() -> MessageQuerySet:
    """The exclusion repeats the condition of the index `message_bundle`, which cannot be used without it."""
    return Message.objects.filter(pending_id=OuterRef("pending_id")).exclude(pending_id="")


def _open_rows() -> QuerySet[Message]:
    return _fellows().filter(status__in=PENDING)


def _answerable() -> Exists:
    """An active row in a well-formed bundle (A8): no fellow of another session, another type or another turn."""
    other_turn = Q(turn_id__isnull=False) & ~Q(turn_id=OuterRef("turn_id"))
    strangers = _fellows().filter(~Q(session=OuterRef("session")) | ~Q(type=QUESTION) | other_turn)
    return Exists(_fellows().active().filter(~Exists(strangers)))


def _provisional() -> QuerySet[Claim]:
    """The newest claim that was not given back, while its hand-over is under way (`bundles.is_provisional`)."""
    newest = Claim.objects.filter(pending_id=OuterRef("pending_id")).exclude(state=ClaimState.RESTORED)
    first = newest.order_by("-responded_at", "-id").values("pk")[:1]
    unknown = Dispatch.objects.filter(claim_id=OuterRef("pk"), ambiguous=True).unsettled()
    return Claim.objects.filter(pk=Subquery(first)).filter(~Exists(unknown), state=ClaimState.CLAIMED)
