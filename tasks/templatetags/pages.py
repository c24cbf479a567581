"""Template tags that the pages of every layer use."""

import datetime as dt

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

register = template.Library()

STATES = {
    "todo": _("To do"),
    "in_progress": _("In progress"),
    "review": _("In review"),
    "done": _("Done"),
    "created": _("Not started"),
    "running": _("Running"),
    "waiting_for_input": _("Waiting for input"),
    "completed": _("Completed"),
    "failed": _("Failed"),
    "cancelled": _("Cancelled"),
}

TURNING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """A drawing from our sprite; with a label it speaks, without one it is decoration."""
    href = f"{static('kandev/icons.svg')}#{name}"
    if label:
        return format_html('<svg class="icon" role="img" aria-label="{}"><use href="{}"></use></svg>', label, href)
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}"></use></svg>', href)


@register.filter
def state_label(state: str) -> str:
    """A state of a task or a session in words; one that is not known as it is."""
    return str(STATES.get(str(state), state))


@register.filter
def isolated(text: str) -> str:
    """Somebody's text inside a sentence of ours: characters that turn the direction of writing end with it."""
    return f"\u2068{str(text).translate(TURNING)}\u2069"


@register.simple_tag
def ago(when: dt.datetime) -> SafeString:
    """A time as people say it; the page keeps it fresh from the attribute."""
    words = gettext("%(time)s ago") % {"time": timesince(when, depth=1)}
    stamp = when.astimezone(dt.UTC).isoformat()
    return format_html(
        '<time datetime="{}" title="{}" data-ago>{}</time>', stamp, stamp[:16].replace("T", " ") + " UTC", words
    )
