"""Template filters of the transcript."""

import json
from typing import Any

from django import template
from django.utils.safestring import SafeString

from turns.pages import markdown as rendering

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    return rendering.render(text)


@register.filter
def pretty(value: Any) -> str:
    """JSON for reading; the template escapes it."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)
