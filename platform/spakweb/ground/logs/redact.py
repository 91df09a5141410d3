"""What a log may not hold: tokens are taken out of every line, traceback or not, wherever they stood."""

from __future__ import annotations

import logging
import re

TOKEN = re.compile(r"spak_[A-Za-z0-9_-]{49}", re.ASCII)
"""The form of a token (work/teams/tokens.py), as scanners for secrets may look for it."""


class Plain(logging.Formatter):
    """Log lines without tokens."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, with each token replaced."""
        return without_tokens(super().format(record))


def without_tokens(text: str) -> str:
    """The text with each token replaced."""
    return TOKEN.sub("spak_[token]", text)
