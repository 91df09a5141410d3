"""The language's grammar as rules, read from grammar.lark.

Reads the form in which that file is written: `origin: alternative | alternative -> alias`, one rule over one
line or more, terminals in capitals. What it does not know it refuses; a test compares the tables that follow
with those that Lark makes of the same file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from spak.lang import parser

GRAMMAR = Path(parser.__file__).with_name("grammar.lark")
END = "$END"
START = "start"

_RULE = re.compile(r"([a-z_]+)\s*:(.*)", re.DOTALL)
_SYMBOL = re.compile(r'"([^"]+)"|([A-Z_]+)|([a-z_]+)')
_KEYWORD = re.compile(r'([A-Z_]+): "([a-z_]+)"i')


class Rule(NamedTuple):
    """One production of the grammar."""

    origin: str
    symbols: tuple[str, ...]
    alias: str = ""

    def __str__(self) -> str:
        return f"{self.origin}: {' '.join(self.symbols)}".rstrip()


@dataclass(frozen=True)
class Grammar:
    """Rules, the first of them for `start`. A symbol is a terminal where no rule has it as its origin;
    punctuation stands for itself, keywords are in capitals."""

    rules: tuple[Rule, ...]
    keywords: tuple[str, ...]

    @property
    def origins(self) -> Mapping[str, tuple[Rule, ...]]:
        """The productions of each nonterminal, in order."""
        found: dict[str, list[Rule]] = {}
        for rule in self.rules:
            found.setdefault(rule.origin, []).append(rule)
        return {origin: tuple(rules) for origin, rules in found.items()}

    @property
    def terminals(self) -> tuple[str, ...]:
        """`$END` first, keywords last, as the lexer wants them."""
        origins = self.origins
        plain = {symbol for rule in self.rules for symbol in rule.symbols if symbol not in origins}
        return (END, *sorted(plain - set(self.keywords)), *self.keywords)


@lru_cache(maxsize=1)
def core() -> Grammar:
    """The grammar of the shipped language."""
    return read(GRAMMAR.read_text(encoding="utf-8"))


def read(text: str) -> Grammar:
    """Raises: ValueError for a text that is not written as grammar.lark is."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("//", "%"))]
    keywords = [match[1] for line in lines if (match := _KEYWORD.fullmatch(line.strip()))]
    whole: list[str] = []
    for line in lines:
        if line[0].isspace():
            whole[-1] += " " + line.strip()
        elif not line[0].isupper():
            whole.append(line.strip())
    rules: list[Rule] = []
    for line in whole:
        match = _RULE.fullmatch(line)
        if match is None:
            raise ValueError(f"no rule: {line}")
        rules += [alternative(match[1], part) for part in _alternatives(match[2])]
    return Grammar(tuple(rules), tuple(keywords))


def _alternatives(text: str) -> list[str]:
    """The parts between bars that stand in no quotes."""
    return re.split(r'\|(?=(?:[^"]*"[^"]*")*[^"]*$)', text)


def alternative(origin: str, text: str) -> Rule:
    """One alternative, `symbols -> alias`. Raises: ValueError."""
    body, arrow, alias = text.strip(), "", ""
    match = re.fullmatch(r"(.*?)->\s*([a-z_]+)", body, re.DOTALL)
    if match is not None and match[1].count('"') % 2 == 0:
        body, arrow, alias = match[1].strip(), "->", match[2]
    symbols, at = [], 0
    while at < len(body):
        found = _SYMBOL.match(body, at)
        if found is None:
            raise ValueError(f"{body[at:]!r} is not a symbol of a rule")
        symbols.append(found[1] or found[2] or found[3])
        at = found.end()
        while at < len(body) and body[at].isspace():
            at += 1
    if arrow and not symbols:
        raise ValueError("an empty alternative has no alias")
    return Rule(origin, tuple(symbols), alias)
