"""Transforms: from all bindings of a body to head rows, with or without groups.

A group is the set of distinct bindings of the body's named variables that agree on the keys. Reducers see
them in the one order of values, so that nothing depends on the order of facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spak.datalog.functions import REDUCERS
from spak.datalog.plan import Body
from spak.datalog.syntax import Apply, Term
from spak.datalog.terms import value_of
from spak.datalog.values import Inner, Row, order_row


def transformed(body: Body, found: Iterable[Row]) -> dict[Row, tuple[Row, ...]]:
    """Head rows with the bindings each was made of."""
    transform = body.clause.transform
    assert transform is not None
    result: dict[Row, tuple[Row, ...]] = {}
    if transform.keys is None:
        for row in sorted(found, key=order_row):
            known = dict(zip(body.variables, row, strict=True))
            for let in transform.lets:
                known[let.name] = value_of(let.term, known)
            head = tuple(value_of(arg, known) for arg in body.head.args)
            result[head] = (*result.get(head, ()), row)
        return result
    places = [body.variables.index(key.name) for key in transform.keys]
    groups: dict[Row, list[Row]] = {}
    for row in found:
        groups.setdefault(tuple(row[place] for place in places), []).append(row)
    for key, rows in groups.items():
        rows.sort(key=order_row)
        known = {variable.name: value for variable, value in zip(transform.keys, key, strict=True)}
        for let in transform.lets:
            known[let.name] = _let(let.term, rows, body.variables, known)
        head = tuple(value_of(arg, known) for arg in body.head.args)
        result[head] = (*result.get(head, ()), *rows)
    return result


def _let(term: Term, rows: list[Row], names: tuple[str, ...], known: Mapping[str, Inner]) -> Inner:
    if not isinstance(term, Apply) or term.function not in REDUCERS:
        return value_of(term, known)
    if not term.args:
        return len(rows)
    values = [value_of(term.args[0], {**known, **dict(zip(names, row, strict=True))}) for row in rows]
    return REDUCERS[term.function].call(values)
