"""JSON as contract 3 accepts it: UTF-8, no NaN, no NUL, no lone surrogate, at most 64 levels, at most 1 MiB, and no key
twice.
"""

import json
import math
import unicodedata
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from tasks.errors import Invalid, TooLarge

MAX_BYTES = 1 << 20
MAX_DEPTH = 64


def parse(raw: bytes, mend: bool = False) -> Any:
    """The value in `raw`; Invalid says what is wrong, TooLarge that it is over 1 MiB.

    With `mend`, characters that cannot be stored become U+FFFD: for what an agent has said and will not repeat.
    """
    if len(raw) > MAX_BYTES:
        raise TooLarge
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Invalid("the body is not UTF-8") from None
    check_depth(text)
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=dict if mend else once_each)
    except (ValueError, RecursionError):
        raise Invalid("the body is not valid JSON") from None
    value = mended(value) if mend else value
    check(value)
    return value


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's keys, each given once: of two values one would be lost, and which one depends on who reads it."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = _clean(next(key for key in keys if keys.count(key) > 1))
        raise Invalid(f"{twice} is given twice", fields={twice or "non_field_errors": ["is given twice in one object"]})
    return made


def mended(value: Any) -> Any:
    """The value with U+FFFD for each NUL and lone surrogate; nested at most as deep as `check_depth` lets through."""
    if isinstance(value, str):
        return "".join("\ufffd" if char == "\0" or "\ud800" <= char <= "\udfff" else char for char in value)
    if isinstance(value, dict):
        return {mended(key): mended(item) for key, item in value.items()}
    return [mended(item) for item in value] if isinstance(value, list) else value


def _no_constant(name: str) -> Any:
    raise Invalid(f"{name} is not allowed in JSON")


def check_depth(text: str) -> None:
    """Refuses nesting beyond 64 levels before the recursive decoder sees it; brackets inside strings do not count."""
    depth = 0
    inside = escaped = False
    for char in text:
        if inside:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                inside = False
        elif char == '"':
            inside = True
        elif char in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise Invalid(f"the JSON is nested deeper than {MAX_DEPTH} levels")
        elif char in "]}":
            depth -= 1


def check(value: Any, path: str = "", depth: int = 0) -> None:
    """Refuses what one of the databases could not store, naming where it stands (promises B2, B29)."""
    where = path or "non_field_errors"
    if depth > MAX_DEPTH:
        raise Invalid("nested too deeply", fields={where: [f"nested deeper than {MAX_DEPTH} levels"]})
    if isinstance(value, str):
        check_text(value, where)
    elif isinstance(value, float) and not math.isfinite(value):
        raise Invalid("a number is not finite", fields={where: ["must be a finite number"]})
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 63:
        raise Invalid("a number is too large", fields={where: ["must fit into 64 bits"]})
    elif isinstance(value, Mapping):
        for key, item in value.items():
            check_text(str(key), where)
            check(item, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check(item, f"{path}.{index}" if path else str(index), depth + 1)


def check_text(text: str, where: str) -> None:
    """A NUL and a lone surrogate cannot be stored by PostgreSQL; both databases give the same verdict."""
    if "\0" in text:
        raise Invalid("a text holds a NUL character", fields={_clean(where): ["must not hold a NUL character"]})
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise Invalid("a text holds a lone surrogate", fields={_clean(where): ["must not hold a lone surrogate"]})


def visible(text: str) -> bool:
    """Whether a person sees anything of it: spaces, controls and zero-width characters alone are as good as nothing."""
    return any(unicodedata.category(char)[0] not in "ZC" for char in text)


def _clean(where: str) -> str:
    return where.replace("\0", "").encode("utf-8", "replace").decode()


class StrictJSONParser(BaseParser):
    """DRF's parser for every endpoint; an empty body is an empty object."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return parse(stream.read(MAX_BYTES + 1) or b"")
