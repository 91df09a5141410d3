"""The shape of a text: its symbols as a tree, and the ranges that can be folded.

Takes a View; gives Symbols (agent, tasks, steps, the texts of a SYSTEM_MODEL, inputs) and Folds. Symbols come
from the tree and show what parsed; folds come from the tokens and work on any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from spak.lang import ast
from spak.lang.features.view import View
from spak.lang.parser.automaton import tables

SymbolKind = Literal["agent", "task", "step", "check", "model", "text", "inputs", "input", "setting"]
FoldKind = Literal["region", "comment"]
_COMMENT = re.compile(r"[ \t]*(//|#)")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named part of the text; `name_start` to `name_end` is the name, inside of `start` to `end`."""

    name: str
    kind: SymbolKind
    detail: str
    start: int
    end: int
    name_start: int
    name_end: int
    children: tuple[Symbol, ...] = ()


@dataclass(frozen=True, slots=True)
class Fold:
    """From the line of `start` to the line of `end`."""

    start: int
    end: int
    kind: FoldKind = "region"


def symbols(view: View) -> tuple[Symbol, ...]:
    """The parts of the file, nested."""
    return tuple(_symbols(view, view.spec.items))


def _symbols(view: View, items: tuple[ast.TopItem | ast.AgentItem, ...]) -> Iterator[Symbol]:
    for item in items:
        match item:
            case ast.Agent():
                level = f"LEVEL {item.level.value}" if item.level is not None else ""
                yield _named(view, item, "agent", item.name, level, tuple(_symbols(view, item.items)))
            case ast.Task():
                yield _named(view, item, "task", item.name, "", tuple(_steps(view, item)))
            case ast.SystemModel():
                inner = tuple(_texts(view, item))
                yield _named(view, item, "model", item.name or "SYSTEM_MODEL", "", inner, bool(item.name))
            case ast.Entry():
                inputs = item.key.upper() == "INPUTS" and isinstance(item.value, ast.MapValue)
                inner = tuple(_inputs(view, item.value)) if inputs else ()
                yield _named(view, item, "inputs" if inputs else "setting", item.key, "", inner, False)
            case _:
                pass


def _steps(view: View, task: ast.Task) -> Iterator[Symbol]:
    for item in task.items:
        if isinstance(item, ast.Step):
            yield _named(view, item, "step", item.name, item.kind)
        elif isinstance(item, ast.Evaluation):
            for check in item.items:
                yield _named(view, check, "check", check.name, check.kind)


def _texts(view: View, model: ast.SystemModel) -> Iterator[Symbol]:
    counts = {"axiom": 0, "heuristic": 0, "prediction": 0}
    for item in model.items:
        if isinstance(item, (ast.Axiom, ast.Heuristic, ast.Prediction)):
            word = type(item).__name__.lower()
            counts[word] += 1
            text = " ".join(item.text.value.split())
            yield _named(view, item, "text", f"{word} {counts[word]}", text[:80], (), False)


def _inputs(view: View, block: ast.Value) -> Iterator[Symbol]:
    for entry in block.entries if isinstance(block, ast.MapValue) else ():
        kind = entry.value.value if isinstance(entry.value, ast.Name) else ""
        yield _named(view, entry, "input", entry.key, kind, (), False)


def _named(
    view: View,
    node: ast.Agent
    | ast.Task
    | ast.SystemModel
    | ast.Step
    | ast.Check
    | ast.Entry
    | ast.Axiom
    | ast.Heuristic
    | ast.Prediction,
    kind: SymbolKind,
    name: str,
    detail: str,
    children: tuple[Symbol, ...] = (),
    second: bool = True,
) -> Symbol:
    """The symbol of a node; its name is the second token, or the first."""
    start, end = view.source.offsets(node.start, node.end)
    token = node.start + 1 if second and node.start + 1 < node.end else node.start
    name_start, name_end = view.source.offsets(token, token + 1)
    return Symbol(name or "?", kind, detail, start, max(end, name_end), name_start, name_end, children)


def folds(view: View) -> tuple[Fold, ...]:
    """Brackets, long texts and blocks of comments of more than one line."""
    found = [*_brackets(view), *_comments(view)]
    return tuple(sorted(found, key=lambda item: (item.start, -item.end)))


def _brackets(view: View) -> Iterator[Fold]:
    words, text, raw = tables().words, view.text, view.raw
    stack: list[int] = []
    for kind, start, end in zip(raw.kinds, raw.starts, raw.ends, strict=True):
        if kind in words.openers:
            stack.append(start)
        elif kind in words.closers and stack:
            first = stack.pop()
            if text.find("\n", first, start) >= 0:
                yield Fold(first, start)
        elif kind == words.string and text.startswith('"""', start) and text.find("\n", start, end) >= 0:
            yield Fold(start, end)


def _comments(view: View) -> Iterator[Fold]:
    """Runs of lines that are comments and nothing else."""
    first, last, count, at = 0, 0, 0, 0
    for line in view.text.splitlines(keepends=True) if len(view.text) else ():
        whole = (
            _COMMENT.match(line) is not None and view.token_at(at + len(line) - len(line.lstrip())) is None
        )
        if whole:
            first = at if count == 0 else first
            last, count = at, count + 1
        if not whole:
            if count > 1:
                yield Fold(first, last, "comment")
            count = 0
        at += len(line)
    if count > 1:
        yield Fold(first, last, "comment")
