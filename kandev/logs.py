"""Logging to standard error: one line an event, no request bodies, no headers."""

import logging
from typing import Any


class OneLine(logging.Filter):
    """What a client did wrong is no fault of the server's: it is told without a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith(("django.request", "django.security")) and getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "filters": {"one_line": {"()": OneLine}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["one_line"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": []},  # Django's own handler would say everything twice where DEBUG is on
        "httpx": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},
        "django.channels.server": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "asyncio": {"level": "WARNING"},
    },
}
