"""`ask_user_question_kandev`: the agent's question, held open until a person answers (contract 6)."""

import json
from functools import partial
from typing import Any

from mcp_types import CallToolResult, Tool, ToolAnnotations

from clarifications import asking, credentials, questions, waiting
from clarifications.mcp import schemas, tools, wire
from clarifications.mcp.exchange import UNAUTHORIZED, Exchange
from clarifications.mcp.tools import Arguments
from clarifications.shapes import RESOLVED
from tasks.errors import Invalid
from tasks.socketauth import Caller
from tasks.threads import in_thread

NAME = "ask_user_question_kandev"
SHAPE = (
    '{"questions": [{"prompt": "…", "options": [{"label": "…", "description": "…"}, …]}], "context": "…"} with 1 to 4 '
    "questions of 2 to 6 options each"
)
DESCRIPTION = (
    "Asks the person who is responsible for this task one to four questions and waits for the answer, which may take "
    "hours. Ask when a decision is not yours to make. A rejected call is a refusal to answer, never a permission. If "
    "the call ends with an error that says that nothing was chosen, decide nothing: end your turn, the answer may come "
    "as a new prompt."
)
NOTHING = "Nothing was chosen. The answer may come as a new prompt, so end your turn and do not decide in its place."
AGAIN = "Nothing was chosen. Ask the same again to wait on; otherwise the answer may come as a new prompt."
ENDED = {
    "timeout": f"timeout: nobody has answered in time; the questions stay open. {NOTHING}",
    "detached": f"detached: this call no longer waits; the questions stay open. {NOTHING}",
    "cancelled": f"cancelled: the questions were withdrawn. {NOTHING}",
    "expired": f"expired: the session has ended. {NOTHING}",
    "superseded": f"superseded: a newer prompt took the place of this turn. {NOTHING}",
    "temporarily_unavailable": f"temporarily_unavailable: the server restarts. {AGAIN}",
    "gone": f"detached: this call was given up; the questions stay open. {NOTHING}",
    UNAUTHORIZED: f"unauthorized: the token of this call was revoked or has expired. {NOTHING}",
}


async def run(exchange: Exchange, arguments: Arguments) -> CallToolResult:
    """Asks; the wait comes later. Who asks the same again joins the open bundle and gets the same answer (B3, B5)."""
    raw, context = arguments.get("questions"), context_of(arguments)
    check_questions(raw)
    made, _ = await in_thread(questions.clean, raw, context)
    principal = exchange.principal
    asked = await in_thread(asking.ask, principal, principal.session_id, raw, context)
    await exchange.reply.open()
    exchange.later = partial(wait, exchange, asked.pending_id, wire.encode(labels_of(made)))
    return tools.LATER


async def wait(exchange: Exchange, pending_id: str, labels: bytes) -> CallToolResult:
    """Waits and hands the answer over. The labels are packed: the wait may be one of ten thousand."""
    watched = credentials.Watched(Caller(exchange.principal), partial(exchange.leave, UNAUTHORIZED))
    credentials.watch.add(watched)
    try:
        waited = await waiting.wait(
            exchange.take_principal(), pending_id, "mcp", None, exchange.gone, exchange.keepalive
        )
    finally:
        credentials.watch.remove(watched)
    exchange.written, exchange.lost = partial(waiting.returned, waited), partial(waiting.failed, waited)
    if exchange.why == UNAUTHORIZED or waited.code not in RESOLVED or waited.response is None:
        code = exchange.why if exchange.why == UNAUTHORIZED else waited.code
        return tools.failure(ENDED.get(code, ENDED["detached"]))
    return tools.structured(answer(json.loads(labels), waited.response))


def check_questions(raw: object) -> None:
    """Refuses what models tend to send instead, by name; the rest is judged with the questions themselves."""
    if isinstance(raw, str):
        raise Invalid("questions is not valid", fields={"questions": ["must be a list, not a JSON text of one"]})
    for index, question in enumerate(raw if isinstance(raw, list) else []):
        if not isinstance(question, dict):
            continue
        at = f"questions.{index}."
        tools.refuse_unknown(question, schemas.ASKED_QUESTION["properties"], at)
        options = question.get("options")
        for number, option in enumerate(options if isinstance(options, list) else []):
            if isinstance(option, dict):
                tools.refuse_unknown(option, schemas.ASKED_OPTION["properties"], f"{at}options.{number}.")


def context_of(arguments: Arguments) -> str:
    """Paragraphs, when there are any, replace the context, joined by blank lines."""
    paragraphs = tools.optional(arguments, "context_paragraphs", list, [])
    if not all(isinstance(item, str) for item in paragraphs):
        raise Invalid("context_paragraphs is not valid", fields={"context_paragraphs": ["must be a list of texts"]})
    context: str = tools.optional(arguments, "context", str, "")
    return "\n\n".join(paragraphs) if paragraphs else context


def labels_of(asked: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """By question, by option."""
    return {one["question_id"]: {option["option_id"]: option["label"] for option in one["options"]} for one in asked}


def answer(labels: dict[str, dict[str, str]], response: dict[str, Any]) -> dict[str, Any]:
    """The response of contract 4 in the words of the question: labels beside the ids."""
    return {
        "answers": {item["question_id"]: _answered(labels[item["question_id"]], item) for item in response["answers"]},
        "rejected": response["rejected"],
        "reject_reason": response["reject_reason"],
    }


def _answered(labels: dict[str, str], item: dict[str, Any]) -> dict[str, Any]:
    chosen = [{"option_id": key, "label": labels[key]} for key in item["selected_options"]]
    return {
        "selected_option": chosen[0]["label"] if chosen else "",
        "selected_options": chosen,
        "custom_text": item["custom_text"],
        "answered": bool(chosen or item["custom_text"]),
    }


ENTRY = tools.Entry(
    Tool(
        name=NAME,
        title="Ask the person",
        description=DESCRIPTION,
        input_schema=schemas.ASK,
        output_schema=schemas.ASK_RESULT,
        annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True),
    ),
    run,
    SHAPE,
)
