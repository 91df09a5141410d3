"""The body of one rule of the solver's program, while it is written.

Takes the items of a rule in an order in which each has its inputs; gives the text. Variables of the rule get
names of the program, values their numbers in the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from spak.datalog.functions import GENERATORS
from spak.datalog.plan import Item, Key, variables
from spak.datalog.syntax import Apply, Const, Decl, Let, Term, Var, Wild
from spak.datalog.values import Inner

FAULT = -1
"""What a call gives that fails; no value has this number."""
ANY = -2
"""An argument of a call that stands for `_`."""


@dataclass(slots=True)
class Values:
    """Every value by number, and back."""

    known: list[Inner] = field(default_factory=list)
    numbers: dict[Inner, int] = field(default_factory=dict)

    def of(self, value: Inner) -> int:
        """The number of a value, given when it is first seen."""
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.known)
            self.known.append(value)
        return number


@dataclass(slots=True)
class Tables:
    """What the two sides of a program have in common."""

    folds: frozenset[Key]
    values: Values = field(default_factory=Values)
    guards: list[Decl] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    names: dict[tuple[str, Key], str] = field(default_factory=dict)

    def predicate(self, side: str, key: Key) -> str:
        """The name that a predicate has in the program."""
        return self.names.setdefault((side, key), f"{side}{len(self.names)}")


class Written:
    """The body of one rule of the program while it is written."""

    def __init__(self, tables: Tables, side: str, names: dict[str, str] | None = None, base: int = 0) -> None:
        self.tables, self.side = tables, side
        self.names: dict[str, str] = dict(names or {})
        self.parts: list[str] = []
        self._base, self._count = base, 0

    def text(self) -> str:
        """The body as text; `#true` where it has no parts."""
        return ", ".join(self.parts) or "#true"

    def fresh(self) -> str:
        """The name of a new variable that stands for no variable of the rule."""
        self._count += 1
        return f"T{self._base}_{self._count}"

    def bind(self, name: str) -> str:
        """Give a variable of the rule a name in the program, and return it."""
        self.names[name] = f"V{self._base}_{len(self.names)}"
        return self.names[name]

    def nested(self, term: Term) -> str:
        """A term as one expression, whose calls may fail."""
        if isinstance(term, Var):
            return self.names[term.name]
        if isinstance(term, Const):
            return str(self.tables.values.of(term.value))
        if isinstance(term, Wild):
            return str(ANY)
        return f"@call({', '.join((f'{chr(34)}{term.function}{chr(34)}', *map(self.nested, term.args)))})"

    def term(self, term: Term) -> str:
        """A term of a rule that applies: a call that does not fail."""
        if not isinstance(term, Apply):
            return "_" if isinstance(term, Wild) else self.nested(term)
        made = self.fresh()
        self.parts += [f"{made} = {self.nested(term)}", f"{made} != {FAULT}"]
        return made

    def let(self, let: Let) -> None:
        """A name for a value; the same name again hides the one before."""
        made = "0" if isinstance(let.term, Wild) else self.term(let.term)
        self.names[let.name] = made

    def item(self, item: Item, answer: str, with_tests: bool = True) -> None:
        """One item; without tests only what gives variables a value."""
        match item.kind:
            case "row" | "neg":
                self._row(item, answer)
            case "compare":
                self._compare(item, with_tests)
            case "test" if with_tests:
                args = ", ".join(self.nested(arg) for arg in item.args)
                self.parts.append(f'@test("{item.name}", {args}) = {int(not item.negated)}')
            case "find":
                self._find(item)

    def bound_by(self, way: Sequence[tuple[Item, str]]) -> bool:
        """Write items in an order in which each has its inputs; False where there is none."""
        left = list(way)
        while left:
            known = self.names.keys()
            ready = next((pair for pair in left if _needs(pair, known) <= known), None)
            if ready is None:
                return False
            left.remove(ready)
            self.item(*ready, with_tests=False)
        return True

    def _row(self, item: Item, answer: str) -> None:
        key, negated = item.key, item.kind == "neg"
        base = self.tables.predicate("base", key)
        if answer == "zero":
            zero = self.tables.values.of(0)
            if key in self.tables.folds:
                self.parts.append(f"not has_{base}{arguments([self.nested(arg) for arg in item.args[:-1]])}")
            last = item.args[-1]
            if isinstance(last, Var) and last.name not in self.names and not negated:
                self.names[last.name] = str(zero)
            elif isinstance(last, Wild):
                self.parts += ["#false"] if negated else []
            else:
                self.parts.append(f"{self.nested(last)} {'!=' if negated else '='} {zero}")
            return
        if answer == "row" and negated:
            self.parts.append(f"has_{base}{arguments([self.nested(arg) for arg in item.args[:-1]])}")
        args = []
        for arg in item.args:
            if isinstance(arg, Wild):
                args.append("_")
            elif isinstance(arg, Var) and arg.name not in self.names:
                args.append(self.bind(arg.name))
            else:
                args.append(self.nested(arg))
        self.parts.append(
            f"{'not ' if negated else ''}{self.tables.predicate(self.side, key)}{arguments(args)}"
        )

    def _compare(self, item: Item, with_tests: bool) -> None:
        if item.name in ("=", "=="):
            for one, two in (item.args, item.args[::-1]):
                if (
                    isinstance(one, Var)
                    and one.name not in self.names
                    and set(variables(two)) <= self.names.keys()
                ):
                    value = self.term(two)
                    self.names[one.name] = value
                    return
        if not with_tests:
            return
        left, right = (self.nested(arg) for arg in item.args)
        if item.name == "==":
            self.parts.append(f"{left} = {right}")
        else:
            self.parts.append(f'@compare("{item.name}", {left}, {right}) = 1')

    def _find(self, item: Item) -> None:
        inputs = inputs_of(item)
        given = [self.nested(item.args[at]) for at in inputs]
        outs = [arg for at, arg in enumerate(item.args) if at not in inputs]
        if item.negated:
            wanted = ", ".join([*given, *(self.nested(arg) for arg in outs)])
            self.parts.append(f'@lacks("{item.name}", {len(given)}, {wanted}) = 1')
            return
        made = []
        for arg in outs:
            if isinstance(arg, Var) and arg.name not in self.names:
                made.append(self.bind(arg.name))
            else:
                made.append("_" if isinstance(arg, Wild) else self.nested(arg))
        # a trailing comma makes a tuple of one
        self.parts.append(f'({",".join(made)},) = @find("{item.name}", {", ".join(given)})')


def inputs_of(item: Item) -> tuple[int, ...]:
    """The places of the arguments that must have a value before the call is made."""
    return GENERATORS[item.name].inputs if item.kind == "find" else tuple(range(len(item.args)))


def _needs(pair: tuple[Item, str], known: Collection[str]) -> set[str]:
    """What must have a value before the item can be written."""
    item, answer = pair
    if item.kind == "row":
        return names_in(item.args[:-1]) if answer == "zero" else set()
    if item.kind == "find":
        return names_in(item.args[at] for at in inputs_of(item))
    sides = [names_in([arg]) for arg in item.args]
    return min(sides, key=lambda names: len(names - {*known}))


def names_in(terms: Iterable[Term]) -> set[str]:
    """The names of the variables in some terms."""
    return {name for term in terms for name in variables(term)}


def arguments(args: Sequence[object]) -> str:
    """Arguments in brackets; empty where there are none."""
    return f"({','.join(map(str, args))})" if args else ""
