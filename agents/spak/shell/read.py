"""The reader: one recursive descent over the characters of a command line.

It follows bash, whose words are cut and unquoted in one pass (`spak.shell.expansions`), so lexer and parser
are one. Where two shells, or two readings, would disagree (a line continuation inside a word, `$((` that
closes like a subshell, quotes inside `${...}`), it refuses instead of choosing: a gate that reads a line
otherwise than the shell does is worse than none. Left out on purpose, and refused: `select`, functions,
coprocesses, arrays, arithmetic commands, indirect and transforming expansions, a `case` inside a substitution
(older shells take its `)` for the end) or with branches that fall through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from spak.errors import UsageError
from spak.shell.cursor import META
from spak.shell.expansions import NAME, Words
from spak.shell.line import (
    Assignment,
    Command,
    Line,
    Redirection,
    Substitution,
    Text,
    Word,
)

MAX_CHARS = 65_536

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\n]*?\])?(\+?=)")
_OPERATOR = re.compile(r"&&|\|\||\|&|[|;&\n]")
_TEST_OPERATOR = re.compile(r"&&|\|\||[()<>]")
_REDIRECTION = re.compile(
    r"([0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\})?(<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())|(&>>|&>)"
)
_RESERVED = re.compile(r"(!|\{|\}|\[\[|[a-z]+)(?=[ \t\n|&;()<>]|\Z)")
_SPLIT_TOKEN = re.compile(r"[$({<>]\\\n")
_REFUSED = frozenset({"select", "function", "coproc"})
_ENDINGS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac"})
KEYWORDS = _REFUSED | _ENDINGS | {"case", "if", "while", "until", "for", "in", "time"}


def parse(text: str) -> Line:
    """The line. Raises: UsageError `shell.syntax`, `shell.unsupported`, `shell.control`, `shell.too_long`,
    `shell.too_deep`."""
    if len(text) > MAX_CHARS:
        raise UsageError("shell.too_long", f"a command line of more than {MAX_CHARS} characters")
    if "\0" in text:
        raise UsageError("shell.control", "a command line with a NUL character")
    if _SPLIT_TOKEN.search(text):
        raise UsageError(
            "shell.unsupported", "a line continuation inside a token", "break the line between two words"
        )
    return _Reader(text, 0).whole()


@dataclass(slots=True)
class _Heredoc:
    """A here-document whose body has not been read yet, and where it belongs."""

    commands: list[Command]
    command: int
    redirection: int


class _Reader(Words):
    def __init__(self, text: str, depth: int) -> None:
        super().__init__(text, depth)
        self.out: list[Command] = []
        self.pending: list[_Heredoc] = []
        self.path: tuple[tuple[str, int], ...] = ()
        self.numbers = 0
        self.inner = False
        """True within a substitution."""
        self.background = False
        """Whether a list within a compound goes on after it."""
        self.unread = 0
        """Here-documents whose command is still being read."""

    # -- lists and compounds

    def whole(self) -> Line:
        background = self._list((), frozenset({""}))[1]
        if self.pending:
            self._fail("a here-document that never ends")
        return Line(tuple(self.out), background or self.background)

    def _list(
        self, within: tuple[str, ...], ends: frozenset[str], need: bool = False, first: str = ""
    ) -> tuple[str, bool]:
        """Read commands up to and with one of `ends`; give it, and whether `&` stood before it."""
        operator, count = first, 0
        while True:
            self._skip(newlines=True)
            end = self._end(ends)
            if end is not None:
                if operator in ("|", "|&", "&&", "||") and (count or not first):
                    self._fail(f"nothing after {operator!r}")
                if need and not count:
                    self._fail("an empty list of commands")
                return end, operator == "&"
            self._command(operator, within)
            count += 1
            self._skip()
            found = _OPERATOR.match(self.text, self.at)
            if found is None or self.text.startswith((";;", ";&"), self.at):
                end = self._end(ends & {"", ")", ";;"})
                if end is None:
                    self._fail("unexpected text")
                return end, False
            operator = found[0]
            if operator == "\n":
                self._newline()
            else:
                self.at = found.end()

    def _end(self, ends: frozenset[str]) -> str | None:
        if self.at >= len(self.text):
            if "" in ends:
                return ""
            self._fail("the line ends too early; wanted " + " or ".join(sorted(ends)))
        if self.text[self.at] == ")":
            if ")" not in ends:
                self._fail("a `)` that closes nothing")
            self.at += 1
            return ")"
        if self.text.startswith((";;", ";&"), self.at):
            if ";;" not in ends:
                self._fail("a `;;` outside of a `case`")
            if self.text.startswith((";&", ";;&"), self.at):
                self._refuse("a branch that falls through")
            self.at += 2
            return ";;"
        found = _RESERVED.match(self.text, self.at)
        if found is not None and found[1] in ends:
            self.at = found.end()
            return found[1]
        return None

    def _into(self, label: str) -> None:
        self.numbers += 1
        self.path = (*self.path, (label, self.numbers))

    def _part(
        self, label: str, within: tuple[str, ...], ends: frozenset[str], first: str, need: bool = True
    ) -> str:
        """A list of a compound, up to and with one of `ends`; which one it was."""
        outer = self.path
        self._into(label)
        end, background = self._list(within, ends, need=need, first=first)
        self.background = self.background or background
        self.path = outer
        return end

    def _command(self, operator: str, within: tuple[str, ...]) -> None:
        first, negated = len(self.out), False
        while (found := _RESERVED.match(self.text, self.at)) is not None and found[1] == "!":
            self.at = found.end()
            self._skip()
            negated = True
        self._command_itself(found[1] if found is not None else "", operator, within)
        if negated:
            self.out[first] = replace(self.out[first], negated=True)

    def _command_itself(self, word: str, operator: str, within: tuple[str, ...]) -> None:
        if word in _REFUSED:
            self._refuse(f"`{word}`")
        if self.text.startswith("((", self.at):
            self._refuse("an arithmetic command `((`")
        self._deeper()
        outer = self.path
        compound = "(" if self.text.startswith("(", self.at) else word
        self._into(compound)
        if compound in ("(", "{"):
            self.at += 1
            end = ")" if compound == "(" else "}"
            self._part("do", (*within, compound), frozenset({end}), operator)
        elif word == "if":
            self._if(operator, (*within, "if"))
        elif word in ("while", "until"):
            self.at += 5
            self._part("while", (*within, word), frozenset({"do"}), operator)
            self._part("do", (*within, word), frozenset({"done"}), ";")
        elif word == "for":
            self._for(operator, (*within, "for"))
        elif word == "case":
            self._case(operator, (*within, "case"))
        elif word in _ENDINGS or word == "}":
            self._fail(f"`{word}` where a command should begin")
        else:
            self.path = outer
            self._simple(operator, within, test=word == "[[")
            self.depth -= 1
            return
        self.depth -= 1
        self._trailing(within)
        self.path = outer

    def _if(self, operator: str, within: tuple[str, ...]) -> None:
        self.at += 2
        end = "elif"
        while end == "elif":
            self._part("if", within, frozenset({"then"}), operator)
            end = self._part("then", within, frozenset({"elif", "else", "fi"}), ";")
            operator = ";"
        if end == "else":
            self._part("else", within, frozenset({"fi"}), ";")

    def _case(self, operator: str, within: tuple[str, ...]) -> None:
        self.at += 4
        if self.inner:
            self._refuse("a `case` inside a substitution")
        self._skip()
        words = [self._word()]
        self._skip(newlines=True)
        found = _RESERVED.match(self.text, self.at)
        if found is None or found[1] != "in":
            self._fail("a `case` without `in`")
        self.at = found.end()
        place = len(self.out)
        header = Command((), (), (), operator, within, self.path)
        self.out.append(header)
        end = ";;"
        while end != "esac":
            self._skip(newlines=True)
            found = _RESERVED.match(self.text, self.at)
            if found is not None and found[1] == "esac":
                self.at = found.end()
                break
            words += self._patterns()
            end = self._part("branch", within, frozenset({";;", "esac"}), ";", need=False)
        self.out[place] = replace(header, assignments=(Assignment("", tuple(words)),))

    def _patterns(self) -> list[Word]:
        """`a | b)`, an opening bracket allowed."""
        if self.text.startswith("(", self.at):
            self.at += 1
        found: list[Word] = []
        while not found or self.text.startswith("|", self.at):
            self.at += bool(found)
            self._skip()
            if self.at >= len(self.text) or self.text[self.at] in META:
                self._fail("no pattern here")
            found.append(self._word())
            self._skip()
        if not self.text.startswith(")", self.at):
            self._fail("a pattern without its `)`")
        self.at += 1
        return found

    def _for(self, operator: str, within: tuple[str, ...]) -> None:
        self.at += 3
        self._skip()
        name = NAME.match(self.text, self.at)
        if name is None:
            self._refuse("a `for` without a name")
        self.at = name.end()
        self._skip(newlines=True)
        words: list[Word] = []
        found = _RESERVED.match(self.text, self.at)
        if found is not None and found[1] == "in":
            self.at = found.end()
            self._skip()
            while self.at < len(self.text) and self.text[self.at] not in ";\n":
                words.append(self._word())
                self._skip()
        if self.text.startswith(";", self.at):
            self.at += 1
        self.out.append(Command((), (Assignment(name[0], tuple(words)),), (), operator, within, self.path))
        self._skip(newlines=True)
        if self._end(frozenset({"do"})) is None:
            self._fail("a `for` without `do`")
        self._part("do", within, frozenset({"done"}), ";")

    def _trailing(self, within: tuple[str, ...]) -> None:
        """Redirections behind a compound."""
        redirections = []
        self._skip()
        while (redirection := self._redirection()) is not None:
            redirections.append(redirection)
            self._skip()
        if redirections:
            self._emit(Command((), (), tuple(redirections), "", within, self.path))

    # -- simple commands

    def _simple(self, operator: str, within: tuple[str, ...], test: bool) -> None:
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirections: list[Redirection] = []
        if test:
            self._test(words)
        while True:
            self._skip()
            redirection = self._redirection()
            if redirection is not None:
                redirections.append(redirection)
                continue
            if self.at >= len(self.text) or (
                self.text[self.at] in META and self.text[self.at : self.at + 2] not in ("<(", ">(")
            ):
                break
            assignment = None if words else self._assignment()
            if assignment is not None:
                assignments.append(assignment)
                continue
            if test:
                self._fail("text after `]]`")
            words.append(self._word())
        if not (words or assignments or redirections):
            self._fail("no command here")
        self._emit(
            Command(tuple(words), tuple(assignments), tuple(redirections), operator, within, self.path)
        )

    def _emit(self, command: Command) -> None:
        self.out.append(command)
        for index, redirection in enumerate(command.redirections):
            if redirection.op in ("<<", "<<-"):
                self.pending.append(_Heredoc(self.out, len(self.out) - 1, index))
                self.unread -= 1

    def _test(self, words: list[Word]) -> None:
        """`[[ ... ]]`, in which the operators are words."""
        while True:
            self._skip(newlines=True)
            if self.at >= len(self.text):
                self._fail("`[[` without `]]`")
            found = _TEST_OPERATOR.match(self.text, self.at)
            if found is not None:
                if self.text[self.at : self.at + 2] in ("<(", ">("):
                    self._refuse("a process substitution in `[[`")
                self.at = found.end()
                words.append(Word(found[0], (Text(found[0]),)))
                continue
            if self.text[self.at] in META:
                self._fail("unexpected text in `[[`")
            words.append(self._word())
            if words[-1].text == "]]":
                return

    def _assignment(self) -> Assignment | None:
        found = _ASSIGNMENT.match(self.text, self.at)
        if found is None:
            return None
        if found[2] is not None:
            self._refuse("an array")
        self.at = found.end()
        if self.text.startswith("(", self.at):
            self._refuse("an array")
        value = Word("")
        if self.at < len(self.text) and self.text[self.at] not in META:
            value = self._word()
        elif self.text[self.at : self.at + 2] in ("<(", ">("):
            self._refuse("a process substitution as a value")
        return Assignment(found[1], (value,), found[3] == "+=")

    def _redirection(self) -> Redirection | None:
        found = _REDIRECTION.match(self.text, self.at)
        if found is None:
            return None
        op = found[2] or found[3]
        self.at = found.end()
        self._skip()
        if self.at >= len(self.text) or (
            self.text[self.at] in META and self.text[self.at : self.at + 2] not in ("<(", ">(")
        ):
            self._fail(f"no target after {op!r}")
        target = self._word()
        if op in ("<<", "<<-"):
            if any(not isinstance(part, Text) for part in target.parts):
                self._refuse("a here-document with an expansion in its delimiter")
            self.unread += 1
        return Redirection(op, target, found[1] or "")

    # -- white space, line breaks, here-documents

    def _skip(self, newlines: bool = False) -> None:
        while self.at < len(self.text):
            here = self.text[self.at]
            if here in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif here == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif here == "\n" and newlines:
                self._newline()
            else:
                return

    def _newline(self) -> None:
        self.at += 1
        if self.unread:
            self._refuse("a line break before the command of a here-document ends")
        for heredoc in self.pending:
            command = heredoc.commands[heredoc.command]
            redirections = list(command.redirections)
            redirection = redirections[heredoc.redirection]
            redirections[heredoc.redirection] = replace(redirection, body=self._body(redirection))
            heredoc.commands[heredoc.command] = replace(command, redirections=tuple(redirections))
        self.pending = []

    def _body(self, redirection: Redirection) -> Word:
        """The text up to the delimiter."""
        parts = [part for part in redirection.target.parts if isinstance(part, Text)]
        delimiter = "".join(part.value for part in parts)
        quoted = any(part.quoted for part in parts) or redirection.target.text != delimiter
        lines: list[str] = []
        while True:
            if self.at >= len(self.text):
                self._fail("a here-document that never ends")
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            row = self.text[self.at : end]
            self.at = min(end + 1, len(self.text))
            if redirection.op == "<<-":
                row = row.lstrip("\t")
            if row == delimiter:
                body = "".join(line + "\n" for line in lines)
                if quoted:
                    return Word(body, (Text(body, True),))
                if re.search(r"\\\n", body):
                    self._refuse("a line continuation in a here-document")
                inner = _Reader(body, self.depth + 1)
                inner._check_depth()
                return Word(body, tuple(inner._quoted("")))
            lines.append(row)

    # -- substitutions

    def _substitution(self, form: str, quoted: bool) -> Substitution:
        self.at += 2
        self._deeper()
        outer, self.out = self.out, []
        path, self.path = self.path, ()
        inner, self.inner = self.inner, True
        before = len(self.pending)
        _, background = self._list((), frozenset({")"}))
        if len(self.pending) > before:
            self._refuse("a here-document that reaches out of its substitution")
        line = Line(tuple(self.out), background or self.background)
        self.out, self.path, self.inner = outer, path, inner
        self.depth -= 1
        return Substitution(form, line, quoted)

    def _backtick(self, quoted: bool) -> Substitution:
        self.at += 1
        inner = []
        while True:
            if self.at >= len(self.text):
                self._fail("a backtick that is never closed")
            here = self.text[self.at]
            self.at += 1
            if here == "`":
                break
            following = self.text[self.at : self.at + 1]
            if here == "\\" and following and following in ('$`\\"' if quoted else "$`\\"):
                here = following
                self.at += 1
            inner.append(here)
        text = "".join(inner)
        if _SPLIT_TOKEN.search(text):
            self._refuse("a line continuation inside a token")
        reader = _Reader(text, self.depth + 1)
        reader._check_depth()
        reader.inner = True
        return Substitution("`", reader.whole(), quoted)
