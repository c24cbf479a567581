"""Django's admin for this layer: bundles as one row each, and what they owe. Read only (H3, R43); the one thing it does
is to end a live request, by the same function as every other surface."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from clarifications import closing, shapes
from clarifications.models import Claim, WaiterLease, Watchdog
from clarifications.overview import Bundle, BundleQuerySet
from tasks.admin import principal_of
from tasks.errors import KandevError
from tasks.models import Task
from turns.admin import OfSession
from turns.models import Message

NOTHING = "-"


@admin.register(Bundle)
class BundleAdmin(OfSession):
    """A bundle is its rows: nothing of them is a form field, so no answer or status can be typed here."""

    list_display = ("pending_id", "task", "session", "state", "asked_at")
    list_select_related = ("session__task",)
    search_fields = ("pending_id",)
    search_help_text = "Pending id, title of the task, or text of a question"
    ordering = ("-created_at", "-id")
    actions = ("cancel",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Bundle]:
        rows: Any = super().get_queryset(request)
        found: BundleQuerySet = rows.heads().with_state(timezone.now())
        return found.select_related("session__task")  # type: ignore[return-value]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        found: Any = queryset
        for word in search_term.split():
            found = found.asking(word)
        return found, False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["pending_id", "task", "session", "turn_id", "state", "asked_at", "context", "questions"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj)

    @admin.display(description="task", ordering="session__task__title")
    def task(self, row: Bundle) -> Task:
        return row.session.task

    @admin.display(description="state", ordering="state")
    def state(self, row: Bundle) -> str:
        return row.state

    @admin.display(description="asked at", ordering="created_at")
    def asked_at(self, row: Bundle) -> Any:
        return row.created_at

    @admin.display(description="context")
    def context(self, row: Bundle) -> str:
        return str(row.metadata.get("context") or NOTHING)

    @admin.display(description="questions and answers")
    def questions(self, row: Bundle) -> SafeString:
        asked = Message.objects.bundle(row.pending_id).questions()
        return format_html_join("", "<div>{}</div>", ((_question(one),) for one in asked))

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return bool(getattr(request.user, "has_perm", lambda _: False)("clarifications.change_bundle"))

    @admin.action(description="Cancel the live request", permissions=["cancel"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Bundle]) -> None:
        """Who may not answer there, and bundles that nobody waits for, are told so one by one."""
        for pending_id in queryset.values_list("pending_id", flat=True):
            try:
                closing.cancel(principal_of(request), pending_id)
            except KandevError as error:
                self.message_user(request, f"{pending_id}: {error.message}", messages.WARNING)


def _question(row: Message) -> SafeString:
    asked = shapes.question(row)
    return format_html(
        "<p><strong>{} {}</strong> ({})</p><p>{}</p><ul>{}</ul><p>{}</p>",
        asked["question_id"],
        asked["title"],
        asked["status"],
        asked["prompt"],
        format_html_join(
            "", "<li>{}: {}, {}</li>", ((o["option_id"], o["label"], o["description"]) for o in asked["options"])
        ),
        _answer(row.metadata.get("response")),
    )


def _answer(stored: object) -> str:
    if not isinstance(stored, dict):
        return "No answer."
    chosen = ", ".join(map(str, stored.get("selected_options") or [])) or NOTHING
    return f"Chosen: {chosen}; text: {stored.get('custom_text') or NOTHING}"


@admin.register(Claim)
class ClaimAdmin(OfSession):
    list_display = ("id", "pending_id", "session", "status", "state", "path", "responder", "responded_at")
    list_filter = ("state", "path", "status")
    list_select_related = ("session", "responder")
    search_fields = ("pending_id", "session__task__title")


@admin.register(WaiterLease)
class WaiterLeaseAdmin(OfSession):
    list_display = ("pending_id", "session", "kind", "owner", "created_at", "expires_at")
    list_filter = ("kind",)
    search_fields = ("pending_id",)


@admin.register(Watchdog)
class WatchdogAdmin(OfSession):
    list_display = ("claim", "session", "state", "due_at", "owner", "returned_at", "closed_because")
    list_filter = ("state",)
    list_select_related = ("claim", "session")
