"""Input fields that take what they name not what could be turned into it (contract 3: a wrong type is a 400)."""

import uuid
from typing import Any

from rest_framework import serializers

from tasks.access import read_id
from tasks.strictjson import visible

MAX_KEY = 200
KEY_RULE = f"must be a text of 1 to {MAX_KEY} characters"


class Text(serializers.CharField):
    """A string, not a number that would be spelled as one; one that shows nothing counts as blank."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if isinstance(data, str) and not self.allow_blank and not visible(data):
            self.fail("blank")
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class OptionalText(Text):
    """A text that may be left out; null, empty and blank mean the same as absent: ""."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "allow_null": True, "allow_blank": True, "default": "", **options})

    def run_validation(self, data: Any = serializers.empty) -> str:
        value = super().run_validation(data)
        return value if value and visible(value) else ""


def is_key(value: object) -> bool:
    """Whether it can name a request once and for all; an empty one would tie together all that left it empty."""
    return isinstance(value, str) and visible(value) and len(value) <= MAX_KEY


class Key(serializers.CharField):
    """The caller's own name for a request, taken as it is; null is the same as absent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "allow_null": True, "default": None, "max_length": MAX_KEY, **options})

    def run_validation(self, data: Any = serializers.empty) -> str | None:
        if data is serializers.empty or data is None:
            return None
        if not is_key(data):
            raise serializers.ValidationError(KEY_RULE)
        return str(data)


class Flag(serializers.BooleanField):
    """JSON true or false; neither 1 nor "yes"."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Id(serializers.UUIDField):
    """A UUID as a string."""

    def to_internal_value(self, data: Any) -> uuid.UUID:
        made = read_id(data)
        if made is None:
            self.fail("invalid", value=data)
        return made


class Choice(serializers.ChoiceField):
    """One of the given strings."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=data)
        return str(super().to_internal_value(data))
