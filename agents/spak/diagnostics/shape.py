"""The shape of a diagnostic, and the levels of each tool as the four severities of the law.

The severities are seed 004's: panic, error, warning, info. A level that a table does not have counts as an
error: what nobody has judged must not let a commit through.
"""

from __future__ import annotations

import posixpath
from typing import Any

Found = dict[str, Any]

SEVERITIES = ("panic", "error", "warning", "info")
"""Of the law, worst first."""

SEVERE = ("panic", "error")
"""Those that block a commit."""

DIGITS = 9
"""Digits of the highest line number; a longer number is ignored."""

LEVELS: dict[str, dict[Any, str]] = {
    "eslint": {1: "warning", 2: "error"},
    "gcc": {"warning": "warning", "note": "info", "error": "error", "fatal error": "error"},
    "mypy": {"error": "error", "warning": "warning", "note": "info"},
    "pyright": {"error": "error", "warning": "warning", "information": "info"},
    "rustc": {
        "error: internal compiler error": "panic", "error": "error", "warning": "warning",
        "note": "info", "help": "info", "failure-note": "info",
    },
    "sarif": {"error": "error", "warning": "warning", "note": "info", "none": "info"},
    "tsc": {"error": "error", "warning": "warning", "message": "info", "suggestion": "info"},
}  # fmt: skip
"""By tool: its word for a level, and ours."""


def severity(tool: str, level: Any) -> str:
    """Our word for a tool's level."""
    return LEVELS[tool].get(level, "error") if isinstance(level, (str, int)) else "error"


def diagnostic(
    severity: str, code: Any, message: Any, file: str = "", line: Any = 0, hint: str = ""
) -> Found:
    """A diagnostic as records have it; `line` is from 1, 0 where a tool gives no such number."""
    found: Found = {
        "severity": severity, "file": _text(file), "line": _line(line), "code": _text(code),
        "message": _text(message),
    }  # fmt: skip
    return {**found, "hint": hint} if hint else found


def _text(value: Any) -> str:
    """A text that a record can hold: JSON can name half of a character."""
    return str(value).encode("utf-8", "replace").decode()


def _line(value: Any) -> int:
    """A number, or its digits in a match."""
    if isinstance(value, str) and len(value) <= DIGITS and value.isdecimal():
        value = int(value)
    return value if type(value) is int and 0 < value < 10**DIGITS else 0


def relative(path: str) -> str:
    """A file name as a person looks for it: without the workspace's mount point."""
    return posixpath.normpath(path.removeprefix("file://")).removeprefix("/ws/") if path else ""
