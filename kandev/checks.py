"""System checks: settings that are allowed but do not fit together."""

from typing import Any

from django.conf import settings
from django.core.checks import WARNING, CheckMessage, register

BROWSER_S = 40


@register()
def hand_over_fits_the_browser(**kwargs: Any) -> list[CheckMessage]:
    """The page gives up an answer after 40 s, so a longer hand-over would look failed while it still goes on."""
    if settings.KANDEV_DELIVERY_TIMEOUT_S < BROWSER_S:
        return []
    hint = f"Set it below {BROWSER_S}."
    sentence = "KANDEV_DELIVERY_TIMEOUT_S is longer than a page waits for an answer."
    return [CheckMessage(WARNING, sentence, hint=hint, id="kandev.W001")]
