"""Two policies as one program of answer sets (clingo's language).

`translate(old, new, kinds, found, most)` takes the policies, the acts with the predicates that can be stated
of each, the domain and the most facts; gives a Program, or raises Untranslatable, which names the rule. An
answer set is an act with at most `most` facts; `differs(permitted)` holds where the new law permits it and
the old does not, `differs(denied)` the other way.

Values are numbers of a table, so that equality is equality of numbers. Tests, comparisons, functions and
arithmetic are not translated: while the program is grounded it calls the tables of the language
(spak.datalog.functions), with values of any size. Where a call fails, the engine denies: `fault(side, place)`
holds wherever any order of joins could reach such a call, and what a side with a fault would permit is not
compared. `broken(side)` holds where a row breaks its declaration, which denies in any order. Counts, sums,
minima and maxima become aggregates; other reducers are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from spak.datalog.functions import REDUCERS
from spak.datalog.plan import Body, Item, Key, prepare, sequence, variables
from spak.datalog.session import Policy
from spak.datalog.syntax import Apply, Clause, Decl, Let, Place, Term, Var
from spak.datalog.terms import value_of
from spak.datalog.values import Fact, encode
from spak.outer.solver.bodies import FAULT, Tables, Values, Written, arguments, inputs_of, names_in
from spak.outer.solver.domain import Domain
from spak.policy.toolfacts import ACTION

MOST_ADDENDS = 200
"""Rows that one sum is made of: more would not fit the numbers of the solver (with `search.MOST_SUMMED`)."""
MOST_BINDERS = 64
"""Ways in which the variables of a call may be bound, which are all looked at."""
SUMMED = ("fn:sum", "fn:max", "fn:min")
_DIRECTIONS = (("permitted", "new", "old"), ("denied", "old", "new"))


class Untranslatable(Exception):
    """A rule that has no translation; the text says which, and why."""


@dataclass(frozen=True, slots=True)
class Program:
    """What `search` runs."""

    text: str
    values: Values
    guards: tuple[Decl, ...]
    """Declarations that derived rows may break, by the number that the text gives them."""
    places: tuple[str, ...]
    """Of the calls that may fail, by number."""


def translate(
    old: Policy,
    new: Policy,
    kinds: Sequence[tuple[Sequence[Fact], frozenset[str]]],
    found: Domain,
    most: int,
) -> Program:
    """The program. Raises: Untranslatable."""
    shared = Tables(folds=found.folds)
    lines = [*_choice(shared, kinds, found, most)]
    for name, policy in (("old", old), ("new", new)):
        lines += _Side(shared, name, policy).lines()
    action = shared.values.of(encode(ACTION))
    for name, policy in (("old", old), ("new", new)):
        if ("permitted", 1) in policy.predicates:
            permitted = shared.predicate(name, ("permitted", 1))
            forbidden = shared.predicate(name, ("forbidden", 1))
            holds = f"{permitted}({action}), not {forbidden}({action}), not broken({name})"
            lines.append(f"permits({name}) :- {holds}.")
    for direction, side, other in _DIRECTIONS:
        lines.append(f"differs({direction}) :- permits({side}), not fault({side},_), not permits({other}).")
    lines += ["#show.", "#show chosen/1.", "#show kind/1."]
    return Program("\n".join(lines), shared.values, tuple(shared.guards), tuple(shared.places))


def _choice(
    shared: Tables, kinds: Sequence[tuple[Sequence[Fact], frozenset[str]]], found: Domain, most: int
) -> Iterator[str]:
    """One act, with at most so many of the facts that can be stated of it."""
    yield f"1 {{ kind(0..{len(kinds) - 1}) }} 1."
    names = sorted({key[0] for key, _ in found.facts})
    for number, (own, stated) in enumerate(kinds):
        for name, args in own:
            own_row = [shared.values.of(encode(value)) for value in args]
            yield f"{shared.predicate('base', (name, len(own_row)))}{arguments(own_row)} :- kind({number})."
        for at, name in enumerate(names):
            if name in stated or name in found.free:
                yield f"stated({at}) :- kind({number})."
    for number, (key, row) in enumerate(found.facts):
        yield f"fact({number},{names.index(key[0])})."
        columns = arguments([shared.values.of(value) for value in row])
        yield f"{shared.predicate('base', key)}{columns} :- chosen({number})."
    yield "{ chosen(F) : fact(F,_) }."
    yield f"1 {{ size(0..{most}) }} 1."
    yield ":- size(S), #count { F : chosen(F) } > S."
    yield ":- chosen(F), fact(F,P), not stated(P)."


class _Side:
    """One policy, written out."""

    def __init__(self, shared: Tables, name: str, policy: Policy) -> None:
        self.shared, self.name, self.policy = shared, name, policy
        self.asked = {key for key, fold in policy.folds.items() if fold.mode is not None}

    def lines(self) -> Iterator[str]:
        """All of its rules."""
        policy, values = self.policy, self.shared.values
        if policy.folds:
            event = self.predicate(("event", 1))
            yield f"{event}({values.of(encode(ACTION))})."
        for key in sorted(policy.predicates):
            base, mine = self.shared.predicate("base", key), self.predicate(key)
            columns = [f"X{at}" for at in range(key[1])]
            yield f"{mine}{arguments(columns)} :- {base}{arguments(columns)}."
            if key in self.asked and key in self.shared.folds:
                yield f"has_{base}{arguments(columns[:-1])} :- {base}{arguments(columns)}."
                one, two = (arguments([*columns[:-1], value]) for value in "AB")
                yield f":- {base}{one}, {base}{two}, A < B."
        for clause in policy.clauses:
            if not clause.body:
                row = [self.constant(arg, clause) for arg in clause.head.args]
                yield f"{self.predicate(clause.head.key)}{arguments(row)}."
        rules = [clause for clause in policy.clauses if clause.body]
        for number, clause in enumerate([*rules, *policy.inclusions]):
            yield from self._rule(prepare(clause), number)
        for clause in policy.inclusions:
            broken = self.predicate(clause.head.key) + arguments(["_"] * len(clause.head.args))
            yield f"broken({self.name}) :- {broken}."
        for key, decl in sorted(policy.compiled.guarded.items()):
            columns = [f"X{at}" for at in range(key[1])]
            self.shared.guards.append(decl)
            call = f"@misfit({', '.join(map(str, (len(self.shared.guards) - 1, *columns)))}) = 1"
            yield f"broken({self.name}) :- {self.predicate(key)}{arguments(columns)}, {call}."

    def predicate(self, key: Key) -> str:
        return self.shared.predicate(self.name, key)

    def constant(self, term: Term, clause: Clause) -> str:
        """The number of a constant, or of what a function makes of constants."""
        return str(self.shared.values.of(value_of(term, {})))

    def _place(self, place: Place) -> int:
        self.shared.places.append(f"{self.name} {place}")
        return len(self.shared.places) - 1

    def _rule(self, body: Body, number: int) -> Iterator[str]:
        """A rule, and where its calls may fail."""
        items = self._ordered(body)
        for way in self._ways(items):
            written = Written(self.shared, self.name)
            for item, answer in way:
                written.item(item, answer)
            if body.clause.transform is None:
                args = [written.term(arg) for arg in body.head.args]
                yield f"{self.predicate(body.head.key)}{arguments(args)} :- {written.text()}."
            else:
                yield from self._transform(body, written, number)
                number += 1_000_000  # a name of its own for each way
        yield from self._faults(body, items)

    def _ordered(self, body: Body) -> list[Item]:
        """The items so that each has its inputs: folds that are asked by a key come after what binds it."""
        asked = [item for item in body.items if item.kind == "row" and item.key in self.asked]
        done, left = sequence(tuple(item for item in body.items if item not in asked), set())
        while asked or left:
            known = names_in(arg for item in done if item.kind != "neg" for arg in item.args)
            ready = next((item for item in asked if names_in(item.args[:-1]) <= known), None)
            if ready is None:
                raise Untranslatable(f"{body.clause.place}: a literal that nothing binds")
            asked.remove(ready)
            done.append(ready)
            more, left = sequence(tuple(left), known | names_in(ready.args))
            done += more
        return done

    def _ways(self, items: Sequence[Item]) -> Iterator[tuple[tuple[Item, str], ...]]:
        """The items with how each fold that is asked answers: a chosen row, or what a beginning has."""
        choices = []
        for item in items:
            if item.kind not in ("row", "neg") or item.key not in self.asked:
                choices.append([(item, "")])
            elif item.key in self.shared.folds:
                choices.append([(item, "row"), (item, "zero")])
            else:
                choices.append([(item, "zero")])
        yield from product(*choices)

    # ---- transforms -------------------------------------------------------------------------------------

    def _transform(self, body: Body, written: Written, number: int) -> Iterator[str]:
        transform = body.clause.transform
        assert transform is not None
        if transform.keys is None:
            for let in transform.lets:
                yield from self._failing(body, written, let.term)
                written.let(let)
            yield from self._head(body, written)
            return
        group = f"group_{self.name}_{number}"
        yield f"{group}{arguments([written.names[name] for name in body.variables])} :- {written.text()}."
        yield from self._grouped(body, [key.name for key in transform.keys], transform.lets, group)

    def _grouped(self, body: Body, keys: list[str], lets: Iterable[Let], group: str) -> Iterator[str]:
        written = Written(self.shared, self.name)
        for name in keys:
            written.bind(name)
        columns = [written.names.get(name, "_") for name in body.variables]
        written.parts.append(f"{group}{arguments(columns)}")
        for let in lets:
            if isinstance(let.term, Apply) and let.term.function in REDUCERS:
                yield from self._reduce(body, written, group, let, let.term)
            else:
                yield from self._failing(body, written, let.term)
                written.let(let)
        yield from self._head(body, written)

    def _head(self, body: Body, written: Written) -> Iterator[str]:
        for arg in body.head.args:
            yield from self._failing(body, written, arg)
        args = [written.term(arg) for arg in body.head.args]
        yield f"{self.predicate(body.head.key)}{arguments(args)} :- {written.text()}."

    def _failing(self, body: Body, written: Written, term: Term) -> Iterator[str]:
        """Where a function of a transform or of its head fails."""
        if isinstance(term, Apply):
            place = self._place(body.clause.place)
            yield f"fault({self.name},{place}) :- {written.text()}, {written.nested(term)} = {FAULT}."

    def _reduce(self, body: Body, written: Written, group: str, let: Let, term: Apply) -> Iterator[str]:
        inner = Written(self.shared, self.name, written.names, len(written.parts))
        columns = [inner.names[name] if name in inner.names else inner.bind(name) for name in body.variables]
        inner.parts.append(f"{group}{arguments(columns)}")
        function = term.function.replace("float:", "")
        for arg in term.args:
            yield from self._failing(body, inner, arg)
        if function == "fn:count":
            what = f"#count {{ {','.join(columns) or '0'} : {inner.text()} }}"
        elif function == "fn:count_distinct":
            value = inner.term(term.args[0])
            what = f"#count {{ {value} : {inner.text()} }}"
        elif function in SUMMED:
            yield from self._failing(body, inner, Apply("fn:plus", term.args))
            place = self._place(body.clause.place)
            many = f"#count {{ {','.join(columns)} : {inner.text()} }} > {MOST_ADDENDS}"
            yield f"fault({self.name},{place}) :- {written.text()}, {many}."
            value, number = inner.term(term.args[0]), inner.fresh()
            inner.parts.append(f"{number} = @whole({value})")
            what = f"#{function[3:]} {{ {','.join((number, *columns))} : {inner.text()} }}"
        else:
            raise Untranslatable(f"{body.clause.place}: {term.function} is no aggregate of the solver")
        total = written.fresh()
        written.parts.append(f"{total} = {what}")
        written.parts.append(f"{written.bind(let.name)} = @number({total})")

    # ---- faults -----------------------------------------------------------------------------------------

    def _faults(self, body: Body, items: Sequence[Item]) -> Iterator[str]:
        """For each call that may fail, the least that is known where the engine makes it, in any order."""
        calls: list[tuple[Callable[[Written], str], set[str]]] = []
        for item in items:
            calls += [(_value_of(arg), names_in([arg])) for arg in item.args if isinstance(arg, Apply)]
            if item.kind in ("test", "find") or (item.kind == "compare" and item.name != "=="):
                calls.append((_call_of(item), names_in(item.args[at] for at in inputs_of(item))))
        if body.clause.transform is None:
            calls += [(_value_of(arg), names_in([arg])) for arg in body.head.args if isinstance(arg, Apply)]
        place = self._place(body.clause.place) if calls else 0
        for call, needed in calls:
            for binders in self._binders(body, items, needed):
                for way in self._ways(binders):
                    written = Written(self.shared, self.name)
                    if written.bound_by(way):
                        written.parts.append(f"{call(written)} = {FAULT}")
                        yield f"fault({self.name},{place}) :- {written.text()}."

    def _binders(self, body: Body, items: Sequence[Item], needed: set[str]) -> list[list[Item]]:
        """Each least set of items that gives the variables a value, in the order of the rule."""
        ways: set[frozenset[int]] = set()
        waiting: list[tuple[frozenset[int], frozenset[str], frozenset[str]]] = [
            (frozenset(), frozenset(needed), frozenset())
        ]
        seen = set(waiting)
        while waiting:
            chosen, open_, done = waiting.pop()
            if not open_:
                ways.add(chosen)
                continue
            name = min(open_)
            for at, item in enumerate(items):
                inputs = self._gives(item, name)
                if inputs is None:
                    continue
                closed = done | {name}
                state = (chosen | {at}, frozenset((open_ | inputs) - closed), closed)
                if state not in seen:
                    seen.add(state)
                    waiting.append(state)
            if len(seen) > MOST_BINDERS * 8 or len(ways) > MOST_BINDERS:
                raise Untranslatable(f"{body.clause.place}: too many ways to bind {name}")
        return [[items[at] for at in sorted(way)] for way in sorted(ways, key=sorted)]

    def _gives(self, item: Item, name: str) -> frozenset[str] | None:
        """What has to be known for an item to give a variable a value; None where it gives none."""
        if item.kind == "row":
            if not any(isinstance(arg, Var) and arg.name == name for arg in item.args):
                return None
            is_answer = item.key in self.asked and name not in names_in(item.args[:-1])
            return frozenset(names_in(item.args[:-1])) if is_answer else frozenset()
        if item.kind == "find" and not item.negated:
            inputs = inputs_of(item)
            outs = [arg for at, arg in enumerate(item.args) if at not in inputs]
            if any(isinstance(arg, Var) and arg.name == name for arg in outs):
                return frozenset(names_in(item.args[at] for at in inputs))
        if item.kind == "compare" and item.name in ("=", "=="):
            for one, two in (item.args, item.args[::-1]):
                if isinstance(one, Var) and one.name == name:
                    return frozenset(variables(two))
        return None


def _call_of(item: Item) -> Callable[[Written], str]:
    def call(written: Written) -> str:
        args = [written.nested(item.args[at]) for at in inputs_of(item)]
        if item.kind == "compare":
            return f'@compare("{item.name}", {", ".join(args)})'
        return f'@{"test" if item.kind == "test" else "fails"}("{item.name}", {", ".join(args)})'

    return call


def _value_of(term: Term) -> Callable[[Written], str]:
    return lambda written: written.nested(term)
