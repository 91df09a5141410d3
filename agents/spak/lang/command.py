"""Command lines with variables: the text of a `cmd:` split into arguments, each a template.

Takes the value of a string; gives one list of parts per argument, or says which shell syntax stands in it. A
variable is part of one argument, quoted or not: its value is never split and never read by a shell. Quoting
is POSIX's (2.2): single quotes, double quotes, backslash. Nothing is expanded: `*`, `~` and `$` in single
quotes are themselves, and an unquoted operator, `$` or backquote is refused, for no shell will see it.
"""

from __future__ import annotations

from dataclasses import dataclass

from spak.lang.template import Hole, Part, split

_OPERATORS = frozenset("|&;<>()`$\n")
_BLANK = frozenset(" \t\r")


@dataclass(frozen=True, slots=True)
class ShellSyntax(Exception):
    """What a tool's command line must not hold."""

    what: str


def arguments(text: str) -> tuple[tuple[Part, ...], ...]:
    """The arguments. Raises: ShellSyntax."""
    splitter = _Splitter()
    text = text.strip(" \t\r\n")
    for part in split(text):
        if isinstance(part, Hole):
            splitter.hole(part)
        else:
            splitter.feed(part)
    return splitter.done()


class _Splitter:
    def __init__(self) -> None:
        self.found: list[tuple[Part, ...]] = []
        self.parts: list[Part] = []
        self.chars: list[str] = []
        self.open = False
        self.quote = ""
        self.escaped = False

    def hole(self, hole: Hole) -> None:
        self.flush()
        self.parts.append(Hole(hole.path))
        self.open = True

    def flush(self) -> None:
        if self.chars:
            self.parts.append("".join(self.chars))
            self.chars = []

    def end(self) -> None:
        self.flush()
        if self.open:
            self.found.append(tuple(self.parts))
        self.parts, self.open = [], False

    def say(self, char: str) -> None:
        self.chars.append(char)
        self.open = True

    def feed(self, text: str) -> None:
        for char in text:
            if self.escaped:
                self.after_backslash(char)
            elif self.quote == "'":
                self.in_single(char)
            elif self.quote:
                self.in_double(char)
            else:
                self.bare(char)

    def after_backslash(self, char: str) -> None:
        self.escaped = False
        if self.quote and char not in '"\\$`\n':
            self.say("\\")
        if char != "\n":
            self.say(char)

    def in_single(self, char: str) -> None:
        if char == "'":
            self.quote = ""
        else:
            self.say(char)

    def in_double(self, char: str) -> None:
        if char == '"':
            self.quote = ""
        elif char == "\\":
            self.escaped = True
        elif char in "$`":
            raise ShellSyntax(f"'{char}'")
        else:
            self.say(char)

    def bare(self, char: str) -> None:
        if char in _BLANK:
            self.end()
        elif char in "'\"":
            self.quote, self.open = char, True
        elif char == "\\":
            self.escaped = True
        elif char in _OPERATORS:
            raise ShellSyntax("a second line" if char == "\n" else f"'{char}'")
        elif char == "#" and not self.open:
            raise ShellSyntax("a comment")
        else:
            self.say(char)

    def done(self) -> tuple[tuple[Part, ...], ...]:
        if self.quote:
            raise ShellSyntax(f"a quote ({self.quote}) that is never closed")
        if self.escaped:
            raise ShellSyntax("a backslash at the end")
        self.end()
        return tuple(self.found)
