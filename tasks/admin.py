"""Django's admin for this layer: it shows what the person may see (R43) and writes through this layer's functions."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from tasks import deleting, editing, ending, tokens
from tasks.authentication import address_of, identify_user
from tasks.errors import KandevError
from tasks.models import Event, Instance, Membership, RateWindow, Session, SessionState, Task, Token, Workspace
from tasks.principals import Need, Principal

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
    Members = admin.TabularInline[Membership, Workspace]
    TaskForm = ModelForm[Task]
else:
    AnyAdmin, Members, TaskForm = admin.ModelAdmin, admin.TabularInline, ModelForm

admin.site.site_header = admin.site.site_title = "Kandev"


def principal_of(request: HttpRequest) -> Principal:
    """The admin's own check has let only signed-in staff through."""
    user = request.user
    return identify_user(user, address_of(request)) or Principal(user=user if isinstance(user, User) else None)


class Reachable(AnyAdmin):
    """Only rows that the person reaches; changing and deleting need the right to write there."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return self._reachable(request, Need.READ)

    def _reachable(self, request: HttpRequest, need: Need) -> QuerySet[Any]:
        rows: Any = super().get_queryset(request)
        return rows.reachable(principal_of(request), need)  # type: ignore[no-any-return]

    def writable(self, request: HttpRequest, obj: Model | None) -> bool:
        return obj is None or self._reachable(request, Need.WRITE).filter(pk=obj.pk).exists()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and self.writable(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and self.writable(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The rows themselves; what hangs below them goes with them and is not deleted row by row."""
        denied = {str(self.opts.verbose_name) for obj in objs if not self.has_delete_permission(request, obj)}
        return [str(obj) for obj in objs], {self.opts.verbose_name_plural: len(objs)}, denied, []

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for obj in queryset:
            self.delete_model(request, obj)


class ReadOnly(AnyAdmin):
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class MembershipInline(Members):
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Workspace)
class WorkspaceAdmin(Reachable):
    list_display = ("name", "owner", "created_at")
    search_fields = ("name",)
    autocomplete_fields = ("owner",)
    inlines = (MembershipInline,)

    def delete_model(self, request: HttpRequest, obj: Workspace) -> None:
        deleting.delete_workspace(obj.pk)


@admin.register(Task)
class TaskAdmin(Reachable):
    list_display = ("title", "workspace", "state", "archived_at", "created_at")
    list_filter = ("state",)
    search_fields = ("title",)
    fields = ("title", "description", "workspace", "state", "archived_at", "summary", "created_at", "updated_at")
    readonly_fields = ("workspace", "state", "archived_at", "summary", "created_at", "updated_at")
    actions = ("archive",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Task, form: TaskForm, change: bool) -> None:
        editing.edit_task(obj.pk, **{name: form.cleaned_data[name] for name in form.changed_data})

    def delete_model(self, request: HttpRequest, obj: Task) -> None:
        deleting.delete_task(obj.pk)

    @admin.action(description="Archive (cancels live sessions)", permissions=["change"])
    def archive(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        for task in queryset:
            if self.writable(request, task):
                deleting.archive_task(task.pk)


@admin.register(Session)
class SessionAdmin(Reachable):
    """A session changes by its actions alone, and goes with its task."""

    list_display = ("id", "task", "agent", "state", "is_primary", "created_at", "last_activity_at")
    list_filter = ("state",)
    list_select_related = ("task",)
    actions = ("complete", "fail", "cancel")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_end_permission(self, request: HttpRequest) -> bool:
        return bool(getattr(request.user, "has_perm", lambda _: False)("tasks.change_session"))

    @admin.action(description="Complete", permissions=["end"])
    def complete(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        self._end(request, queryset, SessionState.COMPLETED)

    @admin.action(description="Fail", permissions=["end"])
    def fail(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        self._end(request, queryset, SessionState.FAILED)

    @admin.action(description="Cancel", permissions=["end"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        self._end(request, queryset, SessionState.CANCELLED)

    def _end(self, request: HttpRequest, queryset: QuerySet[Session], state: SessionState) -> None:
        for session in queryset:
            try:
                if self.writable(request, session):
                    ending.end_session(session.pk, state)
            except KandevError as error:
                self.message_user(request, f"{session}: {error.message}", messages.WARNING)


@admin.register(Token)
class TokenAdmin(ReadOnly):
    """Neither the text, which nobody has, nor the hash is shown."""

    list_display = ("kind", "name", "user", "scope", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_filter = ("kind",)
    list_select_related = ("user",)
    fields = ("kind", "name", "scope", "user", "session", "created_at", "expires_at", "last_used_at", "revoked_at")
    actions = ("revoke",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Token]:
        """A superuser sees all of them, other staff their own."""
        rows = super().get_queryset(request)
        return rows if principal_of(request).unscoped else rows.filter(user=request.user.pk)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(getattr(request.user, "has_perm", lambda _: False)("tasks.change_token"))

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Token]) -> None:
        tokens.revoke_rows(queryset)


@admin.register(Instance)
class InstanceAdmin(ReadOnly):
    list_display = ("id", "host", "pid", "started_at", "renewed_at", "ready_at", "ended_at")


@admin.register(Event)
class EventAdmin(ReadOnly):
    """The outbox tells about every workspace, so only a superuser reads it."""

    list_display = ("id", "action", "task_id", "session_id", "owner", "created_at")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return principal_of(request).unscoped


@admin.register(RateWindow)
class RateWindowAdmin(ReadOnly):
    list_display = ("key", "started_at", "count")
