"""Which rules of a law speak about what is read: an agent under them must not read by itself.

Takes a policy, the names of the shipped files, and the tools that only read. A rule speaks about reads where
`forbidden` rests on it and its body names such a tool, or a use of a path that may be reading. That is
derived from the parsed rules. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from spak.datalog.session import Policy
from spak.datalog.syntax import Atom, Clause, Compare, Const, Literal_, Term
from spak.datalog.values import Name, decode
from spak.policy.closed_predicates import Key

READING = frozenset({Name("/reads"), Name("/walks")})
"""How a path is used that is read (the second column of `uses_path`)."""


def about_reads(policy: Policy, shipped: Collection[str], tools: Collection[str]) -> Iterator[Clause]:
    """The rules that speak about reads and are in no file of `shipped`; `tools` only read."""
    marks = READING | {Name(f"/{name}") for name in tools}
    rests = rests_on(policy, ("forbidden", 1))
    for clause in policy.clauses:
        if clause.place.file not in shipped and clause.head.key in rests and _speaks(clause, marks):
            yield clause


def _speaks(clause: Clause, marks: Collection[object]) -> bool:
    atoms = [part.atom for part in clause.body if isinstance(part, Literal_)]
    compared = [term for part in clause.body if isinstance(part, Compare) for term in (part.left, part.right)]
    terms = [*compared, *clause.head.args, *(term for atom in atoms for term in atom.args)]
    if any(_value(term) in marks for term in terms):
        return True
    tools = [part.atom for part in clause.body if isinstance(part, Literal_) and not part.negated]
    tools = [atom for atom in tools if atom.key == ("tool", 2)]
    named = {atom.args[0] for atom in tools if isinstance(atom.args[1], Const)}
    if any(_any_use(atom) and atom.args[0] not in named for atom in atoms):
        return True
    unlike = {term for part in clause.body if isinstance(part, Compare) and part.op == "!="
              for term in (part.left, part.right)}  # fmt: skip
    return any(atom.args[1] in unlike for atom in tools)


def _any_use(atom: Atom) -> bool:
    """Whether it takes each use of a path."""
    return atom.key == ("uses_path", 4) and not isinstance(atom.args[1], Const)


def _value(term: Term) -> object:
    return decode(term.value) if isinstance(term, Const) else None


def rests_on(policy: Policy, head: Key) -> set[Key]:
    """The predicates that it is derived from, directly or not."""
    found, waiting = set[Key](), [head]
    while waiting:
        key = waiting.pop()
        if key in found:
            continue
        found.add(key)
        for clause in policy.clauses:
            if clause.head.key == key:
                waiting += [part.atom.key for part in clause.body if isinstance(part, Literal_)]
        if (fold := policy.folds.get(key)) is not None:
            waiting += [fold.feed, fold.close]
    return found
