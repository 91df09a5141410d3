"""One rule to joins: the order of its body for a given start, and the code that runs it.

A rule is run in several ways, all made here from the same items:

- `emit`: find new head rows, from scratch or from the changed rows of one literal;
- `drop`: find head rows that may have lost a derivation, negations left aside (an over-approximation on
  purpose);
- `check`: is this head row derivable now?
- `match`: all bindings of the variables, for grouping, proofs and why-not.

The order is greedy and depends on nothing but the rule: whatever can be tested or computed comes first, then
the literal with the most bound arguments. A literal with bound arguments is looked up in an index on just
these columns. The code is Python text; rules of one shape share one code object, since constants and
relations are parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from spak.datalog.errors import PolicyLimit
from spak.datalog.functions import COMPARE, FUNCTIONS, GENERATORS, TESTS
from spak.datalog.syntax import Apply, Atom, Clause, Compare, Const, Literal_, Part, Term, Var, Wild

MAX_LOOPS = 16
"""Literals of one body that may need a loop: Python nests no deeper than twenty."""

MAX_PARTS = 128
"""Literals, comparisons and tests of one body."""

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Item:
    """One step of a body: kind is row, neg, test, find or compare."""

    kind: str
    name: str
    args: tuple[Term, ...]
    negated: bool = False
    part: Part | None = None

    @property
    def key(self) -> Key:
        """The predicate and its number of arguments."""
        return (self.name, len(self.args))


@dataclass(frozen=True, slots=True)
class Body:
    """A clause made ready: head, items, and its variables in the order of their first occurrence."""

    clause: Clause
    head: Atom
    items: tuple[Item, ...]
    variables: tuple[str, ...]


def prepare(clause: Clause) -> Body:
    """The clause with expressions in arguments taken out into equalities of their own."""
    found: list[Item] = []
    for part in clause.body:
        if isinstance(part, Compare):
            found.append(Item("compare", part.op, (part.left, part.right), part=part))
            continue
        atom = part.atom
        if atom.pred in TESTS:
            found.append(Item("test", atom.pred, atom.args, part.negated, part))
        elif atom.pred in GENERATORS:
            found.append(Item("find", atom.pred, atom.args, part.negated, part))
        else:
            args: list[Term] = []
            for arg in atom.args:
                if isinstance(arg, Apply):
                    fresh = Var(f"={len(found)}.{len(args)}")
                    found.append(Item("compare", "==", (fresh, arg)))
                    args.append(fresh)
                else:
                    args.append(arg)
            found.append(Item("neg" if part.negated else "row", atom.pred, tuple(args), part.negated, part))
    names: dict[str, None] = {}
    for part in clause.body:
        for term in part.atom.args if isinstance(part, Literal_) else (part.left, part.right):
            names.update(dict.fromkeys(variables(term)))
    return Body(clause, clause.head, tuple(found), tuple(names))


def variables(term: Term) -> list[str]:
    """The variables of a term, left to right."""
    found: list[str] = []
    stack: list[Term] = [term]
    while stack:
        item = stack.pop()
        if isinstance(item, Var):
            found.append(item.name)
        elif isinstance(item, Apply):
            stack.extend(reversed(item.args))
    return found


def names_of(item: Item) -> set[str]:
    """The variables in an item's arguments."""
    return {name for arg in item.args for name in variables(arg)}


def sequence(items: tuple[Item, ...], bound: set[str]) -> tuple[list[Item], list[Item]]:
    """The order of the items when `bound` is known, and those that nothing ever makes ready.

    A variable that a literal binds is compared by `=` and never assigned: unlike types are an error.
    """
    left = list(items)
    known = set(bound)
    done: list[Item] = []
    while left:
        pick = _next(left, known)
        if pick is None:
            break
        left.remove(pick)
        done.append(pick)
        if pick.kind != "neg":
            known |= names_of(pick)
    return done, left


def _next(left: list[Item], known: set[str]) -> Item | None:
    later = None
    for item in left:
        if item.kind != "row" and ready(item, known):
            if not _waits(item, known, left):
                return item
            later = later or item
    best, best_score = None, (-1, 0.0)
    for item in left:
        if item.kind == "row":
            fixed = sum(
                isinstance(arg, Const) or (isinstance(arg, Var) and arg.name in known) for arg in item.args
            )
            score = (fixed, fixed / (len(item.args) or 1))
            if not item.args:
                score = (99, 1.0)
            if score > best_score:
                best, best_score = item, score
    return best or later


def _waits(item: Item, known: set[str], left: list[Item]) -> bool:
    """Whether `=` would assign a variable that a literal is still to bind."""
    unbound = names_of(item) - known if item.kind == "compare" and item.name == "=" else set()
    return bool(unbound) and any(
        other.kind in ("row", "find") and not other.negated and unbound & names_of(other) for other in left
    )


def ready(item: Item, known: set[str]) -> bool:
    """True when the item can be tested or computed with what is known."""
    if item.kind == "find" and not item.negated:
        inputs = GENERATORS[item.name].inputs
        outs = [arg for place, arg in enumerate(item.args) if place not in inputs]
        if any(isinstance(arg, Apply) and not set(variables(arg)) <= known for arg in outs):
            return False
        return all(set(variables(item.args[place])) <= known for place in inputs if place < len(item.args))
    if item.kind == "compare" and item.name in ("=", "=="):
        left, right = item.args
        if set(variables(left)) <= known and not isinstance(left, Wild):
            return isinstance(right, Var) or set(variables(right)) <= known
        return isinstance(left, Var) and set(variables(right)) <= known
    return names_of(item) <= known


# ---- code -------------------------------------------------------------------------------------------------


class Writer:
    """Writes one function; what it refers to by number is in `needs`, in order."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, str] = {}
        self.needs: list[tuple[str, Any]] = []
        self.loops = 0

    def need(self, kind: str, what: Any) -> str:
        """The name under which the code gets an object that it uses; one name for equal objects."""
        for place, (known_kind, known) in enumerate(self.needs):
            if known_kind == kind and type(known) is type(what) and known == what:
                return f"p{place}"
        self.needs.append((kind, what))
        return f"p{len(self.needs) - 1}"

    def put(self, line: str) -> None:
        """Add a line at the present depth."""
        self.lines.append(" " * self.depth + line)

    def bind(self, name: str) -> str:
        """The Python name of a variable that is bound from here on."""
        self.names[name] = f"v{len(self.names)}"
        return self.names[name]

    def term(self, term: Term) -> str:
        """The expression of a term whose variables are bound."""
        if isinstance(term, Var):
            return self.names[term.name]
        if isinstance(term, Const):
            return self.need("value", term.value)
        if isinstance(term, Apply):
            call = self.need("call", FUNCTIONS[term.function].call)
            return f"{call}({', '.join(self.term(arg) for arg in term.args)})"
        raise AssertionError("a wildcard has no value")

    def known(self, term: Term) -> bool:
        """Whether a term is a constant or a bound variable."""
        return isinstance(term, Const) or (isinstance(term, Var) and term.name in self.names)

    def loop(self, source: str) -> None:
        """Open a loop over rows, which counts against the limit of facts."""
        self.put(f"for r in {source}:")
        self.depth += 1
        self.loops += 1
        self.put("n -= 1")
        self.put("if n < 0: raise Over()")

    def unpack(self, args: tuple[Term, ...], skip: tuple[int, ...] = ()) -> None:
        """Bind or test the columns of `r`."""
        for place, arg in enumerate(args):
            if place in skip or isinstance(arg, Wild):
                continue
            if isinstance(arg, Var) and arg.name not in self.names:
                self.put(f"{self.bind(arg.name)} = r[{place}]")
            else:
                self.put(f"if r[{place}] != {self.term(arg)}: continue")

    def item(self, item: Item) -> None:
        """Write one item of a body."""
        match item.kind:
            case "row" | "neg":
                self.row(item)
            case "compare":
                self.compare(item)
            case "test":
                call = self.need("call", TESTS[item.name][1])
                test = f"{call}({', '.join(self.term(arg) for arg in item.args)})"
                self.put(f"if {test}: continue" if item.negated else f"if not {test}: continue")
            case _:
                self.find(item)

    def row(self, item: Item) -> None:
        """Write the look-up of a row, or the test that there is none."""
        fixed = tuple(place for place, arg in enumerate(item.args) if self.known(arg))
        values = [self.term(item.args[place]) for place in fixed]
        key = values[0] if len(values) == 1 else f"({', '.join(values)})"
        whole = f"({''.join(value + ', ' for value in values)})"
        negated = item.kind == "neg"
        if len(fixed) == len(item.args):
            rows = self.need("rows", item.key)
            self.put(f"if {whole} {'in' if negated else 'not in'} {rows}: continue")
        elif negated:
            if fixed:
                self.put(f"if {key} in {self.need('index', (item.key, fixed))}: continue")
            else:
                self.put(f"if {self.need('rows', item.key)}: continue")
        else:
            if fixed:
                self.loop(f"{self.need('index', (item.key, fixed))}.get({key}, ())")
            else:
                self.loop(self.need("rows", item.key))
            self.unpack(item.args, fixed)

    def compare(self, item: Item) -> None:
        """Write a comparison, or a binding where `=` has an unbound side."""
        left, right = item.args
        if item.name in ("=", "=="):
            for one, two in ((left, right), (right, left)):
                if isinstance(one, Var) and one.name not in self.names:
                    value = self.term(two)
                    self.put(f"{self.bind(one.name)} = {value}")
                    return
        if item.name == "==":
            self.put(f"if {self.term(left)} != {self.term(right)}: continue")
        else:
            call = self.need("call", COMPARE[item.name])
            self.put(f"if not {call}({self.term(left)}, {self.term(right)}): continue")

    def find(self, item: Item) -> None:
        """Write the loop over what a generating function gives."""
        found = GENERATORS[item.name]
        call = self.need("call", found.call)
        inputs = ", ".join(self.term(item.args[place]) for place in found.inputs)
        outs = tuple(arg for place, arg in enumerate(item.args) if place not in found.inputs)
        if item.negated:
            tests = [
                f"r[{place}] == {self.term(arg)}"
                for place, arg in enumerate(outs)
                if not isinstance(arg, Wild)
            ]
            self.put(f"if any({' and '.join(tests) or 'True'} for r in {call}({inputs})): continue")
            return
        self.loop(f"{call}({inputs})")
        self.unpack(outs)


@dataclass(frozen=True, slots=True)
class Code:
    """A function's text compiled, with what its parameters stand for."""

    code: CodeType
    needs: tuple[tuple[str, Any], ...]

    def link(
        self, rows: Callable[[Key], Any], index: Callable[[Key, tuple[int, ...]], Any]
    ) -> Callable[..., int]:
        """The function over actual relations: `run(delta, out, n, m)` gives what is left of n steps."""
        given = []
        for kind, what in self.needs:
            if kind == "rows":
                given.append(rows(what))
            elif kind == "index":
                given.append(index(*what))
            else:
                given.append(what)
        space: dict[str, Any] = {"Over": _over, "Many": _many}
        exec(self.code, space)
        made: Callable[..., int] = space["make"](*given)
        return made


def _over() -> PolicyLimit:
    return PolicyLimit("too many steps", "narrow the rules, or give a higher limit")


def _many() -> PolicyLimit:
    return PolicyLimit("too many facts", "narrow the rules, or give a higher limit")


def write(body: Body, way: str, start: int = -1) -> Code:
    """The code of one way to run a rule; `start` is the item that reads the changed rows, -1 for none."""
    writer = Writer(body)
    writer.put("def run(delta, out, n, m):")
    writer.depth = 2
    head = body.head
    items = body.items
    if way in ("check", "match_head"):
        writer.put("for r in delta:")
        writer.depth += 1
        for place, arg in enumerate(head.args):
            if isinstance(arg, Var) and arg.name in body.variables and arg.name not in writer.names:
                writer.put(f"{writer.bind(arg.name)} = r[{place}]")
            elif not isinstance(arg, Apply | Wild) and writer.known(arg):
                writer.put(f"if r[{place}] != {writer.term(arg)}: continue")
        writer.put("goal = r")
    elif start >= 0:
        first = items[start]
        writer.loop("delta")
        writer.unpack(first.args)
        if first.kind == "row":
            items = items[:start] + items[start + 1 :]
    else:
        writer.put("for _ in (0,):")
        writer.depth += 1
    if way == "drop":
        items = tuple(item for item in items if item.kind != "neg")
    ordered, _ = sequence(items, set(writer.names))
    for item in ordered:
        writer.item(item)
    _finish(writer, way, head)
    parameters = ", ".join(f"p{place}" for place in range(len(writer.needs)))
    text = "\n".join([f"def make({parameters}):", *writer.lines, "  return n", " return run"])
    return Code(_compiled(text), tuple(writer.needs))


def _finish(writer: Writer, way: str, head: Atom) -> None:
    """What happens to a full binding."""
    if way in ("match", "match_head"):
        columns = "".join(writer.names[name] + ", " for name in writer.body.variables)
        if way == "match_head" and writer.body.clause.transform is None:
            writer.put(f"if {_row(writer, head)} != goal: continue")
        writer.put(f"out[({columns})] = None")
        writer.put("if len(out) > m: raise Many()")
        return
    writer.put(f"h = {_row(writer, head)}")
    if way == "check":
        writer.put("if h == goal:")
        writer.put(" out[h] = None")
        writer.put(" return n")
    elif way == "drop":
        writer.put(f"if h in {writer.need('rows', head.key)}: out[h] = None")
    else:
        writer.put(f"if h not in {writer.need('rows', head.key)}:")
        writer.put(" out[h] = None")
        writer.put(" if len(out) > m: raise Many()")


def _row(writer: Writer, head: Atom) -> str:
    return f"({''.join(writer.term(arg) + ', ' for arg in head.args)})"


@lru_cache(maxsize=4096)
def _compiled(text: str) -> CodeType:
    return compile(text, "<rule>", "exec")
