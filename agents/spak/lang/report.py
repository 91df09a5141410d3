"""Where checks put what they find: findings at nodes and tokens of one source.

Takes token spans; gives Diagnostics. Names that the parser filled in for a gap (empty ones) are never told
again, and past the limit nothing more is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from spak.lang.ast import Source
from spak.lang.diagnostics import LIMIT, Diagnostic, Edit, Severity


class Span(Protocol):
    """Anything with a first token and the token after its last."""

    @property
    def start(self) -> int:
        """Its first token."""

    @property
    def end(self) -> int:
        """The token after its last."""


@dataclass(frozen=True, slots=True)
class Characters:
    """A place given by characters of the text and not by tokens."""

    start: int
    end: int


class Report:
    """The diagnostics of one check; at most LIMIT are kept."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[Diagnostic] = []
        self.errors = 0

    def error(
        self, code: str, message: str, hint: str, at: Span | int, fix: tuple[Edit, ...] | None = None
    ) -> None:
        """An error at a node, at one token, or at some characters."""
        self.errors += 1
        self._add(Severity.ERROR, code, message, hint, at, fix)

    def warn(
        self, code: str, message: str, hint: str, at: Span | int, fix: tuple[Edit, ...] | None = None
    ) -> None:
        """Add a warning."""
        self._add(Severity.WARNING, code, message, hint, at, fix)

    def inform(self, code: str, message: str, hint: str, at: Span | int) -> None:
        """What is neither wrong nor suspicious."""
        self._add(Severity.INFO, code, message, hint, at, None)

    @property
    def full(self) -> bool:
        """True when more findings would only be thrown away."""
        return self.errors >= LIMIT

    def offsets(self, at: Span | int) -> tuple[int, int]:
        """The characters from and to which a place goes."""
        if isinstance(at, int):
            return self.source.offsets(at, at + 1)
        if isinstance(at, Characters):
            return at.start, at.end
        return self.source.offsets(at.start, at.end)

    def inside(self, at: Span, pattern: str) -> Characters | None:
        """The first characters of a node that a pattern matches, or its first group where it has one."""
        start, end = self.offsets(at)
        match = re.compile(pattern).search(self.source.text, start, end)
        return Characters(*match.span(match.re.groups and 1)) if match else None

    def hole(self, at: Span, path: str) -> Span:
        """Where the text of a node reads a variable; the node itself where it is the variable."""
        return self.inside(at, r"\{\{[ \t]*(" + re.escape(path) + r")[ \t]*\}\}") or at

    def replace(self, at: Span | int, text: str) -> tuple[Edit, ...] | None:
        """The fix that puts a text in the place of a node; none where there is no text to put."""
        start, end = self.offsets(at)
        return ((start, end, text),) if text and end > start else None

    def _add(
        self,
        severity: Severity,
        code: str,
        message: str,
        hint: str,
        at: Span | int,
        fix: tuple[Edit, ...] | None,
    ) -> None:
        if len(self.found) < (2 * LIMIT if severity is Severity.ERROR else LIMIT):
            start, end = self.offsets(at)
            self.found.append(self.source.diagnostic(severity, code, message, hint, start, end, fix))
