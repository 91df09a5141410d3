"""What clang is called with beside the caller's flags, and diagnostics from what it prints."""

from __future__ import annotations

import re
from typing import Any

from spak.tools import gcc, results

OPTIONS = (
    "-frecord-command-line",
    "-fno-color-diagnostics",
    "-fno-caret-diagnostics",
    "-ferror-limit=20",
    "-Wno-unused-command-line-argument",
)
"""Flags written into the object, one line for each diagnostic."""
_LINE = re.compile(
    r"^(?:(?P<file>[^\n:]+):(?P<line>\d+):\d+|[\w+.-]*clang[\w+.-]*|[\w.-]*ld[\w.-]*): "
    r"(?P<severity>warning|(?:fatal )?error|note): (?P<message>[^\n]*?)(?: \[(?P<option>-W[^\]\n]*)\])?$",
    re.M,
)


def diagnostics(stderr: bytes) -> list[dict[str, Any]]:
    """What clang and the linker said, in order; nothing that they did not say."""
    found = []
    for match in _LINE.finditer(stderr.decode("utf-8", "replace")):
        severity = {"warning": "warning", "note": "info"}.get(match["severity"], "error")
        code = match["option"] or ("error" if match["file"] else "option")
        at = gcc.relative(match["file"] or "")
        found.append(results.diagnostic(severity, code, match["message"], at, int(match["line"] or 0)))
    return (found + gcc.linked(stderr))[: gcc.MAX_DIAGNOSTICS]
