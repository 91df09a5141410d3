"""Rules that differ in their constants alone become one rule and a table.

A constitution says the same thing of a hundred binaries. Joined one by one, each of these rules costs a look-
up for every request; as one rule with a table of their constants, a request looks up its own binary and finds
its rules. Only evaluation sees the tables: proofs and why-nots speak of the rules as they were written.
"""

from __future__ import annotations

from spak.datalog.plan import Body, Key, prepare
from spak.datalog.syntax import Apply, Atom, Clause, Compare, Const, Literal_, Part, Term, Var
from spak.datalog.text.format import numbered
from spak.datalog.values import Row, order_row

LEAST = 3
"""Rules of one shape that are worth a table."""


def merge(bodies: tuple[Body, ...]) -> tuple[tuple[Body, ...], dict[Key, tuple[Row, ...]]]:
    """The bodies to evaluate, and the rows of each table by its key."""
    shapes: dict[str, list[tuple[Clause, Row]]] = {}
    left: list[Body] = []
    for body in bodies:
        lifted, constants = _lift(body.clause)
        if constants and body.clause.transform is None:
            shapes.setdefault(numbered(lifted), []).append((lifted, constants))
        else:
            left.append(body)
    tables: dict[Key, tuple[Row, ...]] = {}
    small = {shape for shape, rules in shapes.items() if len(rules) < LEAST}
    for body in bodies:
        if body.clause.transform is None and numbered(_lift(body.clause)[0]) in small:
            left.append(body)
    for shape in sorted(shapes.keys() - small):
        rules = shapes[shape]
        clause, constants = rules[0]
        key = (f"#{len(tables)}", len(constants))
        tables[key] = tuple(sorted({row for _, row in rules}, key=order_row))
        table = Literal_(Atom(key[0], tuple(Var(f"#{place}") for place in range(key[1]))))
        left.append(prepare(Clause(clause.head, (table, *clause.body), None, clause.place)))
    return tuple(left), tables


def _lift(clause: Clause) -> tuple[Clause, Row]:
    """The clause with a variable for each constant, and the constants."""
    found: list[object] = []

    def term(item: Term) -> Term:
        if isinstance(item, Const):
            found.append(item.value)
            return Var(f"#{len(found) - 1}")
        if isinstance(item, Apply):
            return Apply(item.function, tuple(term(arg) for arg in item.args), item.place)
        return item

    def atom(item: Atom) -> Atom:
        return Atom(item.pred, tuple(term(arg) for arg in item.args), item.place)

    head = atom(clause.head)
    body: list[Part] = []
    for part in clause.body:
        if isinstance(part, Compare):
            body.append(Compare(part.op, term(part.left), term(part.right), part.place))
        else:
            body.append(Literal_(atom(part.atom), part.negated))
    return Clause(head, tuple(body), clause.transform, clause.place), tuple(found)
