"""What a spec may not add to in the law: predicates on which `forbidden` rests through a negation.

Takes a Policy and the names of the files that are the spec's; gives the keys of those predicates of the law
to which one more row could lift a prohibition. The list is derived from the law's own rules, so that a rule
added to the law closes what it rests on. A declaration opens a table to specs: `Decl p(X) descr [open()].`
Source: DESIGN.md section 9, "the law is closed".
"""

from __future__ import annotations

from collections.abc import Collection

from spak.policy.session import Policy
from spak.policy.syntax import Clause, Literal_

Key = tuple[str, int]


def closed(policy: Policy, own: Collection[str]) -> frozenset[Key]:
    """The predicates that no clause of the files `own` may head."""
    rules: dict[Key, list[Clause]] = {}
    for clause in policy.clauses:
        if clause.place.file not in own:
            rules.setdefault(clause.head.key, []).append(clause)
    signs: dict[Key, set[int]] = {}
    waiting: list[tuple[Key, int]] = [(("forbidden", 1), 1)]
    while waiting:
        key, sign = waiting.pop()
        if sign in signs.setdefault(key, set()):
            continue
        signs[key].add(sign)
        for clause in rules.get(key, ()):
            waiting += [(below, sign * way) for below, way in _ways(clause)]
    opened = {
        decl.atom.key
        for decl in policy.decls.values()
        if decl.place.file not in own and any(atom.pred == "open" for atom in decl.descr)
    }
    return frozenset(key for key, found in signs.items() if -1 in found) - opened


def _ways(clause: Clause) -> list[tuple[Key, int]]:
    """What a rule rests on: 1 where its head grows with it, -1 where it shrinks; a group does both."""
    found = []
    for part in clause.body:
        if isinstance(part, Literal_):
            ways = (1, -1) if clause.transform is not None else (-1,) if part.negated else (1,)
            found += [(part.atom.key, way) for way in ways]
    return found
