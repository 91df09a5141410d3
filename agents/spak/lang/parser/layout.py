"""The layout of a broken file: what it says before any grammar is asked.

Takes a text and its tokens; mends the tokens where people and models slip most, and tells each mend:

1. `{{x}}` without quotes;
2. a key alone on its line before another key has no value, START before a task no target;
3. a word one slip away from a keyword, where the shape says keyword (`TSAK x {`);
4. braces against indentation: names the line that lost or doubled a `}`.

None of this may be done to a text that parses: a task called `next` would break.
"""

from __future__ import annotations

from collections.abc import Sequence

from spak.lang import settings
from spak.lang.ast import Tokens
from spak.lang.diagnostics import LIMIT, Lines
from spak.lang.near import nearest
from spak.lang.parser.automaton import Tables, tables
from spak.lang.parser.lexer import Problem


class Layout:
    """Tokens that may be mended, with the findings about them."""

    def __init__(self, text: str, tokens: Tokens) -> None:
        self.text = text
        self.grammar: Tables = tables()
        self.number = {name: index for index, name in enumerate(self.grammar.terminals)}
        self.kinds, self.starts, self.ends = list(tokens.kinds), list(tokens.starts), list(tokens.ends)
        self.lines = Lines(text)
        self.found: list[Problem] = []

    def look(self) -> None:
        """Find and mend all four."""
        self.find_bare_templates()
        self.find_missing_values()
        self.find_misspelt_keywords()
        self.find_lost_braces()

    # ---- tokens

    def opens(self, at: int) -> bool:
        """True for `TASK name {`, `AGENT name LEVEL`, `STEP name :` and `NEXT {`."""
        shape = self.kinds[at : at + 3]
        kind, name = shape[0], self.number["NAME"]
        if kind == self.number["NEXT"]:
            return len(shape) > 1 and shape[1] == self.number["{"]
        if len(shape) < 3 or (shape[1] != name and shape[1] < self.grammar.keyword):
            return False
        if kind in (self.number["TASK"], self.number["SYSTEM_MODEL"]):
            return shape[2] == self.number["{"]
        if kind == self.number["AGENT"]:
            return shape[2] in (self.number["{"], self.number["LEVEL"])
        return kind == self.number["STEP"] and shape[2] == self.number[":"]

    def insert(self, at: int, kind: int) -> None:
        """A token of no width, after the token before."""
        place = self.ends[at - 1] if at else 0
        self.kinds.insert(at, kind)
        self.starts.insert(at, place)
        self.ends.insert(at, place)

    def show(self, at: int) -> str:
        """A token as a message shows it, cut at 24 characters."""
        if self.kinds[at] == 0:
            return "the end of the file"
        word = self.text[self.starts[at] : self.ends[at]].split("\n", 1)[0]
        return f"'{word if len(word) <= 24 else word[:21] + '...'}'"

    def word(self, at: int) -> str:
        """The text of a token."""
        return self.text[self.starts[at] : self.ends[at]]

    def first_of_line(self, at: int) -> bool:
        """Whether a token is the first one of its line."""
        return at == 0 or self.line(at) != self.lines.line(max(0, self.ends[at - 1] - 1))

    def line(self, at: int) -> int:
        """The line of a token, from 1."""
        return self.lines.line(self.starts[at])

    # ---- the slips

    def note(
        self, code: str, message: str, hint: str, at: int, fix: tuple[tuple[int, int, str], ...] | None
    ) -> None:
        """Keep a diagnostic; those past LIMIT are dropped."""
        if len(self.found) < LIMIT:
            self.found.append((code, message, hint, self.starts[at], self.ends[at], fix))

    def find_bare_templates(self) -> None:
        """`cmd: {{x}}` is meant as text."""
        opener, closer = self.number["{"], self.number["}"]
        at = 0
        while at + 4 < len(self.kinds):
            shape = self.kinds[at : at + 5]
            if shape[:2] == [opener, opener] and shape[3:] == [closer, closer]:
                start, end = self.starts[at], self.ends[at + 4]
                self.kinds[at : at + 5] = [self.number["NAME"]]
                self.starts[at : at + 5] = [start]
                self.ends[at : at + 5] = [end]
                hint = "a template is a text: it needs quotes"
                fix = ((start, start, '"'), (end, end, '"'))
                self.note("lang.syntax", f"{self.show(at)} without quotes", hint, at, fix)
                if len(self.found) >= LIMIT:
                    return
            at += 1

    def find_missing_values(self) -> None:
        """`GOAL` alone on its line, and a setting, a keyword or a brace on the next: a value is missing."""
        name = self.number["NAME"]
        at = 0
        while at + 1 < len(self.kinds):
            if (
                self.kinds[at] == name
                and self.word(at).upper() in settings.KEYS
                and (self.first_of_line(at) or self.kinds[at - 1] in (self.number["{"], self.number[","]))
                and self.first_of_line(at + 1)
                and self.begins(at + 1)
            ):
                key = self.word(at)
                hint = settings.example(key.upper()) or "write a value after it"
                end = self.ends[at]
                fix = ((end, end, " none"),) if key.upper() == "VALIDATOR" else None
                self.note("lang.missing_value", f"{key} has no value", hint, at, fix)
                self.insert(at + 1, name)
                at += 1
            elif self.kinds[at] == self.number["START"] and self.first_of_line(at):
                self.find_missing_start(at)
            at += 1

    def find_missing_start(self, at: int) -> None:
        """`START ->`, or START alone, and a task on the next line."""
        name, arrow = self.number["NAME"], self.number["->"]
        last = at + (self.kinds[at + 1] == arrow)
        if not (self.opens(last + 1) and self.first_of_line(last + 1)):
            return
        task = next((one for one in range(last + 1, len(self.kinds)) if self.is_task(one)), 0)
        first = self.word(task + 1) if task else "NAME"
        end = self.ends[last]
        fix = ((end, end, f" {first}" if last > at else f" -> {first}"),) if task else None
        self.note("lang.missing_value", "START names no task", f"for example: START -> {first}", at, fix)
        for kind in (name,) if last > at else (name, arrow):
            self.insert(last + 1, kind)

    def is_task(self, at: int) -> bool:
        """Whether a token begins a task."""
        return self.kinds[at] == self.number["TASK"] and self.opens(at)

    def begins(self, at: int) -> bool:
        """True when the token begins an item or ends a body."""
        if self.kinds[at] in (0, self.number["}"]) or self.opens(at):
            return True
        return self.kinds[at] == self.number["NAME"] and self.word(at).upper() in settings.KEYS

    def find_misspelt_keywords(self) -> None:
        """`TSAK x {`, `STPE s1: tool.run`, `NXT {` followed by an arrow."""
        name, brace, colon = self.number["NAME"], self.number["{"], self.number[":"]
        for at in range(len(self.kinds) - 3):
            if self.kinds[at] != name or self.word(at).upper() in settings.KEYS:
                continue
            first, second, third = self.kinds[at + 1 : at + 4]
            if first == name and second == brace and self.first_of_line(at):
                self.take_as_keyword(at, ("TASK", "AGENT", "SYSTEM_MODEL"))
            elif first == name and second == self.number["LEVEL"]:
                self.take_as_keyword(at, ("AGENT",))
            elif first == name and second == colon and third == name and self.first_of_line(at):
                self.take_as_keyword(at, ("STEP", "CHECK"))
            elif first == brace and self.kinds[at + 3] == self.number["->"]:
                self.take_as_keyword(at, ("NEXT",))

    def take_as_keyword(self, at: int, keywords: Sequence[str]) -> None:
        """Read a misspelt word as the nearest keyword, with a fix."""
        word = self.word(at)
        hit = nearest(word, keywords)
        if not hit or hit == word.upper():
            return
        self.kinds[at] = self.number[hit]
        meant = hit.lower() if word.islower() else hit
        fix = ((self.starts[at], self.ends[at], meant),)
        self.note("lang.syntax", f"unknown word '{word}'", f"did you mean {meant}?", at, fix)

    def find_lost_braces(self) -> None:
        """Compare braces with indentation, where their counts differ."""
        opener, closer = self.number["{"], self.number["}"]
        surplus = self.kinds.count(opener) - self.kinds.count(closer)
        heads = {self.number[name] for name in ("TASK", "AGENT", "SYSTEM_MODEL")}
        stack: list[tuple[int, int]] = []
        at = 0
        while at < len(self.kinds) and surplus and len(self.found) < LIMIT:
            if self.kinds[at] == opener:
                indent = -1 if self.number["AGENT"] in self.kinds[max(0, at - 4) : at] else self.indent(at)
                stack.append((indent, self.line(at)))
            elif self.kinds[at] in heads and self.opens(at) and self.first_of_line(at):
                while surplus > 0 and stack and self.indent(at) <= stack[-1][0]:
                    self.report_lost(at, stack.pop()[1])
                    self.insert(at, closer)
                    at += 1
                    surplus -= 1
            elif self.kinds[at] == closer and stack:
                indent, line = stack[-1]
                mine = self.indent(at)
                if (
                    surplus > 0
                    and self.first_of_line(at)
                    and mine < indent
                    and any(i == mine for i, _ in stack)
                ):
                    self.report_lost(at, line)
                    self.insert(at, closer)
                    surplus -= 1
                elif surplus < 0 and self.doubled(at, line, indent):
                    self.report_doubled(at)
                    del self.kinds[at], self.starts[at], self.ends[at]
                    surplus += 1
                    continue
                stack.pop()
            at += 1

    def doubled(self, at: int, line: int, indent: int) -> bool:
        """A `}` that does not begin its line, closes an earlier one, and is followed by lines further in."""
        after = at + 1
        if self.first_of_line(at) or line == self.line(at) or self.kinds[after] == 0:
            return False
        return self.first_of_line(after) and self.indent(after) > indent

    def report_lost(self, at: int, line: int) -> None:
        """Report a missing brace at the place where indentation says that it belongs."""
        place = self.ends[at - 1]
        message = f"'}}' is missing for the '{{' of line {line}"
        hint = "the indentation of the lines below says that it belongs here"
        self.found.append(("lang.syntax", message, hint, place, place, ((place, place, " }"),)))

    def report_doubled(self, at: int) -> None:
        """Report a brace that indentation says is one too many."""
        hint = "the indentation of the lines below says that it is one too many"
        self.note("lang.syntax", "unexpected '}'", hint, at, ((self.starts[at], self.ends[at], ""),))

    def indent(self, at: int) -> int:
        """The column of the first character of the token's line that is not blank, tabs as eight."""
        first = self.lines.starts[self.line(at) - 1]
        line = self.text[first : self.starts[at] + 1].expandtabs(8)
        return len(line) - len(line.lstrip())
