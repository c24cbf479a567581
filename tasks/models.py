"""Who may see, the work, and one conversation with one agent about it; beside them what every process shares."""

import datetime as dt
import uuid

from django.conf import settings
from django.db import models

from tasks.querysets import SessionQuerySet, TaskQuerySet, WorkspaceQuerySet


class Role(models.TextChoices):
    VIEWER = "viewer"
    ANSWERER = "answerer"
    ADMIN = "admin"


class Workspace(models.Model):
    """Who may see: one owner (or none) and members with a role."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="owned_workspaces"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in a workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=("workspace", "user"), name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role}"


class TaskState(models.TextChoices):
    TODO = "todo"
    IN_PROGRESS = "in_progress"
    REVIEW = "review"
    DONE = "done"


class Task(models.Model):
    """The work. Its summary is a cache that is repaired on read by compare-and-set on `summary_revision`."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # No database constraint: an imported task may name no workspace or one that is gone (promise H3).
    workspace = models.ForeignKey(
        Workspace, null=True, blank=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="tasks"
    )
    title = models.CharField(max_length=500)
    description = models.TextField(blank=True, default="")
    state = models.CharField(max_length=12, choices=TaskState.choices, default=TaskState.TODO)
    summary = models.JSONField(default=dict, blank=True)
    summary_revision = models.BigIntegerField(default=0)
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    # Annotations of TaskQuerySet.with_pending.
    pending_kind: str
    primary_pending_kind: str
    primary_session_id: uuid.UUID | None
    # Set by the board for a task that waits for somebody.
    blocked_since: dt.datetime | None = None

    objects = TaskQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "id")
        indexes = [models.Index(fields=("workspace", "created_at", "id"), name="task_board")]

    def __str__(self) -> str:
        return self.title


class SessionState(models.TextChoices):
    CREATED = "created"
    RUNNING = "running"
    WAITING = "waiting_for_input"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = (SessionState.COMPLETED, SessionState.FAILED, SessionState.CANCELLED)


class Session(models.Model):
    """One conversation with one agent. Its row is the first lock of every change below it (session, turn, message)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="sessions")
    agent = models.CharField(max_length=200)
    state = models.CharField(max_length=20, choices=SessionState.choices, default=SessionState.CREATED)
    is_primary = models.BooleanField(default=False)
    runner_id = models.CharField(max_length=200, blank=True, default="")
    revision_epoch = models.BigIntegerField(default=0)
    revision_sequence = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    last_activity_at = models.DateTimeField()

    # Annotations of SessionQuerySet.projected.
    pending_kind: str
    input_capable: bool

    objects = SessionQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "id")
        constraints = [
            models.UniqueConstraint(fields=("task",), condition=models.Q(is_primary=True), name="session_primary_once")
        ]
        indexes = [
            models.Index(fields=("task", "created_at", "id"), name="session_of_task"),
            models.Index(fields=("runner_id",), name="session_of_runner"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.id}"

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL


class TokenKind(models.TextChoices):
    PERSONAL = "personal"
    RUNNER = "runner"
    SESSION = "session"


class TokenScope(models.TextChoices):
    ALL = "all"
    READ = "read"
    ANSWER = "answer"


class Token(models.Model):
    """A credential; only the SHA-256 of the random text is stored."""

    kind = models.CharField(max_length=10, choices=TokenKind.choices)
    digest = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=200, blank=True, default="")
    scope = models.CharField(max_length=10, choices=TokenScope.choices, default=TokenScope.ALL)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="tokens"
    )
    session = models.ForeignKey(Session, null=True, blank=True, on_delete=models.CASCADE, related_name="tokens")
    # The turn that a session token was minted for (R26); empty means whichever turn is current.
    turn_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()


class Instance(models.Model):
    """One server process. Its id is its generation; times are the database's clock."""

    id = models.BigAutoField(primary_key=True)
    host = models.CharField(max_length=200)
    pid = models.IntegerField()
    process_start = models.CharField(max_length=40, blank=True, default="")
    started_at = models.DateTimeField()
    renewed_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=("ended_at", "renewed_at"), name="instance_alive")]

    def __str__(self) -> str:
        return f"{self.id} {self.host}/{self.pid}"


class Epoch(models.Model):
    """One row: the first half of every projection revision, raised by each starting process."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    value = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="epoch_single")]

    def __str__(self) -> str:
        return str(self.value)


class Event(models.Model):
    """The outbox: a notification that was decided in the transaction of its change and is published after it."""

    id = models.BigAutoField(primary_key=True)
    action = models.CharField(max_length=40)
    workspace_id = models.UUIDField(null=True)
    task_id = models.UUIDField()
    session_id = models.UUIDField(null=True)
    payload = models.JSONField(default=dict)
    owner = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("id",)
        indexes = [models.Index(fields=("owner", "id"), name="event_outbox")]

    def __str__(self) -> str:
        return f"{self.id} {self.action}"


class RateWindow(models.Model):
    """Attempts of one key since its window began; shared by all processes."""

    key = models.CharField(max_length=120, primary_key=True)
    started_at = models.DateTimeField()
    count = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.key} {self.count}"
