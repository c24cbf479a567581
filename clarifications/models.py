"""What an answer owes (the claim), who waits right now (leases) and what a silent agent is owed (the watchdog).

A bundle is a value, not a table: the question rows of one request, which share `metadata.pending_id`.
"""

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q

from clarifications.querysets import ClaimQuerySet, LeaseQuerySet
from tasks.models import Session

if TYPE_CHECKING:
    from turns.models import Message


class ClaimState(models.TextChoices):
    """claimed → confirmed (live) or accepted (dispatch) → finalized; or claimed → restored | retired."""

    CLAIMED = "claimed"
    CONFIRMED = "confirmed"
    ACCEPTED = "accepted"
    FINALIZED = "finalized"
    RESTORED = "restored"
    RETIRED = "retired"


OPEN_CLAIM = (ClaimState.CLAIMED, ClaimState.CONFIRMED, ClaimState.ACCEPTED)


class ClaimPath(models.TextChoices):
    LIVE = "live"
    DETACHED = "detached"


class Claim(models.Model):
    """One responder's win and the intent to hand it over. Rows keep its id for good (R11a)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    pending_id = models.CharField(max_length=200)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="claims")
    turn_id = models.UUIDField()
    message_ids = models.JSONField()
    status = models.CharField(max_length=8)
    response = models.JSONField()
    reject_reason = models.TextField(blank=True, default="")
    responded_at = models.DateTimeField()
    responder = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    state = models.CharField(max_length=9, choices=ClaimState.choices, default=ClaimState.CLAIMED)
    path = models.CharField(max_length=8, choices=ClaimPath.choices, default=ClaimPath.LIVE)
    owner = models.BigIntegerField(default=0)
    attended_until = models.DateTimeField()
    # Confirmed, but neither written to a client nor followed by activity: an identical ask gets it once more (R20).
    replayable = models.BooleanField(default=False)

    # Known to the thread that stored the claim, from under its lock: the rows as it left them, that no lease of the
    # bundle was there, and whether the responder had left a draft. Anybody else reads the rows and asks who waits.
    claimed_rows: "Sequence[Message]" = ()
    nobody_waits = False
    drafted = True

    objects = ClaimQuerySet.as_manager()

    class Meta:
        ordering = ("responded_at", "id")
        constraints = [
            models.UniqueConstraint(
                fields=("pending_id",),
                condition=Q(state__in=("claimed", "confirmed", "accepted")),
                name="claim_one_open",
            ),
        ]
        indexes = [
            models.Index(fields=("session", "state"), name="claim_open", condition=Q(state__in=OPEN_CLAIM)),
            models.Index(fields=("pending_id", "responded_at"), name="claim_bundle"),
        ]

    def __str__(self) -> str:
        return f"{self.status} {self.state} {self.pending_id}"


class LeaseKind(models.TextChoices):
    REQUEST = "request"
    REST = "rest"
    MCP = "mcp"


class WaiterLease(models.Model):
    """An agent that waits right now in one server process. The `request` kind is the first moment of waiting
    (contract 3).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    pending_id = models.CharField(max_length=200)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="waiters")
    turn_id = models.UUIDField()
    kind = models.CharField(max_length=7, choices=LeaseKind.choices)
    owner = models.BigIntegerField(default=0)
    expires_at = models.DateTimeField(null=True, blank=True)
    # Set by the confirm: this waiter is owed that claim's response and no longer counts as waiting.
    claim_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField()

    objects = LeaseQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=("pending_id",), name="lease_bundle"),
            models.Index(fields=("owner",), name="lease_owner"),
            models.Index(fields=("turn_id",), name="lease_turn"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pending_id}"


class WatchdogState(models.TextChoices):
    ARMED = "armed"
    FALLBACK = "fallback"
    CLOSED = "closed"


class Watchdog(models.Model):
    """Stored with the live confirm: silence past `due_at` makes one fallback prompt with the answer (K3, R19-R24)."""

    claim = models.OneToOneField(Claim, primary_key=True, on_delete=models.CASCADE, related_name="watchdog")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="watchdogs")
    turn_id = models.UUIDField()
    state = models.CharField(max_length=8, choices=WatchdogState.choices, default=WatchdogState.ARMED)
    due_at = models.DateTimeField()
    # Who carries the fallback out: the generation of the process that began it.
    owner = models.BigIntegerField(default=0)
    # The return was written to a connected client; only then do frames close it (RETURN_BEFORE_ACTIVITY).
    returned_at = models.DateTimeField(null=True, blank=True)
    # The last activity seen before the return was recorded; it counts when it came after the bytes were written.
    activity_at = models.DateTimeField(null=True, blank=True)
    closed_because = models.CharField(max_length=60, blank=True, default="")

    class Meta:
        indexes = [
            models.Index(
                fields=("session", "due_at"), name="watchdog_open", condition=Q(state__in=("armed", "fallback"))
            )
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.claim_id}"


class Draft(models.Model):
    """What one person has entered for one question and not sent; `question_id` is empty for the reason of a Skip."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    pending_id = models.CharField(max_length=200)
    question_id = models.CharField(max_length=200, blank=True)
    selected = models.JSONField(default=list)
    text = models.TextField(blank=True, default="")
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=("user", "pending_id", "question_id"), name="draft_once")]
        indexes = [models.Index(fields=("updated_at",), name="draft_age")]

    def __str__(self) -> str:
        return f"{self.pending_id} {self.question_id}"
