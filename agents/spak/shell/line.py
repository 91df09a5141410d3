"""What a command line is: words, redirections, assignments, simple commands, and the line of them.

A simple command knows the operator before it and the compounds around it; that is all that a judge of
commands needs, so there is no tree of pipelines and lists. A `for` shows as a command without words whose
assignment has many values; redirections of a compound show as a command that has nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TILDE = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*\+?=(?:.*:)?)?~")


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text of a word."""

    value: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name` or `${name...}`; `parts` are the parts of the operand, where one is written."""

    name: str
    text: str
    quoted: bool = False
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((...))`. A shell evaluates variables in it again, so their values can run commands."""

    text: str
    quoted: bool = False
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Substitution:
    """A command whose output is part of a word."""

    form: str
    """`$(`, backtick, `<(` or `>(`."""
    line: Line
    quoted: bool = False


Part = Text | Variable | Arithmetic | Substitution


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it is written, and its parts."""

    text: str
    """As written."""
    parts: tuple[Part, ...] = ()

    @property
    def value(self) -> str | None:
        """The word that a program would get, or None where a shell would first expand something."""
        if self.expands:
            return None
        return "".join(part.value for part in self.parts if isinstance(part, Text))

    @property
    def expands(self) -> bool:
        """True for variables, substitutions, globs, braces and tildes outside of quotes."""
        if any(not isinstance(part, Text) for part in self.parts):
            return True
        bare = "".join(
            "x" * len(part.value) if part.quoted else part.value
            for part in self.parts
            if isinstance(part, Text)
        )
        braces = bare[bare.find("{") : bare.rfind("}")] if "{" in bare else ""
        return (
            "*" in bare
            or "?" in bare
            or ("[" in bare and "]" in bare[bare.index("[") :])
            or "," in braces
            or ".." in braces
            or _TILDE.match(bare) is not None
        )


@dataclass(frozen=True, slots=True)
class Redirection:
    """A redirection, or a here-document with its body."""

    op: str
    target: Word
    fd: str = ""
    """The number written before the operator, `{name}`, or empty."""
    body: Word | None = None
    """Of a here-document, whose `target` is the delimiter."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """`NAME=value` before a command, or an array."""

    name: str
    values: tuple[Word, ...]
    """One value; of a `for`, all that the variable goes through (none written: the arguments). Of a `case`,
    which has no name, its word and all patterns."""
    append: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command."""

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    operator: str = ""
    """What stands before it: `|`, `|&`, `&&`, `||`, `;`, `&`, a line break, or nothing."""
    within: tuple[str, ...] = ()
    """The compounds around it, outermost first: `(`, `{`, `if`, `while`, `until`, `for`, `case`."""
    path: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    """The compounds and their lists around it, each with a number of its own: where a branch begins and ends.
    The lists of an `if` are `if`, `then`, `else`, those of a loop `while` and `do`, of a `case` `branch`."""
    negated: bool = field(default=False, compare=False)
    """True behind `!`, and for the first command of a compound behind it."""

    @property
    def argv(self) -> tuple[str, ...] | None:
        """The words, or None where a shell would first expand something."""
        values = tuple(word.value for word in self.words)
        known = tuple(value for value in values if value is not None)
        return known if len(known) == len(values) else None

    def substitutions(self) -> Iterator[Substitution]:
        """Those written in this command, the outermost of each nest."""
        for word in self.all_words():
            yield from _substitutions(word.parts)

    def all_words(self) -> Iterator[Word]:
        """Every word of the command, those of assignments and redirections too."""
        for assignment in self.assignments:
            yield from assignment.values
        yield from self.words
        for redirection in self.redirections:
            yield redirection.target
            if redirection.body is not None:
                yield redirection.body


@dataclass(frozen=True, slots=True)
class Line:
    """The commands of a line in order, whatever joins them."""

    commands: tuple[Command, ...] = ()
    """The simple commands in order, those of compounds included, those of substitutions not."""
    background: bool = False
    """True when the last command is followed by `&`."""

    def every(self) -> Iterator[Command]:
        """All simple commands, those inside substitutions before the command that holds them."""
        for command in self.commands:
            for substitution in command.substitutions():
                yield from substitution.line.every()
            yield command


def _substitutions(parts: tuple[Part, ...]) -> Iterator[Substitution]:
    for part in parts:
        match part:
            case Substitution():
                yield part
            case Variable() | Arithmetic():
                yield from _substitutions(part.parts)
            case Text():
                pass
