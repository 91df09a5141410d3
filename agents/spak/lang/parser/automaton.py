"""The grammar's tables, read once, and the question whether a terminal can be shifted.

Takes grammar.json, which generate.py makes of grammar.lark; gives Tables. Both drivers run on them: the
fast one of the package and the recovering one of recover.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import orjson

from spak.lang.parser.lexer import Vocabulary, vocabulary

PASS, NEW, APPEND, DROP, BUILD, ACCEPT = range(6)


@dataclass(frozen=True, slots=True)
class Tables:
    """LALR tables: what each state does at each terminal, where it goes after a rule, what a rule makes."""

    terminals: Sequence[str]
    keyword: int
    rows: Sequence[dict[int, int]]
    gotos: Sequence[dict[int, int]]
    rules: Sequence[tuple[int, int, int]]
    """Length, origin and code of each rule."""
    builders: Sequence[str]
    words: Vocabulary


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The tables of the grammar, read once."""
    data = orjson.loads(Path(__file__).with_name("grammar.json").read_bytes())
    return Tables(
        terminals=data["terminals"],
        keyword=data["keywords"],
        rows=[dict(zip(row[::2], row[1::2], strict=True)) for row in data["rows"]],
        gotos=[dict(zip(row[::2], row[1::2], strict=True)) for row in data["gotos"]],
        rules=[(size, origin, code) for size, origin, code, _ in data["rules"]],
        builders=[builder for *_, builder in data["rules"]],
        words=vocabulary(data["terminals"], data["keywords"]),
    )


def can_shift(states: Sequence[int], kind: int, grammar: Tables) -> bool:
    """True when the terminal can be shifted (or the file can end) after the reductions that it brings."""
    stack = list(states)
    while True:
        action = grammar.rows[stack[-1]].get(kind)
        if action is None:
            return False
        if action >= 0:
            return True
        size, origin, code = grammar.rules[~action]
        if code == ACCEPT:
            return True
        if size:
            del stack[-size:]
        stack.append(grammar.gotos[stack[-1]][origin])
