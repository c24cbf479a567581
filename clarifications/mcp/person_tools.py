"""The tools for a program that acts for a person: find questions, answer one, look at tasks (contract 6)."""

from typing import Any

from mcp_types import CallToolResult, Tool, ToolAnnotations

from clarifications import discovering, responding
from clarifications.mcp import schemas, tools
from clarifications.mcp.exchange import Exchange
from clarifications.mcp.tools import Arguments
from tasks.access import read_id
from tasks.errors import Invalid, ProjectionFailed, invalid
from tasks.models import Task
from tasks.principals import Principal
from tasks.threads import Pool, in_thread

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ANSWERS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

# An answer waits for the agent's confirmation, which needs the shared threads: it must not sit in one of them.
_answering = Pool("kandev-mcp-answer", lambda: 32)


async def list_pending(exchange: Exchange, arguments: Arguments) -> CallToolResult:
    page = await in_thread(
        discovering.list_pending,
        exchange.principal,
        tools.optional(arguments, "workspace_id", str, ""),
        tools.optional(arguments, "created_since", str, ""),
        tools.optional(arguments, "cursor", str, ""),
        tools.optional(arguments, "limit", int, 0),
        surface="mcp",
    )
    return tools.structured(page)


async def answer(exchange: Exchange, arguments: Arguments) -> CallToolResult:
    """The same resolver as everywhere: the winner and who lost to him get a result, anybody else an error."""
    pending_id = arguments.get("pending_id")
    if not isinstance(pending_id, str) or not pending_id:
        raise invalid("pending_id", "must be the pending_id of a bundle")
    body = _answering.run(_respond, exchange.principal, pending_id, payload(arguments))
    return tools.structured(await exchange.alongside(body))


def _respond(principal: Principal, pending_id: str, submission: dict[str, Any]) -> dict[str, Any]:
    """The resolver's own refusal, with the name that this tool has for the reason."""
    try:
        return responding.respond(principal, pending_id, submission)
    except Invalid as error:
        fields = {"reason" if name == "reject_reason" else name: said for name, said in (error.fields or {}).items()}
        raise Invalid(error.message.replace("reject_reason", "reason"), code=error.code, fields=fields) from None


def payload(arguments: Arguments) -> dict[str, Any]:
    """The submission of contract 4; null is the same as absent, and one of answers and rejected must be there."""
    rejected = tools.optional(arguments, "rejected", bool, False)
    answers = tools.optional(arguments, "answers", list, [])
    reason = tools.optional(arguments, "reason", str, "")
    if not rejected and arguments.get("answers") is None:
        raise Invalid("answers are missing", fields={"answers": ["give one entry a question, or rejected: true"]})
    if reason and not rejected:
        raise Invalid("reason is not valid", fields={"reason": ["belongs to rejected: true only"]})
    return {"answers": answers, "rejected": rejected, "reject_reason": reason}


async def list_tasks(exchange: Exchange, arguments: Arguments) -> CallToolResult:
    workspace = tools.optional(arguments, "workspace_id", str, "")
    found = await in_thread(_tasks, exchange.principal, workspace)
    return tools.structured({"tasks": found, "count": len(found)})


def _tasks(principal: Principal, workspace: str) -> list[dict[str, Any]]:
    """Tasks that are not archived, oldest first; of a foreign workspace there are none."""
    rows = Task.objects.reachable(principal).filter(archived_at__isnull=True).with_pending()
    if workspace:
        pk = read_id(workspace)
        if pk is None:
            raise invalid("workspace_id", "must be the id of a workspace")
        rows = rows.filter(workspace=pk)
    with ProjectionFailed.guard():
        return [_task(row) for row in rows.order_by("created_at", "id")]


def _task(row: Any) -> dict[str, Any]:
    return {
        "task_id": str(row.pk),
        "workspace_id": str(row.workspace_id) if row.workspace_id else None,
        "title": row.title,
        "state": row.state,
        "task_pending_action": row.pending_kind or None,
        "primary_session_id": str(row.primary_session_id) if row.primary_session_id else None,
        "primary_session_pending_action": row.primary_pending_kind or None,
    }


LIST = tools.Entry(
    Tool(
        name="list_pending_questions_kandev",
        title="Open questions",
        description="The questions that agents ask and nobody has answered yet, oldest first, if you may see them.",
        input_schema=schemas.LIST,
        output_schema=schemas.LIST_RESULT,
        annotations=READS,
    ),
    list_pending,
    '{"workspace_id": "<id>", "created_since": "2026-01-31T12:00:00Z", "cursor": "<next_cursor>", "limit": 50}, '
    "each of them optional",
)
ANSWER = tools.Entry(
    Tool(
        name="answer_question_kandev",
        title="Answer",
        description=(
            "Answers all questions of one bundle, or skips them. Exactly one answer wins: claimed is false when "
            "another had won, and response is then that one."
        ),
        input_schema=schemas.ANSWER,
        output_schema=schemas.ANSWER_RESULT,
        annotations=ANSWERS,
    ),
    answer,
    '{"pending_id": "<id>", "answers": [{"question_id": "q1", "selected_options": ["q1_opt1"], "custom_text": ""}]} '
    'with one entry a question, or {"pending_id": "<id>", "rejected": true, "reason": "…"}',
)
TASKS = tools.Entry(
    Tool(
        name="list_tasks_kandev",
        title="Tasks",
        description="Your tasks and which of them wait for a person.",
        input_schema=schemas.TASKS,
        output_schema=schemas.TASKS_RESULT,
        annotations=READS,
    ),
    list_tasks,
    '{"workspace_id": "<id>"}, which is optional',
)
