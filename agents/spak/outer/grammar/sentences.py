"""Random sentences of a grammar, small, each through a given rule if one is asked for.

Words for NAME come from the caller, because a word that becomes a keyword has to be tried as a name as well;
the key of a setting and the name of a condition are fixed ones, since others are errors to begin with.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from spak.outer.grammar.rules import START, Grammar, Rule

KEYS, CONDITIONS = ("GOAL", "RETRIES", "note"), ("file_exists",)
DEPTH = 12


class Sentences:
    """Sentences of one grammar."""

    def __init__(self, grammar: Grammar, draw: Random, names: Sequence[str] = ("alpha", "beta", "gamma")):
        self.grammar = grammar
        self.origins = grammar.origins
        self.draw = draw
        self.names = names
        self.heights = self._heights()

    def _heights(self) -> dict[str, int]:
        """The least height of a tree below each origin."""
        found: dict[str, int] = {}
        changed = True
        while changed:
            changed = False
            for rule in self.grammar.rules:
                below = [0 if item not in self.origins else found.get(item, -1) for item in rule.symbols]
                if min(below, default=0) < 0:
                    continue
                height = 1 + max(below, default=0)
                if height < found.get(rule.origin, height + 1):
                    found[rule.origin] = height
                    changed = True
        return found

    def text(self, through: Rule | None = None) -> str:
        """A sentence; one that uses the rule where one is named."""
        path = [] if through is None else self._path(through)
        return " ".join(self._of(START, "", DEPTH, path))

    def _path(self, through: Rule) -> list[Rule]:
        """Rules from the start down to one, by the fewest steps."""
        known: dict[str, list[Rule]] = {START: []}
        waiting = [START]
        for origin in waiting:
            for rule in self.origins[origin]:
                for symbol in rule.symbols:
                    if symbol in self.origins and symbol not in known:
                        known[symbol] = [*known[origin], rule]
                        waiting.append(symbol)
        return [*known[through.origin], through]

    def _of(self, origin: str, above: str, depth: int, path: Sequence[Rule]) -> list[str]:
        rule = path[0] if path else self._drawn(origin, depth)
        below = path[1].origin if len(path) > 1 else ""
        rest = path[1:]
        made: list[str] = []
        for place, symbol in enumerate(rule.symbols):
            if symbol not in self.origins:
                made.append(self._word(symbol, rule, place, above))
            elif rest and symbol == below:
                made += self._of(symbol, origin, depth - 1, rest)
                rest = []
            else:
                made += self._of(symbol, origin, depth - 1, [])
        return made

    def _drawn(self, origin: str, depth: int) -> Rule:
        def height(rule: Rule) -> int:
            return 1 + max((self.heights.get(item, 0) for item in rule.symbols), default=0)

        rules = self.origins[origin]
        fitting = [rule for rule in rules if height(rule) <= depth]
        return self.draw.choice(fitting) if fitting else min(rules, key=height)

    def _word(self, symbol: str, rule: Rule, place: int, above: str) -> str:
        match symbol:
            case "NAME" if rule.origin == "entry" and place == 0 and above != "map_item":
                return self.draw.choice(KEYS)
            case "NAME" if rule.origin == "call" and above == "bare_condition":
                return self.draw.choice(CONDITIONS)
            case "NAME":
                return self.draw.choice(self.names)
            case "STRING":
                return '"text"'
            case "NUMBER":
                return self.draw.choice(("0", "3", "0.5"))
            case "CMP":
                return self.draw.choice(("==", "!=", "<", ">="))
        return symbol
