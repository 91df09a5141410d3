"""What a level of the law may not add to: predicates of which one more row could permit what was not.

Three levels, each under those before it: the shipped law with the operator's, a team's rules, a spec. A
team may permit more, and lifts no prohibition of the levels above it: predicates on which `forbidden` rests
through a negation are closed to it. A spec only narrows: what `permitted` or `extension` (of a budget) grows
with is closed to it too. The lists are derived from the rules of the levels above, so that a rule added there
closes what it rests on. A declaration there opens a table: `Decl p(X) descr [open("team")]` to teams,
`open("spec")` to specs as well.
Takes a Policy and the files of the levels above; gives the keys of those predicates.
Source: DESIGN.md section 9, "the law is closed"; ADR 0029.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from spak.datalog.session import Policy
from spak.datalog.syntax import Clause, Const, Decl, Literal_
from spak.datalog.values import decode

Key = tuple[str, int]
Level = Literal["team", "spec"]
_OPENS = {"team": ("team", "spec"), "spec": ("spec",)}
"""The words of `open` that open a table to each level."""


def closed(policy: Policy, above: Collection[str], level: Level) -> frozenset[Key]:
    """The predicates that no clause of this level may head; `above` are the files of the levels above it."""
    rules: dict[Key, list[Clause]] = {}
    for clause in policy.clauses:
        if clause.place.file in above:
            rules.setdefault(clause.head.key, []).append(clause)
    signs: dict[Key, set[int]] = {}
    waiting: list[tuple[Key, int]] = [(("forbidden", 1), -1), (("no_extension", 1), -1)]
    if level == "spec":
        waiting += [(("permitted", 1), 1), (("extension", 2), 1)]
    while waiting:
        key, sign = waiting.pop()
        if sign in signs.setdefault(key, set()):
            continue
        signs[key].add(sign)
        for clause in rules.get(key, ()):
            waiting += [(below, sign * way) for below, way in _ways(clause)]
        if (fold := policy.folds.get(key)) is not None:  # one more row may make a sum or an age smaller
            waiting += [(below, way) for below in (fold.feed, fold.close) for way in (1, -1)]
    opened = {
        decl.atom.key for decl in policy.decls.values() if decl.place.file in above and _opens(decl, level)
    }
    return frozenset(key for key, found in signs.items() if 1 in found) - opened


def known(policy: Policy, above: Collection[str]) -> frozenset[str]:
    """The names that the files `above` declare, derive or read: no level below declares one of them anew."""
    found = {decl.atom.pred for decl in policy.decls.values() if decl.place.file in above}
    for clause in policy.clauses:
        if clause.place.file in above:
            found.add(clause.head.pred)
            found.update(part.atom.pred for part in clause.body if isinstance(part, Literal_))
    return frozenset(found)


def _opens(decl: Decl, level: Level) -> bool:
    return any(
        atom.pred == "open" and isinstance(arg, Const) and decode(arg.value) in _OPENS[level]
        for atom in decl.descr
        for arg in atom.args
    )


def _ways(clause: Clause) -> list[tuple[Key, int]]:
    """What a rule rests on: 1 where its head grows with it, -1 where it shrinks; a group does both."""
    found = []
    for part in clause.body:
        if isinstance(part, Literal_):
            ways = (1, -1) if clause.transform is not None else (-1,) if part.negated else (1,)
            found += [(part.atom.key, way) for way in ways]
    return found
