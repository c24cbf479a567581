"""Turns and messages, the dispatch of a prompt to a runner, its queue, and the timers that survive a process."""

import uuid

from django.db import models
from django.db.models import Q

from tasks.models import Session, Token
from turns import jsoncolumns
from turns.querysets import PENDING, DispatchQuerySet, MessageQuerySet, TurnQuerySet
from turns.querysets import PERMISSION as PERMISSION
from turns.querysets import QUESTION as QUESTION


class EndReason(models.TextChoices):
    READY = "ready"
    CANCELLED = "cancelled"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SESSION_ENDED = "session_ended"


class Turn(models.Model):
    """One prompt and what the agent did with it; durable, survives the deletion of its messages."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns")
    started_at = models.DateTimeField()
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=14, choices=EndReason.choices, blank=True, default="")
    metadata = models.JSONField(default=dict, blank=True)
    execution_id = models.UUIDField(null=True, blank=True)
    prompt_generation = models.BigIntegerField(null=True, blank=True)
    runner_id = models.CharField(max_length=200, blank=True, default="")
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    # A completion that a question or an outstanding answer held back is made up once (R33); True = judged for good.
    completion_handled = models.BooleanField(default=False)
    # The session's end committed, its event waits for the expiry of the questions (R30).
    completion_unpublished = models.BooleanField(default=False)
    dispatch_pending = jsoncolumns.flag("prompt_dispatch_pending")
    dispatch_attempted = jsoncolumns.flag("prompt_dispatch_attempted")
    start_outbox = jsoncolumns.flag("prompt_start_event_outbox")

    objects = TurnQuerySet.as_manager()

    class Meta:
        ordering = ("started_at", "created_at", "id")
        indexes = [
            models.Index(fields=("session", "started_at", "created_at", "id"), name="turn_newest"),
            models.Index(fields=("session",), name="turn_open", condition=Q(completed_at__isnull=True)),
            models.Index(fields=("runner_id",), name="turn_of_runner", condition=Q(completed_at__isnull=True)),
            models.Index(
                fields=("created_at",), name="turn_marked", condition=Q(dispatch_pending=True) | Q(start_outbox=True)
            ),
            models.Index(fields=("created_at",), name="turn_unpublished", condition=Q(completion_unpublished=True)),
        ]

    def __str__(self) -> str:
        return str(self.pk)


class Author(models.TextChoices):
    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"


class MessageType(models.TextChoices):
    MESSAGE = "message"
    QUESTION = QUESTION
    PERMISSION = PERMISSION
    TOOL = "tool"
    THINKING = "thinking"
    STATUS = "status"


# As `MessageQuerySet.pending` spells it, so that both databases see that the indexes serve it.
PENDING_QUESTION = Q(type=QUESTION) & (Q(status="") | Q(status="pending"))
PENDING_PERMISSION = Q(type=PERMISSION) & (Q(status="") | Q(status="pending"))


class Message(models.Model):
    """One transcript row of a session. `turn_id` has no constraint: imported rows may name no turn, or one that is
    gone.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="transcript")
    turn_id = models.UUIDField(null=True, blank=True)
    author_type = models.CharField(max_length=6, choices=Author.choices)
    type = models.CharField(max_length=24, choices=MessageType.choices, default=MessageType.MESSAGE)
    content = models.TextField(blank=True, default="")
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    pending_id = jsoncolumns.text("pending_id")
    status = jsoncolumns.text("status")
    disconnected = jsoncolumns.flag("agent_disconnected")
    is_active: bool  # set by `MessageQuerySet.with_active`

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "id")
        indexes = [
            models.Index(fields=("session", "created_at", "id"), name="message_transcript"),
            models.Index(fields=("pending_id", "created_at", "id"), name="message_bundle", condition=~Q(pending_id="")),
            models.Index(fields=("session", "turn_id"), name="message_open_question", condition=PENDING_QUESTION),
            models.Index(fields=("session", "turn_id"), name="message_open_permission", condition=PENDING_PERMISSION),
            models.Index(
                fields=("created_at", "pending_id", "id"), name="message_open_in_order", condition=PENDING_QUESTION
            ),
            models.Index(fields=("turn_id",), name="message_of_turn", condition=Q(turn_id__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"

    @property
    def says_pending(self) -> bool:
        """Its own word alone; whether it counts is the rule's to say (`MessageQuerySet.active`)."""
        return self.status in PENDING


class DispatchKind(models.TextChoices):
    PROMPT = "prompt"
    ANSWER = "answer"
    FALLBACK = "fallback"


class DispatchState(models.TextChoices):
    """reserved → attempted → accepted → published; rejected, revoked and undone are known never to have run."""

    RESERVED = "reserved"
    ATTEMPTED = "attempted"
    ACCEPTED = "accepted"
    PUBLISHED = "published"
    REJECTED = "rejected"
    REVOKED = "revoked"
    UNDONE = "undone"


UNSETTLED = (DispatchState.RESERVED, DispatchState.ATTEMPTED, DispatchState.ACCEPTED)


class Dispatch(models.Model):
    """One attempt to give one prompt to one runner. The record outlives the markers and the intent (R12)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="dispatches")
    turn_id = models.UUIDField()
    kind = models.CharField(max_length=8, choices=DispatchKind.choices)
    prompt = models.TextField()
    agent = models.CharField(max_length=200)
    runner_id = models.CharField(max_length=200, blank=True, default="")
    execution_id = models.UUIDField()
    prompt_generation = models.BigIntegerField()
    replaces = models.JSONField(null=True, blank=True)
    state = models.CharField(max_length=9, choices=DispatchState.choices, default=DispatchState.RESERVED)
    claim_id = models.UUIDField(null=True, blank=True)
    claimed_message_ids = models.JSONField(default=list)
    admission_id = models.BigIntegerField(null=True, blank=True)
    owner = models.BigIntegerField(default=0)
    # Until then its owner's task cares for it; afterwards, or when the owner is dead, any sweep may (R14).
    attended_until = models.DateTimeField()
    ambiguous = models.BooleanField(default=False)
    code = models.CharField(max_length=60, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    reserved_at = models.DateTimeField()
    attempted_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)

    objects = DispatchQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "dispatches"
        ordering = ("reserved_at", "id")
        constraints = [
            models.UniqueConstraint(
                fields=("session",),
                condition=Q(state__in=("reserved", "attempted", "accepted")),
                name="dispatch_one_unsettled",
            )
        ]
        indexes = [
            models.Index(fields=("state", "runner_id"), name="dispatch_unsettled", condition=Q(state__in=UNSETTLED)),
            models.Index(fields=("claim_id",), name="dispatch_claim", condition=Q(claim_id__isnull=False)),
            models.Index(fields=("session", "prompt_generation"), name="dispatch_generation"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state} {self.pk}"


class AdmissionState(models.TextChoices):
    """in_progress → sent; or queued → in_progress → sent, or queued → withdrawn by a person; ambiguous = nobody knows
    whether the runner took it (R17).
    """

    IN_PROGRESS = "in_progress"
    QUEUED = "queued"
    SENT = "sent"
    AMBIGUOUS = "ambiguous"
    WITHDRAWN = "withdrawn"


class Admission(models.Model):
    """One prompt of a person: its idempotency key, its place in the queue and the recorded result."""

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="admissions")
    client_message_id = models.CharField(max_length=200)
    content = models.TextField()
    fingerprint = models.CharField(max_length=64)
    state = models.CharField(max_length=11, choices=AdmissionState.choices)
    # Whether its POST had ended with `queued`; otherwise a death before the attempt forgets it (R17).
    was_queued = models.BooleanField(default=False)
    message_id = models.UUIDField(null=True, blank=True)
    result = models.JSONField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("id",)
        constraints = [models.UniqueConstraint(fields=("session", "client_message_id"), name="admission_once")]
        indexes = [models.Index(fields=("session", "id"), name="admission_queue", condition=Q(state="queued"))]

    def __str__(self) -> str:
        return f"{self.state} {self.client_message_id}"


class Runner(models.Model):
    """A runner as it last said hello. `connection_id` is the socket that speaks for it now."""

    runner_id = models.CharField(max_length=200, primary_key=True)
    token = models.ForeignKey(Token, null=True, blank=True, on_delete=models.SET_NULL, related_name="runners")
    version = models.CharField(max_length=100, blank=True, default="")
    agents = models.JSONField(default=list)
    max_sessions = models.IntegerField(default=1)
    owner = models.BigIntegerField(default=0)
    connection_id = models.UUIDField(null=True, blank=True)
    connected_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        ordering = ("runner_id",)

    def __str__(self) -> str:
        return self.runner_id


class FrameKind(models.TextChoices):
    DISPATCH = "dispatch"
    REVOKE = "revoke"
    CANCEL = "cancel"
    STOP = "stop"
    PERMISSION_ANSWER = "permission_answer"


class RunnerFrame(models.Model):
    """A frame that a runner is owed, written with the change that owes it; whichever socket the runner has now sends
    it.
    """

    id = models.BigAutoField(primary_key=True)
    runner_id = models.CharField(max_length=200)
    kind = models.CharField(max_length=20, choices=FrameKind.choices)
    dispatch = models.ForeignKey(Dispatch, null=True, blank=True, on_delete=models.CASCADE, related_name="frames")
    session_id = models.UUIDField()
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("id",)
        indexes = [models.Index(fields=("runner_id", "id"), name="frame_unsent", condition=Q(sent_at__isnull=True))]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class TimerKind(models.TextChoices):
    PAUSE = "pause"
    CANCEL_OVERDUE = "cancel_overdue"
    FIRST_WAIT = "first_wait"
    UNHEARD_END = "unheard_end"


class Timer(models.Model):
    """Something that is due at a time whichever process lives then."""

    kind = models.CharField(max_length=14, choices=TimerKind.choices)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="timers")
    turn_id = models.UUIDField()
    pending_id = models.CharField(max_length=200, blank=True, default="")
    due_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=("kind", "turn_id", "pending_id"), name="timer_once")]
        indexes = [models.Index(fields=("due_at",), name="timer_due")]

    def __str__(self) -> str:
        return f"{self.kind} {self.due_at}"
