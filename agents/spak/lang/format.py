"""The formatter: one canonical layout for a spec, comments kept where they belong.

Takes a text; gives the text laid out anew and the findings of the parser. A text with syntax errors comes
back as it is. Only blanks, line breaks, commas between items and the arrow of START change: every other token
and every comment stands in the result once and in order, and the spec's hash is the same (both are made sure
of before the text is given out).

How it works: each token but the commas has one of four things before it, GLUE, SPACE, LINE (a new line of the
block) or CONT (a new line inside an item). A first walk over the tree joins what belongs together and marks
what can not stand on one line; a second one, from the outside in, decides which blocks are opened. A block
stays on one line where its author put it on one line (nothing but a blank after its bracket), it has room
there, and nothing in it needs a line of its own: a comment, a text of several lines, an opened block. So a
formatted text is formatted alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from spak.errors import BugError
from spak.incoming import ended_as
from spak.lang import ast, settings
from spak.lang.diagnostics import Diagnostic, Severity
from spak.lang.limits import MAX_BYTES
from spak.lang.parser import Parsed, parse
from spak.lang.parser.automaton import tables

WIDTH = 110
"""A block that would pass this column is opened; a text may be longer."""

INDENT = "  "
GLUE, SPACE, LINE, CONT = range(4)

_COMMENT = re.compile(r"(?://|\#)[^\n]*")
_CRLF = re.compile(r"(?<!\r)\r\n")
_JOINING = frozenset({"check", "when", "and", "or"})
"""Words that would go on with the item before them if the comma between the two were left out."""


@dataclass(frozen=True, slots=True)
class Formatted:
    """The text as it should stand; the same text again where `diagnostics` holds an error."""

    text: str
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the text could be read without an error."""
        return not any(item.severity == Severity.ERROR for item in self.diagnostics)


def format_text(text: str | bytes | Parsed, name: str = "") -> Formatted:
    """The text in canonical form. Raises: BugError `bug.format` when it would not mean the same."""
    parsed = text if isinstance(text, Parsed) else parse(text, name)
    if not parsed.ok:
        shown = parsed.text
        if not shown and isinstance(text, str):
            shown = text  # too large to be read at all
        return Formatted(shown, parsed.diagnostics)
    made = ended_as(_Layout(parsed).text(), parsed.text)
    if made == parsed.text:
        return Formatted(made, parsed.diagnostics)
    if len(made.encode()) > MAX_BYTES:
        hint = "split it, or move long texts to files"
        message = f"laid out, the spec is larger than {MAX_BYTES // 1024} KB"
        source = parsed.spec.source
        large = source.diagnostic(Severity.ERROR, "lang.too_large", message, hint, 0, 0)
        return Formatted(parsed.text, (large, *parsed.diagnostics))
    reparsed = parse(made, name)
    if not reparsed.ok or reparsed.spec.hash != parsed.spec.hash:
        raise BugError("bug.format", "the formatted text would not mean the same", "please report the spec")
    return Formatted(made, parsed.diagnostics)


def comments(parsed: Parsed) -> list[str]:
    """Every comment in order, without the blanks at its end."""
    return [word for word in words(parsed) if _COMMENT.match(word)]


def words(parsed: Parsed) -> list[str]:
    """Every token but commas, and every comment without the blanks at its end, in order: two texts that have
    the same differ in layout alone."""
    comma = tables().words.punctuation[","]
    text, tokens, found, end = parsed.text, parsed.tokens, [], 0
    for kind, start, stop in zip(tokens.kinds, tokens.starts, tokens.ends, strict=True):
        found += [comment.rstrip() for comment in _COMMENT.findall(text[end:start])]
        if kind != comma:
            found.append(text[start:stop])
        end = stop
    return found


class _Layout:
    """The layout of one text. Indexes are those of the tokens; commas are left out and put where needed."""

    def __init__(self, parsed: Parsed) -> None:
        self.spec = parsed.spec
        self.source = source = parsed.text
        self.tokens = tokens = parsed.tokens
        grammar = tables()
        self.punctuation = grammar.words.punctuation
        self.operators = {grammar.words.keywords["and"], grammar.words.keywords["or"]}
        comma = self.punctuation[","]
        kinds = tokens.kinds
        self.kept = [index for index, kind in enumerate(kinds) if kind != comma]
        self.words = [source[start:end] for start, end in zip(tokens.starts, tokens.ends, strict=True)]
        self.gaps = [""] * len(kinds)
        end = 0
        for index in self.kept:
            self.gaps[index] = source[end : tokens.starts[index]]
            end = tokens.ends[index]
        self.before = self.joints()
        self.noted = [1 if "/" in gap or "#" in gap else 0 for gap in self.gaps]
        self.hard = self.noted.copy()
        """Per token: 1 where the blocks round it can not stand on one line."""
        for index, word in enumerate(self.words):
            if "\n" in word:
                self.words[index] = _CRLF.sub("\n", word)
                self.hard[index] = 1
        self.commas: set[int] = set()
        """Tokens that have a comma behind them."""
        self.open: dict[int, int] = {}
        """Opened blocks: bracket to bracket."""
        self.forced: set[int] = set()
        """Brackets of blocks that are opened whatever room there is."""
        self.spaced: set[int] = set()
        """Tokens that want a blank line before them."""

    def joints(self) -> list[int]:
        """What stands before each token as far as the token's kind tells."""
        mark = self.punctuation
        tight = {mark[char] for char in "]):"}
        after = {mark[char] for char in "[("}
        before, last = [SPACE] * len(self.words), 0
        kinds = self.tokens.kinds
        for index in self.kept:
            kind = kinds[index]
            if kind in tight or last in after or (kind == mark["}"] and last == mark["{"]):
                before[index] = GLUE
            last = kind
        return before

    def text(self) -> str:
        for item in self.spec.items:
            self.join(item)
        self.protect(self.spec.items)
        self.measure()
        self.lines(self.spec.items, 0)
        return self.write()

    # ---- the first walk: what belongs together

    def join(self, node: Any) -> None:
        """Commas, calls and lines that must be, in a node and all below it."""
        match node:
            case ast.Entry():
                self.join(node.value)
                if node.default is not None:
                    self.join(node.default)
                self.keep_apart(node)
            case ast.MapValue():
                self.join_all(node.entries)
                self.separate(node.entries)
                self.mark(node.start, node.entries)
            case ast.ListValue():
                self.join_all(node.items)
                self.separate(node.items)
                self.mark(node.start, node.items)
            case ast.Call():
                self.before[node.start + 1] = GLUE
                self.join_all(node.args)
                self.separate(node.args)
            case ast.Next():
                self.separate(node.items)
                self.mark(node.bracket, node.items)
            case ast.Agent() | ast.Task() | ast.SystemModel() | ast.Evaluation():
                self.join_all(node.items)
                self.protect(node.items)
                self.mark(self.bracket(node), node.items)
                if isinstance(node, ast.Agent) or len(node.items) > 2:
                    self.forced.add(self.bracket(node))
            case ast.Start():
                self.join_start(node)
            case _:
                self.join_all(self.inside(node))

    def join_all(self, nodes: Sequence[Any]) -> None:
        for node in nodes:
            self.join(node)

    def inside(self, node: Any) -> tuple[Any, ...]:
        match node:
            case ast.Tagged() | ast.Step() | ast.Check():
                return () if node.body is None else (node.body,)
            case ast.Success() | ast.Invariant() | ast.BareCondition():
                return (node.condition,)
            case ast.Logic():
                return node.items
            case ast.Negation():
                return (node.item,)
            case ast.Comparison():
                return (node.left, node.right)
            case ast.Axiom():
                return () if node.check is None else (node.check,)
            case _:
                return ()

    def bracket(self, node: ast.Agent | ast.Task | ast.SystemModel | ast.Evaluation) -> int:
        """The token of the block's opening bracket."""
        match node:
            case ast.Agent():
                return node.start + (2 if node.level is None else 4)
            case ast.Task():
                return node.start + 2
            case ast.SystemModel():
                return node.start + (2 if node.name else 1)
            case _:
                return node.start + 1

    def mark(self, bracket: int, items: Sequence[Any]) -> None:
        """The author opened the block: a line break follows its bracket."""
        if items and "\n" in self.gaps[items[0].start]:
            self.forced.add(bracket)

    def separate(self, items: Sequence[Any]) -> None:
        self.commas.update(item.end - 1 for item in items[:-1])

    def protect(self, items: Sequence[Any]) -> None:
        """A comma stays where the next item would otherwise be read as a part of this one."""
        for item, following in pairwise(items):
            if self.words[following.start].lower() in _JOINING:
                self.commas.add(item.end - 1)

    def keep_apart(self, node: ast.Entry) -> None:
        """A key as the value on the next line is a slip that `check` tells by the line: it stays one."""
        value = node.value
        if isinstance(value, ast.Name) and value.value in settings.KEYS and "\n" in self.gaps[value.start]:
            self.before[value.start] = CONT
            self.hard[value.start] = 1

    def join_start(self, node: ast.Start) -> None:
        """`START x` and `START: x` are written with the arrow."""
        if node.end - node.start == 2:
            self.words[node.start] += " ->"
        else:
            self.words[node.start + 1] = "->"
            self.before[node.start + 1] = SPACE

    # ---- the second walk: which blocks are opened

    def measure(self) -> None:
        """Sums over the tokens: columns if all stood on one line, lines needed, comments."""
        for bracket in self.forced:
            self.hard[bracket] = 1
        self.lead = [0 if joint == GLUE else 1 for joint in self.before]
        widths = [0] * len(self.words)
        for index in self.kept:
            widths[index] = self.lead[index] + len(self.words[index]) + (index in self.commas)
        self.column = [0, *accumulate(widths)]
        self.needs = [0, *accumulate(self.hard)]
        self.notes = [0, *accumulate(self.noted)]

    def lines(self, items: Sequence[Any], depth: int) -> None:
        """Each item on a line of its own."""
        last: Any = None
        for item in items:
            self.before[item.start] = LINE
            if isinstance(item, ast.BareCondition) and isinstance(
                last, (ast.Success, ast.Invariant, ast.BareCondition)
            ):
                self.before[item.start] = CONT
            self.place(item, item.start, depth)
            if last is not None and self.stands_apart(item, last):
                self.spaced.add(item.start)
            last = item

    def stands_apart(self, item: Any, last: Any) -> bool:
        """Opened tasks and models have a blank line round them."""
        big = (ast.Task, ast.SystemModel, ast.Agent)
        return any(isinstance(node, big) and self.bracket(node) in self.open for node in (item, last))

    def place(self, node: Any, first: int, depth: int) -> None:
        """Decide for the blocks of a node that stands on the line that begins with token `first`."""
        match node:
            case ast.MapValue():
                if self.opens(node.start, node.end, first, depth, node.entries):
                    self.commas.difference_update(item.end - 1 for item in node.entries)
                    self.lines(node.entries, depth + 1)
            case ast.ListValue():
                if self.opens(node.start, node.end, first, depth, node.items):
                    self.lines(node.items, depth + 1)
            case ast.Call():
                if self.notes[node.end] > self.notes[node.start + 2]:
                    self.open_block(node.start + 1, node.end - 1)
                    self.lines(node.args, depth + 1)
            case ast.Next():
                if self.opens(node.bracket, node.end, first, depth, node.items):
                    self.lines(node.items, depth + 1)
            case ast.Agent() | ast.Task() | ast.SystemModel() | ast.Evaluation():
                if self.opens(self.bracket(node), node.end, first, depth, node.items):
                    self.lines(node.items, depth + 1)
            case ast.Entry():
                self.place(node.value, first, depth)
                if node.default is not None:
                    self.place(node.default, first, depth)
            case ast.Success() | ast.Invariant() | ast.BareCondition():
                self.place_condition(node, first, depth)
            case _:
                for part in self.inside(node):
                    self.place(part, first, depth)

    def opens(self, bracket: int, end: int, first: int, depth: int, items: Sequence[Any]) -> bool:
        """Open the block if it needs lines or has no room; True when it is opened."""
        needed = bracket in self.forced or self.needs[end] > self.needs[bracket + 1]
        if not needed and (not items or self.width(first, end, depth) <= WIDTH):
            return False
        self.open_block(bracket, end - 1)
        return True

    def width(self, first: int, end: int, depth: int) -> int:
        """The column at which a line of those tokens would end."""
        return len(INDENT) * depth + self.column[end] - self.column[first] - self.lead[first]

    def open_block(self, bracket: int, end: int) -> None:
        self.open[bracket] = end
        self.before[end] = LINE

    def place_condition(
        self, node: ast.Success | ast.Invariant | ast.BareCondition, first: int, depth: int
    ) -> None:
        condition = node.condition
        begin = node.start + 2
        if not isinstance(node, ast.BareCondition) and "\n" in self.gaps[begin]:
            self.before[begin] = CONT
            first, depth = begin, depth + 1
        self.place_operators(condition, self.width(first, node.end, depth) > WIDTH)
        self.place(condition, first, depth)

    def place_operators(self, node: Any, wide: bool) -> None:
        """`and` and `or` begin a line where the author broke there; all of a chain where it is too wide."""
        if isinstance(node, ast.Logic):
            for item in node.items[:-1]:
                at = item.end
                while self.tokens.kinds[at] not in self.operators:
                    at += 1
                if wide or "\n" in self.gaps[at] or "\n" in self.gaps[at + 1]:
                    self.before[at] = CONT
        for part in self.inside(node):
            self.place_operators(part, False)

    # ---- writing

    def write(self) -> str:
        out: list[str] = []
        levels = [-1]
        """The indents of the lines on which the opened blocks begin."""
        level = 0
        closers = set(self.open.values())
        self.before[self.kept[0]] = LINE
        self.before[self.kept[-1]] = LINE
        for index in self.kept:
            joint, gap = self.before[index], self.gaps[index]
            inner = levels[-1] + 1
            closing = index in closers
            if joint <= SPACE and not self.noted[index]:
                if joint:
                    out.append(" ")
            else:
                deep = inner if joint == LINE else inner + 1
                level = levels.pop() if closing else deep
                blank = self.write_comments(out, gap, deep, index)
                if out:
                    out.append("\n\n" if blank and not closing else "\n")
                out.append(INDENT * level)
            out.append(self.words[index])
            if index in self.commas:
                out.append(",")
            if index in self.open:
                levels.append(level)
        text = "".join(out).rstrip()
        return text + "\n" if text else ""

    def write_comments(self, out: list[str], gap: str, deep: int, index: int) -> bool:
        """The comments before a token; True when a blank line comes between them and the token."""
        wanted = index in self.spaced and not _has_blank(gap)
        done, first = 0, True
        if not self.noted[index]:
            return wanted or gap.count("\n") > 1
        for found in _COMMENT.finditer(gap):
            breaks = gap.count("\n", done, found.start())
            done = found.end()
            if first and not breaks and out:
                out.append(" ")
            elif out:
                out.append("\n\n" if breaks > 1 or wanted else "\n")
                wanted = False
            if breaks or not first or not out:
                out.append(INDENT * deep)
            out.append(found.group().rstrip())
            first = False
        return wanted or gap.count("\n", done) > 1


def _has_blank(gap: str) -> bool:
    """True when the gap has an empty line somewhere between its comments."""
    return bool(re.search(r"\n[^\S\n]*(?:,[^\S\n]*)*\n", gap))
