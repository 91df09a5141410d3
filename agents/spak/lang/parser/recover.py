"""The recovering parser: runs only after the fast one failed, and finds every error in one pass.

Takes the text and its tokens; gives the tokens as mended, the items of the file, the findings, and the
builder that made the nodes. First comes a look at the layout of the file, where people and models slip most
(layout.py). Then the tables run as in the fast driver, but `TASK name {`, `STEP name :` and `NEXT {` are
keywords wherever they stand, so that a lost `}` does not swallow the next task. At an error the first mend
wins that lets four more tokens parse: insert one token, delete one, replace one; else skip to where parsing
can go on. A finding that follows another within three tokens is a consequence of it and is not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spak.lang.ast import Tokens
from spak.lang.diagnostics import LIMIT
from spak.lang.parser.automaton import APPEND, BUILD, DROP, NEW, PASS, can_shift
from spak.lang.parser.build import Builder
from spak.lang.parser.layout import Layout
from spak.lang.parser.lexer import Problem

LOOK_AHEAD = 4
QUIET = 3
MAX_MENDS = 300

_INSERTS = ("->", ":", ",", "}", "]", ")", "{", "NAME", "STRING", "NUMBER", "=", "CMP")
_REPLACES = ("NAME", "->", ":", "STRING", "NUMBER", "{", "}", "]", ",")
_VALUE = ("NAME", "NUMBER", "STRING", "[", "{")
_WORDS = {
    "VALUE": "a value",
    "$END": "the end of the file",
    "NAME": "a name",
    "STRING": 'a text in "..."',
    "NUMBER": "a number",
    "CMP": "a comparison",
}


def recover(text: str, tokens: Tokens) -> tuple[Tokens, list[Any], list[Problem], Builder]:
    """Parse what can be parsed."""
    return _Recovery(text, tokens).run()


class _Recovery(Layout):
    def __init__(self, text: str, tokens: Tokens) -> None:
        super().__init__(text, tokens)
        self.states: list[int] = [0]
        self.values: list[Any] = []
        self.at = 0
        self.shifted = QUIET
        self.mends = 0
        self.closing = False

    # ---- the drive

    def run(self) -> tuple[Tokens, list[Any], list[Problem], Builder]:
        self.look()
        tokens = Tokens(self.kinds, self.starts, self.ends)
        builder = Builder(self.text, tokens)
        actions: Any = builder.actions(self.grammar.builders)
        equals = self.number["="]
        while True:
            if self.kinds[self.at] == equals:
                self.try_compare()
            action = self.grammar.rows[self.states[-1]].get(self.kind_at(self.at, self.states))
            if action is None:
                self.mend()
            elif action >= 0:
                self.states.append(action)
                self.values.append(self.at)
                self.at += 1
                self.shifted += 1
            elif self.reduce(~action, actions):
                return tokens, self.values[0], self.found, builder

    def reduce(self, rule: int, actions: Any) -> bool:
        """One reduction; True when it is the last."""
        size, origin, code = self.grammar.rules[rule]
        if code == BUILD:
            kids = self.values[-size:]
            del self.values[-size:]
            self.values.append(actions[rule](kids, self.at))
        elif code == APPEND:
            item = self.values.pop()
            self.values[-1].append(item)
        elif code == DROP:
            self.values.pop()
        elif code == NEW:
            self.values.append([])
        elif code != PASS:
            return True
        if size:
            del self.states[-size:]
        self.states.append(self.grammar.gotos[self.states[-1]][origin])
        return False

    def kind_at(self, at: int, states: Sequence[int]) -> int:
        """The token's kind: a keyword where its shape says so or the stack can take it, else a name."""
        kind = self.kinds[at]
        if kind < self.grammar.keyword or self.opens(at) or can_shift(states, kind, self.grammar):
            return kind
        return self.number["NAME"]

    # ---- mends

    def mend(self) -> None:
        self.mends += 1
        if self.kinds[self.at] == 0 or self.mends > MAX_MENDS or len(self.found) >= LIMIT:
            self.close()
            return
        if not (self.try_insert() or self.try_delete() or self.try_replace()):
            self.panic()
        self.shifted = 0

    def try_compare(self) -> None:
        """`=` between two values of a condition is meant as `==`. Asked before what stands left of it is
        reduced, for then no comparison can follow any more."""
        equals, compare = self.kinds[self.at], self.number["CMP"]
        if can_shift(self.states, equals, self.grammar) or not can_shift(self.states, compare, self.grammar):
            return
        if self.parses([compare], self.at + 1, ahead=1):
            start, end = self.starts[self.at], self.ends[self.at]
            self.report("'=' does not compare: write '=='", start, end, ((start, end, "=="),))
            self.kinds[self.at] = compare

    def try_insert(self) -> bool:
        for name in self.insert_order():
            kind = self.number[name]
            if can_shift(self.states, kind, self.grammar) and self.parses([kind], self.at):
                self.report_missing(name)
                self.insert(self.at, kind)
                return True
        return False

    def insert_order(self) -> Sequence[str]:
        if self.opens(self.at):
            return ("}", "]", ")", *(name for name in _INSERTS if name not in "}])"))
        if self.first_of_line(self.at):
            return ("NAME", *(name for name in _INSERTS if name != "NAME"))
        return _INSERTS

    def try_delete(self) -> bool:
        if not self.parses([], self.at + 1):
            return False
        start, end = self.starts[self.at], self.ends[self.at]
        self.report(f"unexpected {self.show(self.at)}", start, end, ((start, end, ""),))
        del self.kinds[self.at], self.starts[self.at], self.ends[self.at]
        return True

    def try_replace(self) -> bool:
        for name in _REPLACES:
            kind = self.number[name]
            if can_shift(self.states, kind, self.grammar) and self.parses([kind], self.at + 1):
                message = f"{_WORDS.get(name, repr(name))} was expected here, not {self.show(self.at)}"
                self.report(message, self.starts[self.at], self.ends[self.at])
                if name in ("NAME", "STRING", "NUMBER"):  # no value can be read from the wrong token
                    self.ends[self.at] = self.starts[self.at]
                self.kinds[self.at] = kind
                return True
        return False

    def panic(self) -> None:
        """Skip to a place where some open construct can go on."""
        self.report(f"unexpected {self.show(self.at)}", self.starts[self.at], self.ends[self.at])
        depth, openers, closers = 0, self.grammar.words.openers, self.grammar.words.closers
        first = self.at
        while self.kinds[self.at] != 0:
            kind = self.kinds[self.at]
            sync = depth == 0 and (kind in closers or self.opens(self.at) or self.first_of_line(self.at))
            if (self.opens(self.at) or sync) and self.at > first and self.pop_to(LOOK_AHEAD):
                return
            if kind in openers:
                depth += 1
            elif kind in closers:
                depth = max(0, depth - 1)
            self.at += 1
        self.close()

    def pop_to(self, ahead: int) -> bool:
        """Pop to the deepest state from which the next tokens parse."""
        for size in range(len(self.states), 0, -1):
            if self.parses([], self.at, size, ahead):
                del self.states[size:]
                del self.values[size - 1 :]
                return True
        return False

    def close(self) -> None:
        """End the file here: close what is open, telling once."""
        if not self.closing:
            self.closing = True
            del self.kinds[self.at + 1 :], self.starts[self.at + 1 :], self.ends[self.at + 1 :]
            if self.kinds[self.at] == 0:
                self.report_open()
            self.kinds[self.at] = 0
        brace = self.number["}"]
        for size in range(len(self.states), 0, -1):
            stack = self.states[:size]
            ends = can_shift(stack, 0, self.grammar)
            if ends or can_shift(stack, brace, self.grammar):
                del self.states[size:]
                del self.values[size - 1 :]
                if not ends:
                    self.insert(self.at, brace)
                return

    def parses(self, kinds: list[int], at: int, size: int = 0, ahead: int = LOOK_AHEAD) -> bool:
        """True when the given kinds and then the tokens from `at` on parse, `ahead` of them in all."""
        stack = self.states[:size] if size else list(self.states)
        rows, rules, gotos = self.grammar.rows, self.grammar.rules, self.grammar.gotos
        for step in range(ahead + len(kinds)):
            index = at + step - len(kinds)
            kind = kinds[step] if step < len(kinds) else self.kind_at(index, stack)
            while True:
                action = rows[stack[-1]].get(kind)
                if action is None:
                    return False
                if action >= 0:
                    stack.append(action)
                    break
                length, origin, code = rules[~action]
                if code > BUILD:
                    return True
                if length:
                    del stack[-length:]
                stack.append(gotos[stack[-1]][origin])
        return True

    # ---- words

    def report(
        self, message: str, start: int, end: int, fix: tuple[tuple[int, int, str], ...] | None = None
    ) -> None:
        if self.shifted >= QUIET:
            self.found.append(("lang.syntax", message, self.expected(), start, end, fix))

    def report_missing(self, name: str) -> None:
        """A token is missing here: told after the token before when that is on another line."""
        here = self.starts[self.at]
        before = self.ends[self.at - 1] if self.at else here
        place = before if self.first_of_line(self.at) else here
        end = place if place == before else self.ends[self.at]
        what = "a value" if name == "NAME" and self.needs_value() else _WORDS.get(name, f"'{name}'")
        if name == "NAME" and self.at and self.kinds[self.at - 1] == self.number["->"]:
            what = "the task that '->' leads to"
        message = f"{what} is missing" + (f" before {self.show(self.at)}" if place == here else "")
        if name == "}":
            message += self.owner()
        fix = None if name in _WORDS else ((place, place, f" {name} " if name == "->" else name),)
        self.report(message, place, end, fix)

    def report_open(self) -> None:
        place = self.ends[self.at - 1] if self.at else 0
        if self.shifted >= QUIET or not self.found:
            message = "the file ends too early: '}' is missing" + self.owner()
            if not self.open_brace():
                message = "the file ends too early"
            self.found.append(("lang.syntax", message, self.expected(), place, place, None))

    def needs_value(self) -> bool:
        return all(can_shift(self.states, self.number[name], self.grammar) for name in _VALUE)

    def open_brace(self) -> int:
        """The token that opens what is still open here, 0 when nothing is."""
        openers, closers = self.grammar.words.openers, self.grammar.words.closers
        stack: list[int] = []
        for index in range(self.at):
            if self.kinds[index] in openers:
                stack.append(index)
            elif self.kinds[index] in closers and stack:
                stack.pop()
        return stack[-1] if stack else 0

    def owner(self) -> str:
        opener = self.open_brace()
        if not opener:
            return ""
        return f" for the '{self.text[self.starts[opener]]}' of line {self.lines.line(self.starts[opener])}"

    def expected(self) -> str:
        """`expected a, b or c`: what the stack can take, at most six."""
        kinds = [
            kind for kind in range(len(self.grammar.terminals)) if can_shift(self.states, kind, self.grammar)
        ]
        names = [self.grammar.terminals[kind] for kind in kinds]
        if self.needs_value():
            names = ["VALUE", *(name for name in names if name not in _VALUE)]
        names.sort(key=lambda name: (name in ",}", not name[0].isalpha()))
        words = [_WORDS.get(name, name if name[0].isalpha() else f"'{name}'") for name in names[:6]]
        if not words:
            return ""
        more = " or more" if len(names) > 6 else ""
        listed = ", ".join(words[:-1]) + (" or " if len(words) > 1 and not more else ", ") + words[-1]
        return f"expected {listed.lstrip(', ')}{more}"
