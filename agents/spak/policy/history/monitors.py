"""What folds hold of a run now, and how much of each limit is used: for people, on pages and terminals.

Takes a policy and a History; gives a Monitor for each of the newest keys that a fold knows something of, and
one for a fold that knows nothing or more than that. A limit is read off the rules: a comparison of a fold's
number with a constant, or with a table's number, in a rule by which a greater number can forbid, or a smaller
one permit. Where several apply to a key the smallest is shown. It decides nothing: a rule may read the number
in ways that no limit shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from spak.datalog.folds import Fold
from spak.datalog.plan import Key
from spak.datalog.session import Policy
from spak.datalog.syntax import Apply, Atom, Clause, Compare, Const, Literal_, Term, Var
from spak.datalog.terms import matched
from spak.datalog.values import Inner, Row, encode, order_row, show
from spak.policy.history import state
from spak.policy.history.deciding import age, folds_of
from spak.policy.history.state import Folds, History

MOST_KEYS = 100
"""Keys of a fold that are shown: a page, or a terminal, of thousands helps nobody."""
FORBIDS, PERMITS = "forbids", "permits"
_MORE, _LESS = ("<", "<="), (">", ">=")


@dataclass(frozen=True, slots=True)
class Monitor:
    """One key of a fold, or a fold of which nothing is known."""

    fold: str
    kind: str
    """One of `spak.datalog.folds.KINDS`."""
    key: tuple[str, ...]
    """As the language writes it."""
    window: str
    """`24h`, `20 steps`; empty: all of the run."""
    value: int | str | None = None
    """The number, or the newest value; None for what only holds or does not."""
    holds: bool = False
    age: str = ""
    """How long ago the newest event was, where the fold keeps that."""
    limit: int | None = None
    records: tuple[int, ...] = ()
    others: int = 0
    """Keys of the fold that are known and not shown, older than those that are; then `key` is empty."""

    @property
    def share(self) -> float | None:
        """The part of the limit that is used; None without a limit above 0."""
        known = isinstance(self.value, int) and self.limit is not None and self.limit > 0
        return int(self.value or 0) / (self.limit or 1) if known else None

    def to_json(self) -> dict[str, Any]:
        """As `spak show --json` prints it."""
        return {
            "fold": self.fold, "kind": self.kind, "key": list(self.key), "window": self.window,
            "value": self.value, "holds": self.holds, "age": self.age, "limit": self.limit,
            "records": list(self.records), "others": self.others,
        }  # fmt: skip


def monitors(policy: Policy, history: History, most: int = MOST_KEYS) -> list[Monitor]:
    """Every fold of the policy by name, with its newest keys; what is left out is counted in one more."""
    found: list[Monitor] = []
    for name, fold in sorted(folds_of(policy).items()):
        now = state.at_rest(fold, history)
        shown = sorted(state.newest_keys(fold, now, most), key=order_row)
        others = len(state.keys(fold, now)) - len(shown)
        rows = _rows(fold, now)
        found += [_monitor(policy, now, fold, key, rows.get(key)) for key in shown]
        if others or not shown:
            found.append(Monitor(name, fold.kind, (), str(fold.window or ""), others=others))
    return found


def _monitor(policy: Policy, now: History, fold: Fold, key: Row, row: tuple[Any, ...] | None) -> Monitor:
    folds: Folds = {fold.name: fold}
    value: int | str | None = None
    if fold.mode is not None:
        value = state.answer(folds, now, fold.name, key)
        holds = value != 0
    else:
        holds = row is not None
        if fold.kind == "last" and row is not None:
            value = show(encode(row[-1]))
    mark = state.mark_of(fold, now, key)
    return Monitor(
        fold.name, fold.kind, tuple(map(show, key)), str(fold.window or ""), value, holds,
        age(fold, now, mark) if mark is not None else "",
        _limit(policy, fold, key), state.records(folds, now, fold.name, key),
    )  # fmt: skip


def _rows(fold: Fold, now: History) -> dict[Row, tuple[Any, ...]]:
    """The row of each key of a fold that has rows."""
    return {tuple(map(encode, row[: fold.keys])): row for _, row in state.rows({fold.name: fold}, now)}


# ---- limits -----------------------------------------------------------------------------------------------


def _limit(policy: Policy, fold: Fold, key: Row) -> int | None:
    if fold.mode is None:
        return None
    found: list[int] = []
    for clause, atom, bound in _limits(policy).get(fold.key, ()):
        known = matched(atom.args[: fold.keys], key)
        if known is not None:
            found += _numbers(policy, clause, bound, known)
    return min(found, default=None)


@lru_cache(maxsize=32)
def _limits(policy: Policy) -> Mapping[Key, list[tuple[Clause, Atom, Term]]]:
    """For each fold the rules that hold its number to a bound: the rule, the fold's atom, the bound."""
    effects = _effects(policy)
    found: dict[Key, list[tuple[Clause, Atom, Term]]] = {}
    for clause in policy.clauses:
        for part in clause.body:
            if not isinstance(part, Literal_) or part.negated or part.atom.key not in policy.folds:
                continue
            number = part.atom.args[-1] if part.atom.args else None
            if not isinstance(number, Var):
                continue
            for other in clause.body:
                bound = _bound(other, number.name, effects.get(clause.head.key, set()))
                if bound is not None:
                    found.setdefault(part.atom.key, []).append((clause, part.atom, bound))
    return found


def _bound(part: object, name: str, effects: set[str]) -> Term | None:
    """What a comparison holds a number to, where more of it forbids or less of it permits."""
    if not isinstance(part, Compare):
        return None
    left, right = _mentions(part.left, name), _mentions(part.right, name)
    if left == right or part.op not in (*_MORE, *_LESS):
        return None
    grows = (part.op in _MORE) == right
    """Whether the comparison comes to hold as the number grows."""
    return (part.left if right else part.right) if (FORBIDS if grows else PERMITS) in effects else None


def _mentions(term: Term, name: str) -> bool:
    """Whether a term is the number, or a sum with it."""
    match term:
        case Var():
            return term.name == name
        case Apply(function="fn:plus"):
            return any(_mentions(arg, name) for arg in term.args)
    return False


def _effects(policy: Policy) -> dict[Key, set[str]]:
    """What more rows of each predicate can do: forbid, permit, or both."""
    found: dict[Key, set[str]] = {("forbidden", 1): {FORBIDS}, ("permitted", 1): {PERMITS}}
    waiting = list(found)
    while waiting:
        head = waiting.pop()
        for clause in policy.clauses:
            if clause.head.key != head:
                continue
            for part in clause.body:
                if isinstance(part, Literal_):
                    given = {_turned(one) for one in found[head]} if part.negated else found[head]
                    known = found.setdefault(part.atom.key, set())
                    if not given <= known:
                        known |= given
                        waiting.append(part.atom.key)
    return found


def _turned(effect: str) -> str:
    return PERMITS if effect == FORBIDS else FORBIDS


def _numbers(policy: Policy, clause: Clause, bound: Term, known: Mapping[str, Inner]) -> Iterator[int]:
    """The values of a bound: itself, or what tables of the rule's body give it."""
    if isinstance(bound, Const) and type(bound.value) is int:
        yield bound.value
    if not isinstance(bound, Var):
        return
    for part in clause.body:
        if not isinstance(part, Literal_) or part.negated:
            continue
        for key, row in policy.facts:
            found = matched(part.atom.args, row) if key == part.atom.key else None
            value = (found or {}).get(bound.name)
            if found is not None and type(value) is int and _agree(found, known):
                yield value


def _agree(one: Mapping[str, Inner], two: Mapping[str, Inner]) -> bool:
    return all(two.get(name, value) == value for name, value in one.items())
