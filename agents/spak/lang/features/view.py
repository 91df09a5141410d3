"""The view: a parsed text with what every editor feature asks of it, each made once and on first use.

Takes a Parsed and a Catalog; gives the outline, the scope of variables, the tokens as they stand in the text
(those of the parser may have been mended) and the word at an offset. All offsets are in characters. A view
is of one text: whoever edits makes a new one. `follow` puts the imports of a spec in (imports.resolve with a
reader); what is known of the whole (tasks, variables, findings) comes from there, all places from the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from spak.lang import ast
from spak.lang.catalog import Catalog
from spak.lang.check import check, examine
from spak.lang.diagnostics import Diagnostic
from spak.lang.outline import Outline
from spak.lang.parser import Parsed
from spak.lang.parser.automaton import tables
from spak.lang.parser.lexer import lex
from spak.lang.scope import Scope

Kind = Literal[
    "task",
    "step",
    "check",
    "variable",
    "input",
    "axiom",
    "heuristic",
    "prediction",
    "builtin",
    "tool",
    "validator",
    "proposer",
    "backend",
]

_LETTERS = re.compile(r"[\w.-]*")


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of the text, or of another file."""

    start: int
    end: int
    file: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """The word that touches an offset; empty, start and end alike, where there is none."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a place. `owner` is the task that a step or a check belongs to, and empty for all others."""

    kind: Kind
    name: str
    owner: str
    start: int
    end: int
    defines: bool = False

    @property
    def symbol(self) -> tuple[str, str, str]:
        """What it names: kind, name, and the task that owns it."""
        return self.kind, self.name, self.owner


Follow = Callable[[Parsed], Parsed]


class View:
    """A spec as editors ask about it; what is dear to make is made on first use."""

    def __init__(self, parsed: Parsed, catalog: Catalog, follow: Follow | None = None) -> None:
        self.parsed = parsed
        self.catalog = catalog
        self.follow = follow
        self.names: tuple[Occurrence, ...] | None = None
        """Kept here by names.occurrences."""
        self._whole: Parsed | None = None
        self._outline: Outline | None = None
        self._diagnostics: tuple[Diagnostic, ...] | None = None
        self._scope: Scope | None = None
        self._raw: ast.Tokens | None = None
        self._owners: tuple[list[int], list[ast.Task]] | None = None

    @property
    def text(self) -> str:
        """The text of the file."""
        return self.parsed.text

    @property
    def spec(self) -> ast.Spec:
        """The file alone, without its imports."""
        return self.parsed.spec

    @property
    def source(self) -> ast.Source:
        """Its tokens and lines."""
        return self.parsed.spec.source

    @property
    def whole(self) -> Parsed:
        """The spec with its imports in it; every place in the text is the same there."""
        if self._whole is None:
            self._whole = self.parsed if self.follow is None else self.follow(self.parsed)
        return self._whole

    @property
    def outline(self) -> Outline:
        """The outline of the file with its imports, checked."""
        if self._outline is None:
            self._outline = examine(self.whole.spec, self.catalog)
        return self._outline

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every finding; those about imported files name them."""
        if self._diagnostics is None:
            self._diagnostics = check(self.whole, self.catalog)
        return self._diagnostics

    @property
    def scope(self) -> Scope:
        """The variables that can be read."""
        if self._scope is None:
            self._scope = Scope(self.outline)
        return self._scope

    @property
    def raw(self) -> ast.Tokens:
        """The tokens of the text itself, with nothing put in or taken out to make it parse."""
        if self._raw is None:
            if self.parsed.ok:
                self._raw = self.parsed.tokens
            else:
                self._raw = lex(self.text, tables().words)[0]
        return self._raw

    def token_at(self, offset: int) -> int | None:
        """The raw token that covers the character at an offset."""
        index = bisect_right(self.raw.starts, offset) - 1
        return index if 0 <= index < len(self.raw) - 1 and offset < self.raw.ends[index] else None

    def word_at(self, offset: int) -> Word:
        """The word whose letters, dots and hyphens touch the offset on either side."""
        line = self.text.rfind("\n", 0, offset) + 1
        before = _LETTERS.match(self.text[line:offset][::-1])
        after = _LETTERS.match(self.text, offset)
        start = offset - (before.end() if before else 0)
        end = after.end() if after else offset
        while start < offset and self.text[start] in ".-":
            start += 1
        if start < end and self.text[start] in ".-":
            end = start
        if self.text.startswith(">", end) and self.text.endswith("-", start, end):
            end -= 1  # the arrow of `a->b`
        if not start <= offset <= end:
            start = end = offset
        return Word(self.text[start:end], start, end)

    def in_comment(self, offset: int) -> bool:
        """True when the offset stands behind the sign that begins a comment, on its line."""
        index = bisect_right(self.raw.starts, max(0, offset - 1)) - 1
        end = self.raw.ends[index] if index >= 0 else 0
        gap = self.text[max(end, self.text.rfind("\n", 0, offset) + 1) : offset]
        return end < offset and ("#" in gap or "//" in gap)

    def task_at(self, offset: int) -> ast.Task | None:
        """The task whose text holds the offset, as far as the text parsed."""
        if self._owners is None:
            tasks = list(self.spec.tasks())
            self._owners = [self.source.tokens.starts[task.start] for task in tasks], tasks
        starts, tasks = self._owners
        index = bisect_right(starts, offset) - 1
        if index < 0:
            return None
        _, end = self.source.offsets(tasks[index].start, tasks[index].end)
        return tasks[index] if offset <= end else None
