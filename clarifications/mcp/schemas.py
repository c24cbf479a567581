"""JSON Schemas of the tools: true, and no stricter than the tools themselves, which explain what they refuse."""

from typing import Any

from clarifications.questions import MAX_OPTIONS, MAX_QUESTIONS, MIN_OPTIONS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}


def record(properties: dict[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def whole(properties: dict[str, Schema]) -> Schema:
    """An object of which every field is present."""
    return record(properties, *properties)


def many(items: Schema, **limits: int) -> Schema:
    return {"type": "array", "items": items, **limits}


def said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


ASKED_OPTION = record(
    {
        "option_id": said(TEXT, "Yours to choose; made up if absent."),
        "label": said(TEXT, "One to five words, shown as the choice."),
        "description": said(TEXT, "What this choice means or leads to."),
        "recommended": said(FLAG, "Marks the choice that you would make."),
    },
    "label",
    "description",
)
ASKED_QUESTION = record(
    {
        "id": said(TEXT, "Yours to choose, unique in the call; q1, q2, … if absent."),
        "question_id": said(TEXT, "The same as id."),
        "title": said(TEXT, "Up to 12 characters, shown as a tab."),
        "prompt": said(TEXT, "The whole question, understandable on its own."),
        "options": said(
            many(ASKED_OPTION, minItems=MIN_OPTIONS, maxItems=MAX_OPTIONS),
            "The choices. The person can always write an answer of his own, so add no option for that.",
        ),
        "multi_select": said(FLAG, "True when several choices go together."),
    },
    "prompt",
    "options",
)
ASK = record(
    {
        "questions": said(many(ASKED_QUESTION, minItems=1, maxItems=MAX_QUESTIONS), "Asked and answered together."),
        "context": said(TEXT, "Why you ask: what the person needs to know to decide."),
        "context_paragraphs": said(many(TEXT), "The context as paragraphs; takes the place of context when not empty."),
    },
    "questions",
)
ANSWERED = whole(
    {
        "selected_option": said(TEXT, "Label of the first choice, or empty."),
        "selected_options": many(whole({"option_id": TEXT, "label": TEXT})),
        "custom_text": TEXT,
        "answered": said(FLAG, "True when an option or a text was given."),
    }
)
ASK_RESULT = whole(
    {
        "answers": said({"type": "object", "additionalProperties": ANSWERED}, "By question id; empty when rejected."),
        "rejected": said(FLAG, "True when the person skipped the questions: nothing was chosen and nothing permitted."),
        "reject_reason": TEXT,
    }
)

LIST = record(
    {
        "workspace_id": said(TEXT, "Only questions of this workspace."),
        "created_since": said({"type": "string", "format": "date-time"}, "Only questions since then (RFC 3339)."),
        "cursor": said(TEXT, "next_cursor of the page before, with the same filters."),
        "limit": said({"type": "integer"}, "Bundles a page: 50 if absent or below 1, at most 200."),
    }
)
LISTED_OPTION = whole({"option_id": TEXT, "label": TEXT, "description": TEXT, "recommended": FLAG})
LISTED_QUESTION = whole(
    {
        "question_id": TEXT,
        "title": TEXT,
        "prompt": TEXT,
        "status": TEXT,
        "multi_select": FLAG,
        "options": many(LISTED_OPTION),
    }
)
LISTED_BUNDLE = whole(
    {
        "pending_id": TEXT,
        "task_id": TEXT,
        "session_id": TEXT,
        "created_at": TEXT,
        "age_seconds": {"type": "number", "minimum": 0},
        "context": TEXT,
        "questions": many(LISTED_QUESTION),
    }
)
LIST_RESULT = whole({"bundles": many(LISTED_BUNDLE), "count": {"type": "integer"}, "next_cursor": TEXT})

ENTRY = record(
    {
        "question_id": TEXT,
        "selected_options": said(many(TEXT), "Option ids of this question; may be empty."),
        "custom_text": said(TEXT, "An answer in the person's own words; up to 2,000 characters."),
    },
    "question_id",
)
ANSWER = record(
    {
        "pending_id": said(TEXT, "Of the bundle, from list_pending_questions_kandev."),
        "answers": said(many(ENTRY), "Exactly one entry for each question of the bundle."),
        "rejected": said(FLAG, "True skips the questions; then send no answers."),
        "reason": said(TEXT, "Why they are skipped; told to the agent."),
    },
    "pending_id",
)
RESPONSE = whole(
    {
        "pending_id": TEXT,
        "answers": many(whole({"question_id": TEXT, "selected_options": many(TEXT), "custom_text": TEXT})),
        "rejected": FLAG,
        "reject_reason": TEXT,
        "responded_at": {"type": ["string", "null"]},
    }
)
ANSWER_RESULT = whole(
    {
        "success": FLAG,
        "claimed": said(FLAG, "True when this answer won; false when another had, which is then in `response`."),
        "status": {"type": "string", "enum": ["answered", "rejected"]},
        "delivery": {"type": "string", "enum": ["delivered", "pending", "undelivered"]},
        "response": RESPONSE,
    }
)

TASKS = record({"workspace_id": said(TEXT, "Only tasks of this workspace.")})
OR_NULL: Schema = {"type": ["string", "null"]}
LISTED_TASK = whole(
    {
        "task_id": TEXT,
        "workspace_id": OR_NULL,
        "title": TEXT,
        "state": TEXT,
        "task_pending_action": said(OR_NULL, "What one of its sessions waits for: clarification or permission."),
        "primary_session_id": OR_NULL,
        "primary_session_pending_action": OR_NULL,
    }
)
TASKS_RESULT = whole({"tasks": many(LISTED_TASK), "count": {"type": "integer"}})
