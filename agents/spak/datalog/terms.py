"""What terms and built-in literals mean when variables have values: the language, and no inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spak.datalog.functions import COMPARE, FUNCTIONS, GENERATORS, TESTS
from spak.datalog.plan import Item
from spak.datalog.syntax import Apply, Const, Term, Var, Wild
from spak.datalog.values import Inner, Row

Known = dict[str, Inner]


def value_of(term: Term, known: Mapping[str, Inner]) -> Inner:
    """The value of a term. Raises: KeyError for a variable without a value, PolicyError."""
    if isinstance(term, Var):
        return known[term.name]
    if isinstance(term, Const):
        return term.value
    assert isinstance(term, Apply)
    return FUNCTIONS[term.function].call(*(value_of(arg, known) for arg in term.args))


def bind(args: tuple[Term, ...], row: Row, known: Known) -> Known | None:
    """What is known when these arguments stand for this row; None when they cannot."""
    found = dict(known)
    for arg, value in zip(args, row, strict=True):
        if isinstance(arg, Var):
            if found.setdefault(arg.name, value) != value:
                return None
        elif not isinstance(arg, Wild) and value_of(arg, found) != value:
            return None
    return found


def matched(args: tuple[Term, ...], row: Row) -> Known | None:
    """The values of variables with which arguments are a row; None where they are not. What an argument
    computes is not compared."""
    known: Known = {}
    for arg, value in zip(args, row, strict=True):
        if isinstance(arg, Const) and arg.value != value:
            return None
        if isinstance(arg, Var) and known.setdefault(arg.name, value) != value:
            return None
    return known


def computed(item: Item, known: Known) -> Iterator[Known]:
    """The ways in which a test, generator or comparison holds. Raises: KeyError, PolicyError."""
    if item.kind == "compare":
        for one, two in (item.args, item.args[::-1]):
            if item.name in ("=", "==") and isinstance(one, Var) and one.name not in known:
                yield {**known, one.name: value_of(two, known)}
                return
        if COMPARE[item.name](*(value_of(arg, known) for arg in item.args)):
            yield known
    elif item.kind == "test":
        if TESTS[item.name][1](*(value_of(arg, known) for arg in item.args)) != item.negated:
            yield known
    else:
        made = GENERATORS[item.name]
        outs = tuple(arg for place, arg in enumerate(item.args) if place not in made.inputs)
        rows = made.call(*(value_of(item.args[place], known) for place in made.inputs))
        ways = [found for row in rows for found in (bind(outs, row, known),) if found is not None]
        yield from ways if not item.negated else [] if ways else [known]
