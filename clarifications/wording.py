"""Answers as a prompt: one format for the resumed turn, the fallback and the late answer.

Labels and texts are ordinary content: labels are JSON strings on one line, texts are quoted line by line, and
characters that turn or hide text are shown by their code. Nothing typed can look like another answer or an
instruction (promise L8).
"""

import json
import unicodedata
from typing import Any

from clarifications import shapes
from turns.models import Message

SHOWN = {"Cf", "Cc", "Zl", "Zp"}
JOINERS = {"\u200d", "\u200c"}


def resumed(pending_id: str, rows: list[Message], answers: list[dict[str, Any]]) -> str:
    """The prompt that resumes the agent with a detached answer."""
    head = "The person has answered the question you asked earlier."
    return "\n\n".join([f"{head} (request {pending_id})", *_sections(rows, answers)])


def fallback(pending_id: str, rows: list[Message], answers: list[dict[str, Any]]) -> str:
    """The prompt that repeats a live answer after silence; it names the request, so that a repeat can be told (R24)."""
    head = (
        f"You asked a question (request {pending_id}) and its answer was handed over, but nothing has been heard of "
        "you since. If you have this answer already, go on; if not, here it is."
    )
    return "\n\n".join([head, *_sections(rows, answers)])


def late(rows: list[Message], answers: list[dict[str, Any]]) -> str:
    """The user message of a late answer (contract 5)."""
    return "\n\n".join(["My answer to a question that you asked earlier:", *_sections(rows, answers)])


def _sections(rows: list[Message], answers: list[dict[str, Any]]) -> list[str]:
    by_id = {answer["question_id"]: answer for answer in answers}
    return [
        _section(number, shapes.question(row), by_id[row.metadata["question_id"]])
        for number, row in enumerate(rows, 1)
        if row.metadata["question_id"] in by_id
    ]


def _section(number: int, question: dict[str, Any], answer: dict[str, Any]) -> str:
    lines = [f"{number}. Question {_quoted(question['question_id'])}: {_quoted(question['prompt'])}"]
    labels = {option["option_id"]: option["label"] for option in question["options"]}
    lines += [f"   Chosen: {_quoted(labels[pk])} (option {_quoted(pk)})" for pk in answer["selected_options"]]
    if answer["custom_text"]:
        lines.append("   Text:")
        lines += [f"   > {_visible(line)}" for line in answer["custom_text"].splitlines()]
    if len(lines) == 1:
        lines.append("   Left without a choice or a text.")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return _visible(json.dumps(text, ensure_ascii=False))


def _visible(text: str) -> str:
    """Control and direction characters as `\\uXXXX`; joiners stay, emoji need them."""
    return "".join(
        f"\\u{ord(char):04x}" if char not in JOINERS and unicodedata.category(char) in SHOWN and char != "\t" else char
        for char in text
    )
