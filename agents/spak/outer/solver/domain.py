"""The facts that a solver may combine: rows of the predicates that the runtime states, from a finite domain.

Takes two policies; gives each candidate fact once, in one order. A column gets the constants that the rules
of either policy can compare it with, and values that no rule names:

1. columns, variables and expressions that a rule joins or compares are put into one class;
2. a class has the constants that occur in it, with their neighbours where numbers are ordered or added; a
   text that is tested for its beginning, its end or a part gets texts that pass the test, or several;
3. values that no rule names are added: `fresh` of each kind where a rule joins or compares the column, else
   one.

Values that only a function could make are not among them, so that what is enumerated stays finite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, product

from spak.datalog.errors import PolicyError
from spak.datalog.functions import FUNCTIONS, REDUCERS
from spak.datalog.plan import Body, Item, Key, prepare
from spak.datalog.session import Policy
from spak.datalog.syntax import Apply, Bound, Const, Decl, Term, Var
from spak.datalog.text.format import numbered
from spak.datalog.types import fits, misfit
from spak.datalog.values import Inner, Row, encode, kind_of, order, real
from spak.policy.law import RESERVED
from spak.policy.stated import OF_ACT, OF_RUN
from spak.policy.toolfacts import ACTION

MOST_CANDIDATES = 20_000
"""Facts of one predicate that are combined; what is beyond is said to be left out."""
MOST_MADE = 256
"""Values that a function makes of the constants of its arguments."""
Node = tuple[object, ...]
NUMERIC = ("fn:plus", "fn:minus", "fn:mult", "fn:div")
ADDED = ("fn:sum", "fn:max", "fn:min", "fn:avg")
ORDERED = ("<", "<=", ">", ">=", ":lt", ":le", ":gt", ":ge")


@dataclass(slots=True)
class Domain:
    """What is combined, and what is not."""

    facts: list[tuple[Key, Row]] = field(default_factory=list)
    folds: frozenset[Key] = frozenset()
    """Folds of which rows are among the facts."""
    free: frozenset[str] = frozenset()
    """Predicates that can be stated of each act: folds, and what the world is asked."""
    values: int = 0
    """Different values in the facts."""
    left_out: list[str] = field(default_factory=list)


def domain(old: Policy, new: Policy, fresh: int) -> Domain:
    """The candidate facts of two policies."""
    both = (old, new)
    classes = Classes()
    for place, policy in enumerate(both):
        classes.read(policy, place)
    classes.settle()
    found = Domain(folds=frozenset(_folds(old, new)))
    found.free = frozenset(key[0] for key in (*found.folds, *old.externals, *new.externals))
    for key in sorted({*_stated(old), *_stated(new), *found.folds}):
        decls = [policy.decls[key] for policy in both if key in policy.decls]
        rows = _rows(classes, key, decls, fresh)
        kept = list(islice(rows, MOST_CANDIDATES + 1))
        if len(kept) > MOST_CANDIDATES:
            found.left_out.append(f"rows of {key[0]} beyond the first {MOST_CANDIDATES}")
        if not kept:
            found.left_out.append(f"rows of {key[0]}: no value of its columns is known")
        found.facts += [(key, row) for row in kept[:MOST_CANDIDATES]]
    for key in sorted({*old.folds, *new.folds} - found.folds):
        found.left_out.append(f"rows of {key[0]}: the two do not fold it alike, so it is as at the beginning")
    found.values = len({value for _, row in found.facts for value in row})
    return found


def _stated(policy: Policy) -> Iterator[Key]:
    """Predicates that a rule reads and the runtime states, or the world answers."""
    for clause in policy.rules:
        for item in prepare(clause).items:
            if item.kind in ("row", "neg") and item.key not in policy.folds:
                is_ours = item.name in RESERVED and item.name not in OF_ACT
                if is_ours or item.key in policy.externals:
                    yield item.key


def _folds(old: Policy, new: Policy) -> Iterator[Key]:
    """Folds that both keep in the same way, and those that only one has."""
    for key in {*old.folds, *new.folds}:
        one, two = old.folds.get(key), new.folds.get(key)
        if one is None or two is None:
            other = new if two is None else old
            if key not in other.predicates:
                yield key
        elif str(one) == str(two) and _feeding(old, key) == _feeding(new, key):
            yield key


def _feeding(policy: Policy, key: Key) -> list[str]:
    """The rules that make the rows of a fold, and all that these rest on, in one order."""
    heads: dict[Key, list[str]] = {}
    below: dict[Key, set[Key]] = {}
    for clause in policy.clauses:
        heads.setdefault(clause.head.key, []).append(numbered(clause))
        reads = {item.key for item in prepare(clause).items if item.kind in ("row", "neg")}
        below.setdefault(clause.head.key, set()).update(reads)
    waiting = [policy.folds[key].feed, policy.folds[key].close]
    found = set(waiting)
    while waiting:
        more = below.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return sorted(text for head in found for text in heads.get(head, ()))


def _rows(classes: Classes, key: Key, decls: list[Decl], fresh: int) -> Iterator[Row]:
    """Every row of the predicate within the domain that each declaration admits."""
    columns = []
    for column in range(key[1]):
        bounds = [row[column] for decl in decls for row in decl.bounds]
        if column == 0 and key[0] in RESERVED and key[0] not in OF_RUN:
            columns.append([encode(ACTION)])
        else:
            columns.append(classes.values(("column", key, column), bounds, fresh))
    for row in product(*columns):
        if not any(misfit(row, decl) for decl in decls):
            yield row


class Classes:
    """Columns, variables and expressions, joined where a rule makes them meet."""

    def __init__(self) -> None:
        self._above: dict[Node, Node] = {}
        self._constants: dict[Node, dict[Inner, None]] = {}
        self._ordered: set[Node] = set()
        self._joined: set[Node] = set()
        self._flows: list[tuple[Node, Node, str]] = []
        self._made: list[tuple[Node, Apply, tuple[Node, ...]]] = []

    def read(self, policy: Policy, place: int) -> None:
        """Add the rules and facts of a policy."""
        for key, row in policy.facts:
            for column, value in enumerate(row):
                self._constant(("column", key, column), value)
        for number, clause in enumerate(policy.rules):
            body = prepare(clause)
            rule = (place, number)
            for item in body.items:
                self._item(item, rule)
            for column, arg in enumerate(clause.head.args):
                self._meet(("column", clause.head.key, column), arg, rule)
            self._repeated(body, rule)
            for let in clause.transform.lets if clause.transform is not None else ():
                if not isinstance(let.term, Apply) or let.term.function not in REDUCERS:
                    self._join(self._term(let.term, rule), ("variable", rule, let.name))
                elif let.term.function.replace("float:", "") in ADDED:
                    self._join(self._term(let.term.args[0], rule), ("variable", rule, let.name))
                    self._ordered.add(self._root(("variable", rule, let.name)))

    def settle(self) -> None:
        """Let constants flow through functions and tests of texts; twice, for what rests on another."""
        for _ in range(2):
            for node, term, args in self._made:
                self._make(node, term, args)
            for source, goal, shape in self._flows:
                for value in list(self._of(source)):
                    for text in _shaped(value, shape):
                        self._constant(goal, text)
            self._combine()

    def _combine(self) -> None:
        """Texts that pass several tests at once: a beginning, a part and an end."""
        parts: dict[Node, dict[str, list[str]]] = {}
        for source, goal, shape in self._flows:
            if shape.startswith(":string:"):
                texts = [value[1:] for value in self._of(source) if type(value) is str and value[0] == '"']
                parts.setdefault(self._root(goal), {}).setdefault(shape[8:], []).extend(texts)
        for goal, found in parts.items():
            ways = (["", *found.get(shape, ())] for shape in ("starts_with", "contains", "ends_with"))
            for text in islice(product(*ways), 1, MOST_MADE):
                self._constant(goal, '"' + "".join(text))

    def values(self, node: Node, bounds: list[Bound], fresh: int) -> list[Inner]:
        """The values of a column, constants first."""
        root = self._root(node)
        found = dict.fromkeys(sorted(self._of(root), key=order))
        if root in self._ordered:
            for value in list(found):
                if type(value) is int:
                    found.update(dict.fromkeys((value - 1, value + 1)))
        bounds = [item for bound in bounds for item in _alternatives(bound)]
        found.update((bound.value, None) for bound in bounds if bound.kind == "one")
        count = fresh if root in self._joined else 1
        kinds = _kinds(bounds) or {"string", "number", *(kind_of(value) for value in found)}
        for kind in sorted(kinds):
            found.update(dict.fromkeys(_fresh(kind, bounds, count, found)))
        return [value for value in found if not bounds or any(fits(value, bound) for bound in bounds)]

    def _item(self, item: Item, rule: Node) -> None:
        if item.kind in ("row", "neg"):
            for column, arg in enumerate(item.args):
                self._meet(("column", item.key, column), arg, rule)
        elif item.kind == "compare" or item.name in ORDERED:
            left, right = (self._term(arg, rule) for arg in item.args)
            self._join(left, right)
            self._joined.add(self._root(left))
            if item.name in ORDERED:
                self._ordered.add(self._root(left))
        elif item.kind == "test":
            nodes = [self._term(arg, rule) for arg in item.args]
            self._joined.update(map(self._root, nodes))
            if len(nodes) == 2:
                self._flows.append((nodes[1], nodes[0], item.name))
        else:
            for node in [self._term(arg, rule) for arg in item.args]:
                self._joined.add(self._root(node))
            if item.name == ":list:member":
                self._flows.append((self._term(item.args[1], rule), self._term(item.args[0], rule), "items"))

    def _repeated(self, body: Body, rule: Node) -> None:
        """Variables that a rule has more than once in its body, or groups."""
        seen: set[str] = set()
        for item in body.items:
            for arg in item.args:
                if isinstance(arg, Var):
                    if arg.name in seen:
                        self._joined.add(self._root(("variable", rule, arg.name)))
                    seen.add(arg.name)
        if body.clause.transform is not None:
            self._joined.update(self._root(("variable", rule, name)) for name in body.variables)

    def _meet(self, node: Node, term: Term, rule: Node) -> None:
        if isinstance(term, Const):
            self._constant(node, term.value)
        elif isinstance(term, Var | Apply):
            self._join(node, self._term(term, rule))

    def _term(self, term: Term, rule: Node) -> Node:
        if isinstance(term, Var):
            return ("variable", rule, term.name)
        node: Node = ("term", rule, id(term))
        if isinstance(term, Const):
            self._constant(node, term.value)
        elif isinstance(term, Apply):
            args = tuple(self._term(arg, rule) for arg in term.args)
            self._joined.update(map(self._root, args))
            if term.function.replace("float:", "") in NUMERIC:
                for arg in args:
                    self._join(node, arg)
                self._ordered.add(self._root(node))
            elif term.function in FUNCTIONS:
                self._made.append((node, term, args))
        return node

    def _make(self, node: Node, term: Apply, args: tuple[Node, ...]) -> None:
        call = FUNCTIONS[term.function].call
        for given in islice(product(*(list(self._of(arg)) for arg in args)), MOST_MADE):
            try:
                self._constant(node, call(*given))
            except PolicyError:
                continue

    def _constant(self, node: Node, value: Inner) -> None:
        self._constants.setdefault(self._root(node), {})[value] = None

    def _of(self, node: Node) -> dict[Inner, None]:
        return self._constants.get(self._root(node), {})

    def _root(self, node: Node) -> Node:
        while (above := self._above.get(node)) is not None:
            node = above
        return node

    def _join(self, one: Node, two: Node) -> None:
        one, two = self._root(one), self._root(two)
        if one == two:
            return
        self._above[two] = one
        if two in self._constants:
            self._constants.setdefault(one, {}).update(self._constants.pop(two))
        for marks in (self._ordered, self._joined):
            if two in marks:
                marks.add(one)


def _shaped(value: Inner, shape: str) -> Iterator[Inner]:
    """Values that pass the test of a text or name for `value`."""
    if shape == "items":
        yield from value[1:] if type(value) is tuple and value[0] == "[" else ()
    elif type(value) is str and value[0] == '"' and shape.startswith(":string:"):
        yield value
        text = value[1:]
        yield '"' + {"starts_with": f"{text}x", "ends_with": f"x{text}"}.get(shape[8:], f"x{text}x")
    elif type(value) is str and value[0] == "/" and shape == ":match_prefix":
        yield value.rstrip("/") + "/x"


def _alternatives(bound: Bound) -> Iterator[Bound]:
    """The bound, or those of a union one by one."""
    if bound.kind != "union":
        yield bound
    for item in bound.args if bound.kind == "union" else ():
        yield from _alternatives(item)


def _kinds(bounds: Iterable[Bound]) -> set[str]:
    """The kinds that the bounds admit; none for any."""
    found = {bound.kind for bound in bounds}
    return set() if "any" in found else found


def _fresh(kind: str, bounds: Iterable[Bound], count: int, known: Mapping[Inner, None]) -> Iterator[Inner]:
    """Values of a kind that are not among the known ones."""

    def candidates() -> Iterator[Inner]:
        number = 0
        while True:
            number += 1
            tail = "" if number == 1 else str(number)
            match kind:
                case "name":
                    yield f"/other{tail}"
                case "prefix":
                    yield from (f"{bound.value}/other{tail}" for bound in bounds if bound.kind == "prefix")
                case "string":
                    yield f'"other{tail}'
                case "number":
                    yield number
                case "float64":
                    yield real(number + 0.5)
                case _:
                    return

    yield from islice((value for value in candidates() if value not in known), count)
