"""A text of the extended language, put into the core language.

`expanded(text, automaton, patch)` parses by the extended tables and puts each use of a new rule's template in
its place, from the inside out; a text that uses none comes back as it is. None where it does not parse.
"""

from __future__ import annotations

from dataclasses import dataclass

from spak.lang.ast import Tokens
from spak.lang.parser.automaton import ACCEPT, can_shift
from spak.lang.parser.lexer import lex
from spak.outer.grammar.lalr import Automaton
from spak.outer.grammar.patch import GrammarPatch


@dataclass(slots=True)
class _Part:
    """Tokens from `first` up to `end`; `uses` are those of new rules within, outermost first."""

    first: int
    end: int
    uses: list[_Use]


@dataclass(slots=True)
class _Use:
    alias: str
    part: _Part
    kids: list[_Part]


def expanded(text: str, automaton: Automaton, patch: GrammarPatch) -> str | None:
    """The text without new rules; None where the extended grammar does not take it."""
    tables = automaton.tables
    tokens, problems = lex(text, tables.words)
    whole = None if problems else _parsed(tokens, automaton, {rule.alias for rule in patch.rules})
    if whole is None:
        return None
    return _replaced(text, tokens, 0, len(text), whole.uses, patch)


def _parsed(tokens: Tokens, automaton: Automaton, new: set[str]) -> _Part | None:
    tables = automaton.tables
    states, parts, at = [0], [_Part(0, 0, [])], 0
    while True:
        kind = tokens.kinds[at]
        if kind >= tables.keyword and not can_shift(states, kind, tables):
            kind = tables.words.name
        action = tables.rows[states[-1]].get(kind)
        if action is None:
            return None
        if action >= 0:
            states.append(action)
            parts.append(_Part(at, at + 1, []))
            at += 1
            continue
        size, origin, code = tables.rules[~action]
        kids = parts[len(parts) - size :] if size else []
        whole = _Part(
            kids[0].first if kids else at,
            kids[-1].end if kids else at,
            [use for kid in kids for use in kid.uses],
        )
        if code == ACCEPT:
            return whole
        if size:
            del parts[-size:], states[-size:]
        alias = tables.builders[~action]
        if alias in new:
            whole = _Part(whole.first, whole.end, [_Use(alias, whole, kids)])
        parts.append(whole)
        states.append(tables.gotos[states[-1]][origin])


def _replaced(text: str, tokens: Tokens, start: int, end: int, uses: list[_Use], patch: GrammarPatch) -> str:
    """The text between two places, with each use replaced."""
    made, at = [], start
    for use in uses:
        parts = [_text(text, tokens, kid, patch) for kid in use.kids]
        made += [text[at : tokens.starts[use.part.first]], patch.filled(use.alias, parts)]
        at = tokens.ends[use.part.end - 1]
    return "".join([*made, text[at:end]])


def _text(text: str, tokens: Tokens, part: _Part, patch: GrammarPatch) -> str:
    if part.end == part.first:
        return ""
    return _replaced(text, tokens, tokens.starts[part.first], tokens.ends[part.end - 1], part.uses, patch)
