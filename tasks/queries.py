"""Query parameters. What is there is either right or a 400 that names it; an empty value is not "no filter"."""

import uuid
from collections.abc import Collection

from rest_framework.request import Request

from tasks.access import read_id
from tasks.errors import invalid


def choice(request: Request, name: str, choices: Collection[str]) -> str | None:
    text = request.query_params.get(name)
    if text is not None and text not in choices:
        raise invalid(name, f"must be one of {', '.join(choices)}")
    return text


def flag(request: Request, name: str) -> bool | None:
    text = choice(request, name, ("true", "false"))
    return None if text is None else text == "true"


def identifier(request: Request, name: str) -> uuid.UUID | None:
    text = request.query_params.get(name)
    made = read_id(text)
    if text is not None and made is None:
        raise invalid(name, "must be a UUID")
    return made
