"""The surface of a text: putting items into blocks and taking them out, in the layout that is there.

Takes a Parsed; collects replacements (start, end, new), in characters of the text, and touches nothing else.
What is put in follows what stands around it: a line of its own or the same line, its indent, the file's line
ends, commas where the block has them. A comment on the line of an item, or right above it, goes with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spak.lang import ast
from spak.lang.parser import Parsed, parse
from spak.lang.parser.automaton import tables
from spak.lang.report import Span as Spanned

_BREAK = re.compile(r"(?<!\r)\n")

Replacement = tuple[int, int, str]

JOINING = frozenset({"check", "when", "and", "or"})
"""Words that go on with the item before them unless a comma stands between."""


@dataclass(frozen=True, slots=True)
class Span:
    """Several items that go together."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """Items between two brackets, which are tokens; -1 and the last token for the whole file."""

    first: int
    last: int
    items: Sequence[Spanned]
    commas: bool = False
    """True where items are divided by commas."""


class Surface:
    """The text of a spec, its tokens, and the patches collected so far; offsets are of the old text."""

    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self.spec = parsed.spec
        self.text = parsed.text
        tokens = parsed.tokens
        self.kinds, self.starts, self.ends = tokens.kinds, tokens.starts, tokens.ends
        self.comma = tables().words.punctuation[","]
        self.changes: list[Replacement] = []
        self.newline = "\r\n" if "\r\n" in self.text else "\n"
        self._unit = ""

    # ---- the text

    def word(self, token: int) -> str:
        """The text of a token."""
        return self.text[self.starts[token] : self.ends[token]]

    def cut(self, node: Spanned) -> str:
        """The text of a node."""
        return self.text[self.starts[node.start] : self.ends[node.end - 1]]

    def line_start(self, offset: int) -> int:
        """The offset at which the line of an offset begins."""
        return self.text.rfind("\n", 0, offset) + 1

    def begins_line(self, token: int) -> bool:
        """Whether a token is the first one of its line."""
        start = self.starts[token]
        return not self.text[self.line_start(start) : start].strip(" \t\ufeff")

    def indent(self, token: int) -> str:
        """The blanks at the beginning of the token's line."""
        begin = self.line_start(self.starts[token])
        line = self.text[begin : self.starts[token]].lstrip("\ufeff")
        return line[: len(line) - len(line.lstrip(" \t"))]

    @property
    def unit(self) -> str:
        """One step of indent, as the text has it."""
        if not self._unit:
            widths = set()
            for line in self.text.split("\n", 400)[:400]:
                if line.startswith("\t"):
                    self._unit = "\t"
                    return self._unit
                width = len(line) - len(line.lstrip(" "))
                if width and line.strip():
                    widths.add(width)
            self._unit = " " * min(widths, default=2) if min(widths, default=2) in (2, 3, 4, 8) else "  "
        return self._unit

    def tail(self, token: int) -> int | None:
        """Where the token's line ends, if nothing but a comment follows it there."""
        begin = self.ends[token]
        if token + 1 < len(self.kinds) and "\n" not in self.text[begin : self.starts[token + 1]]:
            if self.kinds[token + 1] != 0:
                return None
            return len(self.text.rstrip("\r\n")) if self.text[begin:].strip("\r\n") else begin
        end = self.text.find("\n", begin)
        return end - 1 if self.text[end - 1 : end] == "\r" else end

    def head(self, token: int) -> int:
        """Where the lines of an item begin: at its own, or at that of the first comment right above it."""
        begin = self.line_start(self.starts[token])
        floor = self.ends[token - 1] if token else 0
        while begin > floor:
            above = self.line_start(begin - 1)
            line = self.text[above:begin].strip(" \t\r\n\ufeff")
            if above < floor or not line.startswith(("//", "#")):
                break
            begin = above
        if begin == 0 and token == 0:
            return self.line_start(self.starts[token])  # the comment at the top is about the file
        return begin

    # ---- replacements

    def replace(self, start: int, end: int, new: str) -> None:
        """Put a text in the place of another, in the file's line ends and apart from its neighbours."""
        old = self.text[start:end]
        if new and _is_word(new[0]) and _is_word(self.text[start - 1 : start]) and not _is_word(old[:1]):
            new = f" {new}"
        if new and _is_word(new[-1]) and _is_word(self.text[end : end + 1]) and not _is_word(old[-1:]):
            new = f"{new} "
        if self.newline != "\n":
            new = _BREAK.sub(self.newline, new)
        if old != new:
            self.changes.append((start, end, new))

    def replace_token(self, token: int, new: str) -> None:
        """Replace a token."""
        self.replace(self.starts[token], self.ends[token], new)

    def replace_node(self, node: Spanned, new: str) -> None:
        """Replace a node."""
        self.replace(self.starts[node.start], self.ends[node.end - 1], new)

    # ---- blocks

    def block(self, first: int, last: int, items: Sequence[Any], commas: bool | None = None) -> Block:
        """A block with its habit of commas; `commas` says what it is where the text does not tell."""
        divided = [self.kinds[item.end] == self.comma for item in items[:-1]]
        if divided:
            return Block(first, last, items, divided[0] if commas is None else any(divided))
        return Block(first, last, items, bool(commas))

    def map(self, node: ast.MapValue) -> Block:
        """The block of a map value."""
        one_line = "\n" not in self.cut(node)
        return self.block(node.start, node.end - 1, node.entries, one_line)

    def next(self, node: ast.Next) -> Block:
        """The block of a NEXT."""
        return self.block(node.bracket, node.end - 1, node.items, True)

    def evaluation(self, node: ast.Evaluation) -> Block:
        """The block of an evaluation."""
        return self.block(node.start + 1, node.end - 1, node.items)

    def task(self, node: ast.Task) -> Block:
        """The block of a task."""
        return self.block(node.start + 2, node.end - 1, node.items)

    def model(self, node: ast.SystemModel) -> Block:
        """The block of a SYSTEM_MODEL."""
        return self.block(node.start + (2 if node.name else 1), node.end - 1, node.items)

    def agent(self, node: ast.Agent) -> Block:
        """The block of an AGENT."""
        return self.block(node.start + (2 if node.level is None else 4), node.end - 1, node.items)

    def whole(self) -> Block:
        """The block in which tasks and settings stand: the AGENT's, or the file; without what it imports."""
        agent = self.spec.agent
        if agent is not None:
            return self.block(self.agent(agent).first, agent.end - 1, self._own(agent.items))
        return self.block(-1, len(self.kinds) - 1, self._own(self.spec.items))

    def _own(self, items: Sequence[Any]) -> Sequence[Any]:
        """The items of the file itself, where the text was put together from several."""
        origins = self.spec.source.origins
        if not origins:
            return items
        return [item for item in items if self.starts[item.start] < origins[0].end]

    def inner(self, block: Block) -> str:
        """The indent of the block's items."""
        for item in block.items:
            if self.begins_line(item.start):
                return self.indent(item.start)
        return "" if block.first < 0 else self.indent(block.first) + self.unit

    # ---- putting in

    def insert(self, block: Block, index: int, source: str, apart: bool = False) -> None:
        """Put an item before the one with that index, or last; `apart` gives it blank lines around it."""
        if not block.items:
            self._insert_only(block, source)
        elif index == 0:
            self._insert_first(block, source, apart)
        else:
            self._insert_after(block, min(index, len(block.items)), source, apart)

    def _insert_only(self, block: Block, source: str) -> None:
        if block.first < 0:
            gap = "" if not self.text or self.text.endswith("\n") else self.newline
            at = len(self.text)
            blank = self.newline if self.text.strip("\ufeff \t\r\n") else ""
            self.replace(at, at, gap + blank + source + self.newline)
            return
        start, end = self.ends[block.first], self.starts[block.last]
        if self.text[start:end].strip() or (self.begins_line(block.last) and "\n" in self.text[start:end]):
            at = self.line_start(end)
            self.replace(at, at, self.inner(block) + source + self.newline)
        elif "\n" in source:
            base = self.indent(block.first)
            inner = self.newline + base + self.unit
            self.replace(start, end, inner + source + self.newline + base)
        else:
            self.replace(start, end, f" {source} ")

    def _insert_first(self, block: Block, source: str, apart: bool) -> None:
        first = block.items[0]
        comma = "," if block.commas or self._joins(first) else ""
        if self.begins_line(first.start):
            at = self.head(first.start)
            blank = self.newline if apart else ""
            self.replace(at, at, self.inner(block) + source + comma + self.newline + blank)
            return
        at = self.starts[first.start]
        if "\n" in source and block.first >= 0:
            inner = self.newline + self.inner(block)
            self.replace(at, at, inner + source + comma + inner)
            return
        self.replace(at, at, source + comma + " ")

    def _insert_after(self, block: Block, index: int, source: str, apart: bool) -> None:
        before = block.items[index - 1]
        following = block.items[index] if index < len(block.items) else None
        has_comma = self.kinds[before.end] == self.comma
        anchor = before.end if has_comma else before.end - 1
        wants = block.commas or (following is not None and self._joins(following))
        after = "," if (wants and following is not None) or (has_comma and block.commas) else ""
        tail = self.tail(anchor)
        if tail is not None and self._on_lines(block, before):
            if block.commas and not has_comma:
                self.replace(self.ends[anchor], self.ends[anchor], ",")
            blank = self.newline if apart else ""
            last = blank if following is not None and not self._blank_follows(tail) else ""
            self.replace(tail, tail, blank + self.newline + self.inner(block) + source + after + last)
            return
        at = self.ends[anchor]
        comma = "," if block.commas and not has_comma else ""
        if "\n" in source:
            inner = self.newline + self.inner(block)
            base = self.newline + self.indent(block.first) if block.first >= 0 else ""
            self.replace(at, at, comma + inner + source + after + (base if following is None else ""))
            return
        room = self._room(anchor)
        self.replace(at, at, f"{comma} {source}{after}{room}")

    def _room(self, anchor: int) -> str:
        """A blank where the next token would touch what is put in after the anchor."""
        glued = anchor + 1 < len(self.kinds) and self.starts[anchor + 1] == self.ends[anchor]
        return " " if glued and self.kinds[anchor + 1] != 0 else ""

    def _on_lines(self, block: Block, before: Spanned) -> bool:
        """True when the next item goes on a line of its own."""
        if block.first < 0 or self.begins_line(before.start):
            return True
        return self.begins_line(block.last)

    def _blank_follows(self, tail: int) -> bool:
        rest = self.text[tail:].lstrip("\r")
        return not rest[1:].split("\n", 1)[0].strip() if rest else True

    def _joins(self, item: Spanned) -> bool:
        return self.word(item.start).lower() in JOINING

    # ---- taking out

    def remove(self, block: Block, index: int, comments: bool = True) -> None:
        """Take an item out, with its comma, its comments (or not) and, where it had one, its line."""
        item = block.items[index]
        following = block.items[index + 1] if index + 1 < len(block.items) else None
        before = block.items[index - 1] if index else None
        has_comma = self.kinds[item.end] == self.comma
        if has_comma and not comments:  # a comment between the item and its comma stays, with the comma
            has_comma = not self.text[self.ends[item.end - 1] : self.starts[item.end]].strip()
        needed = (
            has_comma
            and before is not None
            and following is not None
            and self._joins(following)
            and self.kinds[before.end] != self.comma
        )
        anchor = item.end if has_comma and not needed else item.end - 1
        tail = self.tail(anchor)
        if self.begins_line(item.start) and tail is not None and not needed and comments:
            self._remove_lines(item.start, tail, block)
        else:
            self._remove_words(item, anchor, before, following)
        if following is None and not has_comma and before is not None and block.commas:
            comma = before.end
            if self.kinds[comma] == self.comma and not self._covered(self.starts[comma]):
                self.replace(self.starts[comma], self.ends[comma], "")

    def _remove_lines(self, token: int, tail: int, block: Block) -> None:
        start, end = self.lines_of(token, tail)
        above = self.text[:start].rstrip(" \t")
        has_blank_above = above.endswith(("\n\n", "\n\r\n")) or not above.strip("\ufeff\r\n")
        rest = self.text[end:]
        below = rest.lstrip(" \t\r\n")
        blank_below = not rest.split("\n", 1)[0].strip() and bool(below)
        closes = not below or (block.first >= 0 and end + len(rest) - len(below) == self.starts[block.last])
        if has_blank_above and (blank_below or closes) and above.strip("\ufeff\r\n"):
            start = self.line_start(len(above) - 1)
        self.replace(start, end, "")

    def lines_of(self, token: int, tail: int) -> tuple[int, int]:
        """The lines of an item from its comments above to the break that ends it."""
        end = self.text.find("\n", tail)
        return self.head(token), (len(self.text) if end < 0 else end + 1)

    def _remove_words(
        self, item: Spanned, anchor: int, before: Spanned | None, following: Spanned | None
    ) -> None:
        start, end = self.starts[item.start], self.ends[anchor]
        if following is not None and not self.text[end : self.starts[following.start]].strip(" \t"):
            end = self.starts[following.start]
        elif before is not None and not self.text[self.ends[before.end - 1] : start].strip(" \t,"):
            start = self.ends[before.end - 1]
        else:
            start = len(self.text[:start].rstrip(" \t")) if following is None and before is None else start
        glues = _is_word(self.text[start - 1 : start]) and _is_word(self.text[end : end + 1])
        self.replace(start, end, " " if glues else "")

    def _covered(self, offset: int) -> bool:
        return any(start <= offset < end for start, end, _ in self.changes)

    # ---- source that moves

    def fitted(self, source: str, indent: str) -> str:
        """An item's source with its lines at an indent; texts in triple quotes keep theirs."""
        source = source.strip().replace("\r\n", "\n")
        if "\n" not in source:
            return source
        tokens = parse(source).tokens
        out, base, done = [], _base(source, tokens), 0
        for start, end in zip(tokens.starts, tokens.ends, strict=True):
            gap = source[done:start]
            if "\n" in gap:
                lines = gap.split("\n")
                gap = "\n".join([lines[0], *(self._shift(line, base, indent) for line in lines[1:-1])])
                gap += "\n" + self._shift(lines[-1], base, indent, last=True)
            out += [gap, source[start:end]]
            done = end
        return "".join(out).rstrip().replace("\n", self.newline)

    def _shift(self, line: str, base: str, indent: str, last: bool = False) -> str:
        return indent + line.removeprefix(base) if line.strip() or last else ""


def _is_word(char: str) -> bool:
    """True for what would run into its neighbour."""
    return char.isalnum() or (char != "" and char in '_"-./')


def _base(source: str, tokens: ast.Tokens) -> str:
    """The indent of the source's last line, which is that of the item itself."""
    last = len(tokens.kinds) - 2
    if last < 0:
        return ""
    line = source[source.rfind("\n", 0, tokens.starts[last]) + 1 : tokens.starts[last]]
    return line if not line.strip() else line[: len(line) - len(line.lstrip())]
