"""Words of a command line: quotes, escapes and expansions, cut and unquoted in one pass.

`Words` reads the word at its place and gives its parts. The contents of `$(`, `<(` and backticks are command
lines, which the reader of lines (`spak.shell.read`) reads. Expands nothing. `spak.shell.read` says what is
refused and why.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable

from spak.shell.cursor import META, Cursor
from spak.shell.line import Arithmetic, Part, Substitution, Text, Variable, Word

_SPECIAL = "@*#?-$!0123456789"
_PLAIN = re.compile(r"""[^ \t\n|&;()<>'"\\$`]+""")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIGITS = re.compile(r"[0-9]+")
_OPERAND = re.compile(r":?[-=+?]|##?|%%?|/[/#%]?|\^\^?|,,?|:")
_ANSI = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI_CODE = re.compile(r"x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})")


class Words(Cursor, ABC):
    """Reads words; a subclass reads the command lines in them."""

    @abstractmethod
    def _substitution(self, form: str, quoted: bool) -> Substitution:
        """The line in `$(`, `<(` or `>(`, up to and with its `)`."""

    @abstractmethod
    def _backtick(self, quoted: bool) -> Substitution:
        """The line between backticks."""

    def _word(self) -> Word:
        start = self.at
        parts: list[Part] = []
        while self.at < len(self.text):
            here = self.text[self.at]
            if here in META:
                if self.text[self.at : self.at + 2] in ("<(", ">("):
                    if parts:
                        self._refuse("a process substitution inside a word")
                    parts.append(self._substitution(self.text[self.at : self.at + 2], quoted=False))
                    if self.at < len(self.text) and self.text[self.at] not in META:
                        self._refuse("a process substitution inside a word")
                break
            if here == "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    self._fail("a quote that is never closed")
                parts.append(Text(self.text[self.at + 1 : end], True))
                self.at = end + 1
            elif here == '"' or self.text.startswith('$"', self.at):
                self.at += 1 if here == '"' else 2
                parts.append(Text("", True))
                parts.extend(self._quoted('"'))
            elif self.text.startswith("$'", self.at):
                parts.append(self._ansi())
            elif here == "\\":
                if self.at + 1 >= len(self.text):
                    self._fail("a backslash at the end")
                if self.text[self.at + 1] == "\n":
                    rest = self.text[self.at + 2 : self.at + 3]
                    if rest not in ("", " ", "\t", "\n"):
                        self._refuse("a line continuation inside a word")
                    self.at += 2
                    break
                parts.append(Text(self.text[self.at + 1], True))
                self.at += 2
            elif here in "$`":
                parts.append(self._expansion(quoted=False))
            else:
                found = _PLAIN.match(self.text, self.at)
                assert found is not None
                self.at = found.end()
                parts.append(Text(found[0]))
        if self.at == start:
            self._fail("no word here")
        return Word(self.text[start : self.at], _merged(parts))

    def _quoted(self, end: str) -> list[Part]:
        """The parts of a double-quoted text up to and with `end`; with no end, of a here-document."""
        parts: list[Part] = []
        while True:
            if self.at >= len(self.text):
                if end:
                    self._fail("a quote that is never closed")
                return list(_merged(parts))
            here = self.text[self.at]
            if end and here == end:
                self.at += 1
                return list(_merged(parts))
            if here == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                if following == "\n":
                    if self.text[self.at - 1] == "$":
                        self._refuse("a line continuation inside a token")
                elif following and following in '$`\\"' and not (following == '"' and not end):
                    parts.append(Text(following, True))
                else:
                    parts.append(Text("\\" + following, True))
                self.at += 2
            elif here in "$`":
                parts.append(self._expansion(quoted=True))
            else:
                parts.append(Text(here, True))
                self.at += 1

    def _ansi(self) -> Text:
        """`$'...'`."""
        self.at += 2
        value: list[str] = []
        while True:
            if self.at >= len(self.text):
                self._fail("a quote that is never closed")
            here = self.text[self.at]
            self.at += 1
            if here == "'":
                return Text("".join(value), True)
            if here != "\\":
                value.append(here)
                continue
            found = _ANSI_CODE.match(self.text, self.at)
            if found is not None:
                byte = found[1] or found[2]
                code = int(found[1] or found[3] or found[4], 16) if not found[2] else int(found[2], 8)
                if not 0 < code <= (0x7F if byte else 0x10FFFF) or 0xD800 <= code < 0xE000:
                    self._refuse("an escape for a byte that is not a character")
                value.append(chr(code))
                self.at = found.end()
                continue
            named = self.text[self.at : self.at + 1]
            if named == "c":
                self._refuse("a control escape")
            value.append(_ANSI.get(named, "\\" + named))
            self.at += 1

    # -- expansions

    def _expansion(self, quoted: bool) -> Part:
        """What begins with `$` or a backtick."""
        if self.text[self.at] == "`":
            return self._backtick(quoted)
        if self.text.startswith("$((", self.at):
            return self._arithmetic(quoted)
        if self.text.startswith("$(", self.at):
            return self._substitution("$(", quoted)
        if self.text.startswith("${", self.at):
            return self._parameter(quoted)
        if self.text.startswith("$[", self.at):
            self._refuse("arithmetic in `$[`")
        start = self.at
        self.at += 1
        found = NAME.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            return Variable(found[0], self.text[start : self.at], quoted)
        if self.at < len(self.text) and self.text[self.at] in _SPECIAL:
            self.at += 1
            return Variable(self.text[self.at - 1], self.text[start : self.at], quoted)
        return Text("$", quoted)

    def _arithmetic(self, quoted: bool) -> Arithmetic:
        start = self.at
        self.at += 3
        self._deeper()
        parts: list[Part] = []
        open_ = 0
        while True:
            if self.at >= len(self.text):
                self._fail("arithmetic that is never closed")
            here = self.text[self.at]
            if here in "$`":
                parts.append(self._expansion(quoted=True))
                continue
            if here in "'\"\\;#\n" and not (here == "#" and self.text[self.at - 1].isdigit()):
                self._refuse("this character in arithmetic")
            if here == ")" and open_ == 0:
                if not self.text.startswith("))", self.at):
                    self._refuse("`$((` that closes like a subshell")
                self.at += 2
                self.depth -= 1
                return Arithmetic(self.text[start : self.at], quoted, _merged(parts))
            open_ += (here == "(") - (here == ")")
            parts.append(Text(here, True))
            self.at += 1

    def _parameter(self, quoted: bool) -> Variable:
        """`${name}`, `${#name}`, `${name:-word}` and their kin."""
        start = self.at
        self.at += 2
        self._deeper()
        if self.text.startswith("#", self.at) and self.text[self.at + 1 : self.at + 2] not in ("}", ""):
            self.at += 1
        found = NAME.match(self.text, self.at) or _DIGITS.match(self.text, self.at)
        if found is not None:
            name, self.at = found[0], found.end()
        elif self.at < len(self.text) and self.text[self.at] in "@*#?-$":
            name, self.at = self.text[self.at], self.at + 1
        else:
            self._refuse("this form of `${`")
        parts: list[Part] = []
        if not self.text.startswith("}", self.at):
            operand = _OPERAND.match(self.text, self.at)
            if operand is None:
                self._refuse("this form of `${`")
            self.at = operand.end()
            parts = self._operand(quoted)
        self.at += 1
        self.depth -= 1
        return Variable(name, self.text[start : self.at], quoted, _merged(parts))

    def _operand(self, quoted: bool) -> list[Part]:
        parts: list[Part] = []
        while True:
            if self.at >= len(self.text):
                self._fail("a `${` that is never closed")
            here = self.text[self.at]
            if here == "}":
                return parts
            if here in "'\"<>(){\n":
                self._refuse("quotes, brackets or line breaks inside `${`")
            if here in "$`":
                parts.append(self._expansion(quoted))
            elif here == "\\":
                parts.append(Text(self.text[self.at + 1 : self.at + 2], True))
                self.at += 2
            else:
                parts.append(Text(here, quoted))
                self.at += 1


def _merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Neighbouring texts of one kind as one."""
    merged: list[Part] = []
    run: list[str] = []
    kind: bool | None = None
    for part in parts:
        if isinstance(part, Text) and part.quoted is kind:
            run.append(part.value)
            continue
        if kind is not None:
            merged.append(Text("".join(run), kind))
        if isinstance(part, Text):
            run, kind = [part.value], part.quoted
        else:
            kind = None
            merged.append(part)
    if kind is not None:
        merged.append(Text("".join(run), kind))
    return tuple(merged)
