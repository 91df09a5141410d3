"""LALR(1) tables of a grammar, and for each conflict both derivations that lead to it.

Made from LR(0) states by propagating lookaheads (Aho, Sethi, Ullman, section 4.7). A conflict is reported as
Bison does: for each of the two actions the shortest derivation from the start that comes to it with that
next token, found by a search over states with exact lookaheads (Isradisaikul and Myers 2015). No conflict is
ever settled here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from spak.lang.parser.automaton import ACCEPT, APPEND, BUILD, DROP, NEW, PASS, Tables
from spak.lang.parser.lexer import vocabulary
from spak.outer.grammar.rules import END, START, Grammar, Rule

Item = tuple[int, int]
"""A rule's number and the place of the dot."""
Node = tuple[int, Item, frozenset[str]]
"""A state, an item in it, and the terminals that can follow the item there."""
OTHER = "#"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two actions in one state at one terminal; each with the symbols before it and its derivation."""

    terminal: str
    first: str
    second: str
    derivations: tuple[tuple[str, ...], tuple[str, ...]]

    def __str__(self) -> str:
        shown = "\n".join("\n".join(lines) for lines in self.derivations)
        return f"at {self.terminal}: {self.first} or {self.second}\n{shown}"


class Automaton:
    """LR(0) states of a grammar with LALR(1) lookaheads."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.rules = grammar.rules
        self.by_origin = {
            origin: [number for number, rule in enumerate(self.rules) if rule.origin == origin]
            for origin in grammar.origins
        }
        self.firsts = self._firsts()
        self._rest = lru_cache(maxsize=None)(self._first_of_rest)
        self.kernels: list[tuple[Item, ...]] = []
        self.gotos: list[dict[str, int]] = []
        self._states()
        self.ahead = self._lookaheads()
        self.actions = [self._actions(state) for state in range(len(self.kernels))]

    def next(self, item: Item) -> str:
        """The symbol after an item's dot, empty at the end."""
        symbols = self.rules[item[0]].symbols
        return symbols[item[1]] if item[1] < len(symbols) else ""

    # ---- first sets

    def _firsts(self) -> dict[str, frozenset[str]]:
        """What each origin can begin with; the empty text is in it where it can be nothing."""
        found: dict[str, set[str]] = {origin: set() for origin in self.by_origin}
        changed = True
        while changed:
            changed = False
            for rule in self.rules:
                mine = found[rule.origin]
                before = len(mine)
                for symbol in rule.symbols:
                    begins = found.get(symbol, {symbol})
                    mine |= begins - {""}
                    if "" not in begins:
                        break
                else:
                    mine.add("")
                changed = changed or len(mine) > before
        return {origin: frozenset(items) for origin, items in found.items()}

    def _first_of_rest(self, item: Item) -> tuple[frozenset[str], bool]:
        """What can follow the symbol after the dot within its rule, and whether nothing may."""
        found: set[str] = set()
        for symbol in self.rules[item[0]].symbols[item[1] + 1 :]:
            begins = self.firsts.get(symbol, frozenset((symbol,)))
            found |= begins - {""}
            if "" not in begins:
                return frozenset(found), False
        return frozenset(found), True

    # ---- states

    def closed(self, kernel: tuple[Item, ...]) -> list[Item]:
        """The items of a kernel with all that may begin there."""
        found, seen = list(kernel), set(kernel)
        for item in found:
            for number in self.by_origin.get(self.next(item), ()):
                if (number, 0) not in seen:
                    seen.add((number, 0))
                    found.append((number, 0))
        return found

    def _states(self) -> None:
        start: tuple[Item, ...] = ((self.by_origin[START][0], 0),)
        self.kernels.append(start)
        known: dict[tuple[Item, ...], int] = {start: 0}
        for state, kernel in enumerate(self.kernels):
            self.gotos.append({})
            moves: dict[str, set[Item]] = {}
            for item in self.closed(kernel):
                if symbol := self.next(item):
                    moves.setdefault(symbol, set()).add((item[0], item[1] + 1))
            for symbol in sorted(moves):
                target = tuple(sorted(moves[symbol]))
                if target not in known:
                    known[target] = len(self.kernels)
                    self.kernels.append(target)
                self.gotos[state][symbol] = known[target]

    def spread(self, start: Mapping[Item, frozenset[str]]) -> dict[Item, set[str]]:
        """The closure of items with their lookaheads."""
        found = {item: set(ahead) for item, ahead in start.items()}
        waiting = deque(found)
        while waiting:
            item = waiting.popleft()
            symbol = self.next(item)
            if symbol not in self.by_origin:
                continue
            begins, is_open = self._rest(item)
            ahead = begins | found[item] if is_open else begins
            for number in self.by_origin[symbol]:
                known = found.setdefault((number, 0), set())
                if not ahead <= known or ((number, 0) not in waiting and not known):
                    known |= ahead
                    waiting.append((number, 0))
        return found

    def _lookaheads(self) -> list[dict[Item, set[str]]]:
        ahead: list[dict[Item, set[str]]] = [{item: set() for item in kernel} for kernel in self.kernels]
        ahead[0][self.kernels[0][0]].add(END)
        handed: dict[tuple[int, Item], set[tuple[int, Item]]] = {}
        for state, kernel in enumerate(self.kernels):
            for mine in kernel:
                for item, seen in self.spread({mine: frozenset((OTHER,))}).items():
                    if not (symbol := self.next(item)):
                        continue
                    target = (self.gotos[state][symbol], (item[0], item[1] + 1))
                    ahead[target[0]][target[1]] |= seen - {OTHER}
                    if OTHER in seen:
                        handed.setdefault((state, mine), set()).add(target)
        waiting = deque((state, item) for state, items in enumerate(ahead) for item in items if items[item])
        while waiting:
            source = waiting.popleft()
            mine_seen = ahead[source[0]][source[1]]
            for state, item in handed.get(source, ()):
                if not mine_seen <= ahead[state][item]:
                    ahead[state][item] |= mine_seen
                    waiting.append((state, item))
        return ahead

    def _actions(self, state: int) -> dict[str, list[Item]]:
        """By terminal the items that act on it: one to shift, or those to reduce."""
        found: dict[str, list[Item]] = {}
        kernel = {item: frozenset(seen) for item, seen in self.ahead[state].items()}
        for item, seen in self.spread(kernel).items():
            symbol = self.next(item)
            if not symbol:
                for terminal in seen:
                    found.setdefault(terminal, []).append(item)
            elif symbol not in self.by_origin and not any(
                self.next(other) == symbol for other in found.get(symbol, ())
            ):
                found.setdefault(symbol, []).append(item)
        return found

    # ---- conflicts

    def conflicts(self) -> list[Conflict]:
        """Every two actions at one terminal, at most one of a pair of rules."""
        found: dict[tuple[Item, Item], Conflict] = {}
        for state, actions in enumerate(self.actions):
            for terminal in sorted(actions):
                first, *more = sorted(actions[terminal])
                for other in more:
                    if (first, other) not in found:
                        found[first, other] = self._conflict(state, terminal, first, other)
        return list(found.values())

    def _conflict(self, state: int, terminal: str, first: Item, second: Item) -> Conflict:
        return Conflict(
            terminal,
            self._does(first),
            self._does(second),
            (self._derived(state, terminal, first), self._derived(state, terminal, second)),
        )

    def _does(self, item: Item) -> str:
        return f"{'shift in' if self.next(item) else 'reduce'} {self.rules[item[0]]}"

    def _derived(self, state: int, terminal: str, item: Item) -> tuple[str, ...]:
        """The shortest derivation from the start to an item in a state, before that terminal."""
        start: Node = (0, self.kernels[0][0], frozenset((END,)))
        came: dict[Node, Node | None] = {start: None}
        waiting = deque((start,))
        while waiting:
            node = waiting.popleft()
            at, current, ahead = node
            if at == state and current == item and (self.next(item) or terminal in ahead):
                return self._shown(came, node, terminal)
            symbol = self.next(current)
            if not symbol:
                continue
            follow: list[Node] = [(self.gotos[at][symbol], (current[0], current[1] + 1), ahead)]
            if symbol in self.by_origin:
                begins, is_open = self._rest(current)
                after = begins | ahead if is_open else begins
                follow += [(at, (number, 0), after) for number in self.by_origin[symbol]]
            for new in follow:
                if new not in came:
                    came[new] = node
                    waiting.append(new)
        raise AssertionError("every item of a state is reached")

    def _shown(self, came: Mapping[Node, Node | None], end: Node, terminal: str) -> tuple[str, ...]:
        """A line with the symbols before the terminal, then one for each rule that was opened."""
        path: list[Node] = []
        node: Node | None = end
        while node is not None:
            path.append(node)
            node = came[node]
        path.reverse()
        before: list[str] = []
        opened: list[Item] = []
        for (_, old, _), (_, new, _) in pairwise(path):
            if new[1]:
                before.append(self.rules[new[0]].symbols[new[1] - 1])
                opened[-1:] = [new] if opened else []
            else:
                opened = [*opened, new] if opened else [old, new]
        lines = [f"  {' '.join(before)} . {terminal}".replace("   .", "  .")]
        for depth, item in enumerate(opened or [path[-1][1]]):
            rule = self.rules[item[0]]
            shown = [*rule.symbols[: item[1]], ".", *rule.symbols[item[1] :]]
            lines.append(f"  {'  ' * (depth + 1)}{rule.origin}: {' '.join(shown)}")
        return tuple(lines)

    # ---- tables

    @cached_property
    def tables(self) -> Tables:
        """What the parser's drivers run on; only of a grammar without conflicts."""
        terminals = self.grammar.terminals
        number = {name: index for index, name in enumerate(terminals)}
        origins = {name: index for index, name in enumerate(sorted(self.by_origin))}
        rows, gotos = [], []
        for state, actions in enumerate(self.actions):
            row = {}
            for terminal, items in actions.items():
                (item,) = items
                row[number[terminal]] = self.gotos[state][terminal] if self.next(item) else ~item[0]
            rows.append(row)
            gotos.append({origins[name]: to for name, to in self.gotos[state].items() if name in origins})
        return Tables(
            terminals=terminals,
            keyword=number[self.grammar.keywords[0]],
            rows=rows,
            gotos=gotos,
            rules=[(len(rule.symbols), origins[rule.origin], self._code(rule)) for rule in self.rules],
            builders=[rule.alias for rule in self.rules],
            words=vocabulary(terminals, number[self.grammar.keywords[0]]),
        )

    def _code(self, rule: Rule) -> int:
        if rule.origin == START:
            return ACCEPT
        if rule.origin.endswith("_list"):
            if not rule.symbols:
                return NEW
            return APPEND if rule.symbols[1] in self.by_origin else DROP
        return BUILD if rule.alias else PASS


@lru_cache(maxsize=8)
def automaton(grammar: Grammar) -> Automaton:
    """The LALR(1) automaton of a grammar."""
    return Automaton(grammar)
