"""What Django's pages for developers, which DEBUG turns on, show of the settings."""

import re

from django.views.debug import SafeExceptionReporterFilter


class Filter(SafeExceptionReporterFilter):
    """Also hides addresses of services: passwords are part of them."""

    hidden_settings = re.compile(
        SafeExceptionReporterFilter.hidden_settings.pattern + "|_URL|DATABASES|CHANNEL_LAYERS", re.IGNORECASE
    )
