"""What each stretch of the text is, for colours: keywords, keys, names, texts and the variables in them.

Takes a View; gives Marks in order of place that do not overlap. The tree says which words are keywords and
which are names (`task next`), so that this is exact where a grammar of regular expressions only guesses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from spak.lang import ast
from spak.lang.features.names import occurrences
from spak.lang.features.view import Occurrence, View
from spak.lang.parser.automaton import tables

MarkKind = Literal[
    "comment",
    "keyword",
    "property",
    "class",
    "function",
    "method",
    "type",
    "variable",
    "parameter",
    "enumMember",
    "event",
    "string",
    "number",
]
_COMMENT = re.compile(r"(?://|#)[^\n]*")
_NAMES: dict[str, MarkKind] = {
    "task": "function",
    "step": "method",
    "check": "method",
    "variable": "variable",
    "builtin": "variable",
    "input": "parameter",
    "axiom": "variable",
    "heuristic": "variable",
    "prediction": "variable",
    "tool": "type",
    "validator": "type",
    "proposer": "type",
    "backend": "type",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A range of the text and what it is; offsets in characters."""

    start: int
    end: int
    kind: MarkKind


def marks(view: View) -> tuple[Mark, ...]:
    """Every stretch that has a colour."""
    return tuple(_Marker(view).run())


class _Marker:
    def __init__(self, view: View) -> None:
        self.view = view
        self.tokens = view.parsed.tokens
        self.kinds: dict[int, MarkKind] = {}
        """What the tree says of a token."""
        for item in view.spec.items:
            self.node(item)

    def run(self) -> Iterator[Mark]:
        words, text = tables().words, self.view.text
        inside = iter([*self.names(), None])
        name = next(inside)
        done = 0
        for index in range(len(self.tokens)):
            start, end = self.tokens.starts[index], self.tokens.ends[index]
            for match in _COMMENT.finditer(text, done, start):
                yield Mark(match.start(), match.end(), "comment")
            done = max(done, end)
            kind = self.kinds.get(index)
            if self.tokens.kinds[index] == words.string:
                kind = "string"
            elif self.tokens.kinds[index] == words.number:
                kind = "number"
            at = start
            while name is not None and name.start < end:
                if name.start >= at and name.end <= end:
                    if kind is not None and at < name.start:
                        yield Mark(at, name.start, kind)
                    yield Mark(name.start, name.end, _NAMES[name.kind])
                    at = name.end
                name = next(inside)
            if kind is not None and at < end:
                yield Mark(at, end, kind)

    def names(self) -> Iterator[Occurrence]:
        """The names that are one word, or a part of one, each place once."""
        done = 0
        for item in occurrences(self.view):
            if item.start >= done and not (
                item.defines and item.kind in ("axiom", "heuristic", "prediction")
            ):
                done = item.end
                yield item

    # ---- the tree

    def node(self, node: ast.Node | None) -> None:
        match node:
            case ast.Agent():
                self.kinds[node.start], self.kinds[node.start + 1] = "keyword", "class"
                if node.level is not None:
                    self.kinds[node.level.start - 1] = "keyword"
                self.nodes(node.items)
            case ast.SystemModel():
                self.kinds[node.start] = "keyword"
                if node.name:
                    self.kinds[node.start + 1] = "class"
                self.nodes(node.items)
            case ast.Task() | ast.Next() | ast.Evaluation():
                self.kinds[node.start] = "keyword"
                if isinstance(node, ast.Next) and node.by:
                    self.kinds[node.start + 1], self.kinds[node.start + 2] = "keyword", "type"
                self.nodes(node.items)
            case ast.Step() | ast.Check():
                self.kinds[node.start], self.kinds[node.start + 3] = "keyword", "type"
                self.node(node.body)
            case ast.Start():
                self.kinds[node.start] = "keyword"
            case ast.Edge():
                self.kinds[node.start] = "event"
            case ast.Success() | ast.Invariant():
                self.kinds[node.start] = "keyword"
                self.condition(node)
            case ast.BareCondition():
                self.condition(node)
            case ast.Axiom() | ast.Heuristic() | ast.Prediction():
                self.text(node)
            case ast.Entry():
                self.kinds[node.start] = "property"
                self.node(node.value)
                self.node(node.default)
            case ast.Tagged():
                self.kinds[node.start] = "type"
                self.node(node.body)
            case ast.Call():
                self.kinds[node.start] = "function"
                self.nodes(node.args)
            case ast.ListValue():
                self.nodes(node.items)
            case ast.MapValue():
                self.nodes(node.entries)
            case ast.Name():
                self.kinds[node.start] = "enumMember"
            case _:
                pass

    def nodes(self, items: tuple[ast.Node, ...]) -> None:
        for item in items:
            self.node(item)

    def text(self, node: ast.Axiom | ast.Heuristic | ast.Prediction) -> None:
        self.kinds[node.start] = "keyword"
        if isinstance(node, ast.Axiom) and node.check is not None:
            self.kinds[node.check.start - 1] = "keyword"
            self.node(node.check)
        elif isinstance(node, ast.Heuristic) and node.when is not None:
            self.kinds[node.when.start - 1], self.kinds[node.when.start] = "keyword", "event"

    def condition(self, node: ast.Success | ast.Invariant | ast.BareCondition) -> None:
        """Operators by their words; the functions and bare words by the tree."""
        keywords = tables().words.keywords
        operators = {keywords[word] for word in ("and", "or", "not")}
        self.operands(node.condition)
        for index in range(node.start, node.end):
            if self.tokens.kinds[index] in operators and index not in self.kinds:
                self.kinds[index] = "keyword"

    def operands(self, node: ast.Condition) -> None:
        match node:
            case ast.Logic():
                for item in node.items:
                    self.operands(item)
            case ast.Negation():
                self.operands(node.item)
            case ast.Comparison():
                self.operands(node.left)
                self.operands(node.right)
            case _:
                self.node(node)
