"""What Django's settings say of logs: `configuration(form)`, with lines that are plain or JSON, on stderr."""

from __future__ import annotations

from typing import Any


def configuration(form: str) -> dict[str, Any]:
    """The setting LOGGING; `form` is "plain" or "json"."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "plain": {
                "()": "spakweb.ground.logs.redact.Plain",
                "format": "{asctime} {levelname} {name}: {message}",
                "style": "{",
            },
            "json": {"()": "spakweb.ground.logs.lines.Json"},
        },
        "filters": {
            "rate_limit": {"()": "spakweb.ground.logs.log_rate_limit.RateLimit"},
            "ids": {"()": "spakweb.ground.logs.lines.Ids"},
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": form, "filters": ["rate_limit", "ids"]},
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "django": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
            "spakweb": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        },
    }
