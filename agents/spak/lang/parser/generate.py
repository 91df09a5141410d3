"""The generator of grammar.json: LALR tables made by Lark from grammar.lark, once, for our own driver.

`python -m spak.lang.parser.generate` writes the file; a test compares its hash with the grammar's. Only this
module and tests import lark: the parser reads the tables and nothing else. Strict mode makes a conflict an
error (Lark would otherwise settle shift against reduce in silence).

    terminals  names in order of their numbers; `$END` is 0, keywords come last, from `keywords` on
    rows       per state a flat list: terminal, action; >= 0 shifts to that state, < 0 reduces ~action
    gotos      per state a flat list: rule's origin, state
    rules      [length, origin, code, builder]; see CODES
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

GRAMMAR = Path(__file__).with_name("grammar.lark")
TABLES = Path(__file__).with_name("grammar.json")

CODES = {"pass": 0, "new": 1, "append": 2, "drop": 3, "build": 4, "accept": 5}
"""What a reduction does: hand on its child, open a list, append to it, drop a comma, call a builder, end."""

KEYWORDS = [
    "AGENT",
    "LEVEL",
    "START",
    "SYSTEM_MODEL",
    "AXIOM",
    "HEURISTIC",
    "PREDICTION",
    "WHEN",
    "CHECK",
    "TASK",
    "STEP",
    "NEXT",
    "EVALUATION",
    "SUCCESS",
    "INVARIANT",
    "AND",
    "OR",
    "NOT",
]

PUNCTUATION = ("->", "{", "}", "[", "]", "(", ")", ",", ":", "=")


def grammar_hash() -> str:
    """The hash that grammar.json must carry."""
    return hashlib.sha256(GRAMMAR.read_bytes()).hexdigest()


def generate() -> dict[str, Any]:
    """The tables of the grammar as it stands. Raises: lark.GrammarError when it has a conflict."""
    from lark import Lark
    from lark.parsers.lalr_analysis import Shift

    lark = Lark(GRAMMAR.read_text(), parser="lalr", strict=True)
    front: Any = lark.parser
    table = front.parser._parse_table
    literals = {item.name: str(item.pattern.value) for item in lark.terminals}
    names = [item.name for item in lark.terminals if item.name not in (*lark.ignore_tokens, *KEYWORDS)]
    terminals = ["$END", *sorted(names), *KEYWORDS]
    number = {name: index for index, name in enumerate(terminals)}
    rules = sorted({id(rule): rule for rule in lark.rules}.values(), key=_rule_key)
    rule_number = {_rule_key(rule): index for index, rule in enumerate(rules)}
    origins = sorted({str(rule.origin.name) for rule in rules})
    rows, gotos = [], []
    order = _in_order(table.states, table.start_states["start"], Shift)
    for state in order:
        row: dict[int, int] = {}
        goto: dict[int, int] = {}
        for symbol, (action, argument) in table.states[state].items():
            if symbol not in number:
                goto[origins.index(str(symbol))] = order[argument]
            else:
                row[number[symbol]] = (
                    order[argument] if action is Shift else ~rule_number[_rule_key(argument)]
                )
        rows.append([item for pair in sorted(row.items()) for item in pair])
        gotos.append([item for pair in sorted(goto.items()) for item in pair])
    return {
        "grammar": grammar_hash(),
        "terminals": [literals[name] if literals.get(name) in PUNCTUATION else name for name in terminals],
        "keywords": number[KEYWORDS[0]],
        "start": order[table.start_states["start"]],
        "rows": rows,
        "gotos": gotos,
        "rules": [
            [len(rule.expansion), origins.index(str(rule.origin.name)), *_reduction(rule)] for rule in rules
        ],
    }


def encode(tables: dict[str, Any]) -> str:
    """The text of grammar.json: one state or rule on a line."""
    lines = []
    for key, value in tables.items():
        if key in ("rows", "gotos", "rules"):
            items = ",\n".join(json.dumps(item, separators=(",", ":")) for item in value)
            lines.append(f'"{key}": [\n{items}\n]')
        else:
            lines.append(f'"{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _in_order(states: Any, start: int, shift: Any) -> dict[int, int]:
    """New numbers of the states, breadth first along sorted symbols: Lark's own depend on hash seeds."""
    order = {start: 0}
    for state in (queue := [start]):
        for _symbol, (action, argument) in sorted(states[state].items(), key=lambda item: str(item[0])):
            if action is shift and argument not in order:
                order[argument] = len(order)
                queue.append(argument)
    return order


def _rule_key(rule: Any) -> tuple[str, ...]:
    return (str(rule.origin.name), *(str(symbol.name) for symbol in rule.expansion))


def _reduction(rule: Any) -> tuple[int, str]:
    origin, size = str(rule.origin.name), len(rule.expansion)
    if origin == "start":
        return CODES["accept"], ""
    if origin.endswith("_list"):
        if size == 0:
            return CODES["new"], ""
        return (CODES["drop"] if rule.expansion[1].is_term else CODES["append"]), ""
    if rule.alias:
        return CODES["build"], str(rule.alias)
    if size != 1:
        raise ValueError(f"rule without an alias has {size} children: {rule}")
    return CODES["pass"], ""


if __name__ == "__main__":
    TABLES.write_text(encode(generate()))
