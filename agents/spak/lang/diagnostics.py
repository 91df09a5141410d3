"""Diagnostics: what is wrong with a spec, where, what was expected, and how to mend it.

Takes offsets into a text and words; gives frozen Diagnostics with lines and columns (from 1, in characters;
the end is exclusive) and, through `render`, the picture that a person reads. It judges nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

LIMIT = 100
"""At most so many diagnostics of one text; past that a reader mends and asks again."""


class Severity(StrEnum):
    """How much a diagnostic matters; only errors keep a spec from running."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


Edit = tuple[int, int, str]
"""Replace text[start:end] by a text."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `fix` is a list of edits of the same text that a machine may apply. `file` names the
    imported file that it is about; it is empty for the text that was asked about."""

    severity: Severity
    code: str
    message: str
    hint: str
    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int
    fix: tuple[Edit, ...] | None = None
    file: str = ""

    def to_json(self) -> dict[str, Any]:
        """The object that `spak check --json` prints."""
        return ({"file": self.file} if self.file else {}) | {
            "line": self.line,
            "column": self.column,
            "end_line": self.end_line,
            "end_column": self.end_column,
            "severity": str(self.severity),
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "fix": None
            if self.fix is None
            else [{"start": start, "end": end, "text": text} for start, end, text in self.fix],
        }


class Lines:
    """Offsets to lines and columns, by bisection in a table of line starts."""

    __slots__ = ("starts",)

    def __init__(self, text: str) -> None:
        starts, at = [0], text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = text.find("\n", at + 1)
        self.starts = starts

    def line(self, offset: int) -> int:
        """The line of an offset, from 1."""
        return bisect_right(self.starts, offset)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1


def apply_fix(text: str, fix: Iterable[Edit]) -> str:
    """The text after the edits, which must not overlap."""
    for start, end, new in sorted(fix, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """By place in the text, each once; errors win where there are more than LIMIT."""
    found = sorted(set(diagnostics), key=_place)
    if len(found) > LIMIT:
        found = sorted(found, key=lambda item: item.severity != Severity.ERROR)[:LIMIT]
        found.sort(key=_place)
    return tuple(found)


def _place(item: Diagnostic) -> tuple[str, int, int, str, str]:
    return item.file, item.start, item.end, item.code, item.message


def render(diagnostic: Diagnostic, text: str, filename: str) -> str:
    """`file:line:column: severity: message [code]`, the line with a caret below it, and the hint."""
    head = f"{filename}:{diagnostic.line}:{diagnostic.column}: {diagnostic.severity}: {diagnostic.message}"
    lines = [f"{head} [{diagnostic.code}]"]
    first = diagnostic.start - diagnostic.column + 1
    source = text[first:].split("\n", 1)[0].rstrip("\r").lstrip("\ufeff" if first == 0 else "")
    shift = diagnostic.column - 1 - (1 if first == 0 and text.startswith("\ufeff") else 0)
    source, shift = _window(source, shift)
    width = (
        diagnostic.end - diagnostic.start if diagnostic.line == diagnostic.end_line else len(source) - shift
    )
    carets = "^" * max(1, min(width, len(source) - shift))
    number = f"{diagnostic.line:>5}"
    indent = "".join("\t" if char == "\t" else " " for char in source[:shift])
    lines += [f"{number} | {_printable(source)}", f"{' ' * len(number)} | {indent}{carets}"]
    if diagnostic.hint:
        lines.append(f"{' ' * len(number)} = hint: {diagnostic.hint}")
    return "\n".join(lines)


def _window(source: str, shift: int, width: int = 160) -> tuple[str, int]:
    """The part of a long line round the caret."""
    if len(source) <= width:
        return source, max(0, shift)
    first = max(0, min(shift - width // 2, len(source) - width))
    return source[first : first + width], shift - first


def _printable(source: str) -> str:
    """Control characters as pictures, so that a terminal is not steered by a spec."""
    return "".join(
        char if char == "\t" or char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in source
    )
