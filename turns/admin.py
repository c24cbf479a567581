"""Django's admin for this layer, read only: turns, messages and dispatches change by this layer's functions alone.

Rows that belong to a session are shown to who may see it (H3, R43); what tells about every workspace, to superusers.
"""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from tasks.admin import ReadOnly, principal_of
from tasks.principals import Need
from tasks.querysets import session_condition
from turns.models import Admission, Dispatch, Message, Runner, RunnerFrame, Timer, Turn


class Shown(ReadOnly):
    """All stored columns, also those that no form could hold."""

    show_full_result_count = False

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return [field.name for field in self.opts.concrete_fields]


class OfSession(Shown):
    """Rows of the sessions that the person reaches."""

    list_select_related: ClassVar[tuple[str, ...]] = ("session",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        seen = session_condition(principal_of(request), Need.READ, "session", "session__task__workspace")
        return super().get_queryset(request).filter(seen)


@admin.register(Turn)
class TurnAdmin(OfSession):
    list_display = ("id", "session", "started_at", "completed_at", "end_reason", "runner_id")
    list_filter = ("end_reason",)
    search_fields = ("id", "session__id", "session__task__title")


@admin.register(Message)
class MessageAdmin(OfSession):
    list_display = ("id", "session", "type", "author_type", "status", "pending_id", "created_at")
    list_filter = ("type", "author_type")
    search_fields = ("content", "pending_id", "session__task__title")


@admin.register(Dispatch)
class DispatchAdmin(OfSession):
    list_display = ("id", "session", "kind", "state", "ambiguous", "runner_id", "reserved_at", "settled_at")
    list_filter = ("kind", "state", "ambiguous")
    search_fields = ("id", "runner_id", "session__task__title")


@admin.register(Admission)
class AdmissionAdmin(OfSession):
    list_display = ("id", "session", "client_message_id", "state", "created_at")
    list_filter = ("state",)
    search_fields = ("client_message_id", "content")


@admin.register(Timer)
class TimerAdmin(OfSession):
    list_display = ("kind", "session", "turn_id", "pending_id", "due_at")
    list_filter = ("kind",)


@admin.register(Runner)
class RunnerAdmin(Shown):
    list_display = ("runner_id", "version", "agents", "max_sessions", "connected_at", "last_seen_at")
    list_select_related = ("token",)
    search_fields = ("runner_id",)


@admin.register(RunnerFrame)
class RunnerFrameAdmin(Shown):
    """One queue for the sessions of every workspace, so only a superuser reads it."""

    list_display = ("id", "runner_id", "kind", "session_id", "created_at", "sent_at")
    list_filter = ("kind",)
    search_fields = ("runner_id",)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return principal_of(request).unscoped
