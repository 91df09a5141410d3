"""Why-not: what keeps a fact from holding, and the least that would let it.

For every rule whose head fits the goal, the cheapest way through its body is sought: a literal may be matched
by a row that holds, or be taken as missing (cost one); a negated literal that rows stand against costs one
for each. What a comparison demands of a missing fact is a condition on it. So an attempt with the cost n
names n facts, to be stated or to go, and with them the rule gives the goal. For a missing fact that rules
derive, the same is asked again, a few levels down. Two variables that nothing binds are not taken for one:
of e(X, Y), e(Y, X) without any row two facts are named, though e(/a, /a) would do.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spak.datalog.errors import PolicyError
from spak.datalog.explain import prove_row, rule_texts
from spak.datalog.grouping import transformed
from spak.datalog.intervals import written
from spak.datalog.lint import GIVEN
from spak.datalog.plan import Body, Item, Key, ready, sequence, variables
from spak.datalog.session import Session
from spak.datalog.syntax import Apply, Atom, Compare, Const, Literal_, Term, Var, Wild
from spak.datalog.terms import Known, bind, computed, value_of
from spak.datalog.text.format import format_clause, show_part, show_term
from spak.datalog.values import Inner, Row, encode, order_row, show, to_json

MAX_STATES = 20_000
MAX_ROWS = 500
MAX_LEVELS = 3
Goal = tuple[str, tuple[Inner | None, ...]]


@dataclass(frozen=True, slots=True)
class Missing:
    """A fact that nothing gives; None in `args` is any value. `below` says why it is not derived."""

    pred: str
    args: tuple[Inner | None, ...]
    text: str
    below: WhyNot | None = None


@dataclass(frozen=True, slots=True)
class Against:
    """A fact that holds and stands against the goal, with the rule that gives it."""

    pred: str
    args: Row
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """The least that one rule lacks."""

    rule: str
    at: str
    missing: tuple[Missing, ...]
    against: tuple[Against, ...]
    conditions: tuple[str, ...]
    failed: str = ""

    @property
    def cost(self) -> int:
        """How much is missing or in the way: the cheapest attempt is shown first."""
        return len(self.missing) + len(self.against)

    def to_json(self) -> dict[str, Any]:
        """The attempt as JSON, with the why-not of each missing atom."""
        return {
            "rule": self.rule,
            "at": self.at,
            "missing": [
                {
                    "atom": item.text,
                    "pred": item.pred,
                    "args": [None if value is None else to_json(value) for value in item.args],
                    "why_not": None if item.below is None else item.below.to_json(),
                }
                for item in self.missing
            ],
            "against": [
                {"atom": item.text, "pred": item.pred, "args": [to_json(v) for v in item.args], "at": item.at}
                for item in self.against
            ],
            "conditions": list(self.conditions),
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True)
class WhyNot:
    """`attempts`, the cheapest first; none when no rule has such a head, so that the fact has to be given."""

    goal: str
    holds: bool
    attempts: tuple[Attempt, ...]
    complete: bool = True

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON."""
        return {
            "goal": self.goal,
            "holds": self.holds,
            "attempts": [attempt.to_json() for attempt in self.attempts],
            "complete": self.complete,
        }

    def text(self) -> str:
        """The answer as an indented outline."""
        return "\n".join(_lines(self, 0))


def _lines(found: WhyNot, depth: int) -> Iterator[str]:
    pad = "  " * depth
    if found.holds:
        yield f"{pad}{found.goal} holds"
        return
    if not found.attempts:
        yield f"{pad}{found.goal} is not given, and no rule derives it"
        return
    yield f"{pad}{found.goal} does not hold"
    for attempt in found.attempts:
        yield f"{pad}  rule {attempt.at}: {attempt.rule}"
        for missing in attempt.missing:
            yield f"{pad}    missing: {missing.text}"
            if missing.below is not None and missing.below.attempts:
                yield from _lines(missing.below, depth + 3)
        for against in attempt.against:
            yield f"{pad}    against it: {against.text}" + (f" ({against.at})" if against.at else "")
        for condition in attempt.conditions:
            yield f"{pad}    where {condition}"
        if attempt.failed:
            yield f"{pad}    never: {attempt.failed}"


def why_not(session: Session, pred: str, *args: Any) -> WhyNot:
    """What is missing for a fact to hold; None and variables in `args` match any value."""
    session.require_complete()
    goal: Goal = (
        pred,
        tuple(None if item is None or isinstance(item, Var | Wild) else encode(item) for item in args),
    )
    return _Seeker(session).ask(goal, (), 0)


class _Seeker:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.texts = rule_texts(session)
        self.complete = True

    def ask(self, goal: Goal, above: tuple[Goal, ...], level: int) -> WhyNot:
        pred, args = goal
        text = _atom(pred, args)
        if self.rows(goal):
            return WhyNot(text, True, ())
        bodies = self.session.policy.written.bodies
        order = sorted(range(len(bodies)), key=lambda rule: self.texts[rule])
        attempts = [
            attempt
            for rule in order
            if bodies[rule].head.key == (pred, len(args))
            for attempt in (self.attempt(bodies[rule], args, (*above, goal), level),)
            if attempt is not None
        ]
        attempts.sort(key=lambda attempt: (bool(attempt.failed), attempt.cost))
        return WhyNot(text, False, tuple(attempts), self.complete)

    def attempt(
        self, body: Body, args: tuple[Inner | None, ...], above: tuple[Goal, ...], level: int
    ) -> Attempt | None:
        """The cheapest way through one rule; None when its head does not fit."""
        known: Known = {}
        later: list[tuple[Term, Inner]] = []
        for term, value in zip(body.head.args, args, strict=True):
            if value is None:
                continue
            if isinstance(term, Const):
                if term.value != value:
                    return None
            elif isinstance(term, Var) and term.name in body.variables:
                if known.setdefault(term.name, value) != value:
                    return None
            else:
                later.append((term, value))
        place = body.clause.place
        rule, at = format_clause(body.clause), f"{place.file}:{place.line}"
        state = self.search(body, known, later)
        if state is None:
            return Attempt(rule, at, (), (), (), "no fact can satisfy its body")
        known, missing, against, conditions = state
        if not missing and not against and body.clause.transform is not None:
            heads = sorted(transformed(body, self.matches(body)), key=order_row)[:5]
            shown = "; ".join(_atom(body.head.pred, row) for row in heads)
            return Attempt(
                rule, at, (), (), (), f"the grouping gives {shown}" if shown else "the group is empty"
            )
        return Attempt(
            rule,
            at,
            tuple(self.missing(item, known, above, level) for item in missing),
            tuple(self.against(key, row) for key, row in against),
            tuple(dict.fromkeys(conditions)),
        )

    def missing(self, item: Item, known: Known, above: tuple[Goal, ...], level: int) -> Missing:
        values = tuple(_try(arg, known) for arg in item.args)
        shown = [
            show(value) if value is not None else show_term(arg) if isinstance(arg, Var) else "_"
            for value, arg in zip(values, item.args, strict=True)
        ]
        goal = (item.name, values)
        below = None
        if level < MAX_LEVELS and goal not in above:
            below = self.ask(goal, above, level + 1)
        closure = item.name.removesuffix(GIVEN.format(""))
        name = closure if (closure, len(values)) in self.session.policy.closures else item.name
        return Missing(
            name, values, written(name, shown), below if below is not None and below.attempts else None
        )

    def against(self, key: Key, row: Row) -> Against:
        root = prove_row(self.session, key, row).nodes[-1]
        return Against(key[0], row, str(root["text"]), str(root["at"] or root["how"]))

    def matches(self, body: Body) -> dict[Row, None]:
        rule = self.session.policy.written.bodies.index(body)
        return self.session.by_rule().run(rule, "match")

    def rows(self, goal: Goal) -> list[Row]:
        """Rows that fit, in order, at most MAX_ROWS."""
        pred, args = goal
        relation = self.session.evaluation.relations.get((pred, len(args)))
        if relation is None:
            return []
        places = tuple(place for place, value in enumerate(args) if value is not None)
        found: Any = relation.rows
        if places:
            key = tuple(args[place] for place in places)
            found = relation.index(places).get(key[0] if len(places) == 1 else key, ())
        if len(found) > MAX_ROWS:
            self.complete = False
            return heapq.nsmallest(MAX_ROWS, found, key=order_row)
        return sorted(found, key=order_row)

    def search(
        self, body: Body, known: Known, later: list[tuple[Term, Inner]]
    ) -> tuple[Known, list[Item], list[tuple[Key, Row]], list[str]] | None:
        """Uniform-cost search over the body in its planned order."""
        items, rest = sequence(body.items, set(known))
        items += rest
        named = Counter(name for item in items for arg in item.args for name in set(variables(arg)))
        named.update(name for arg in body.head.args for name in variables(arg))
        once = {name for name, times in named.items() if times == 1 and body.clause.transform is None}
        counter = 0
        heap: list[Any] = [(0, 0, 0, known, (), (), ())]
        pops = 0
        while heap:
            cost, negative, _, env, missing, against, conditions = heapq.heappop(heap)
            at = -negative
            pops += 1
            if pops > MAX_STATES:
                self.complete = False
                return None
            if at == len(items):
                if body.clause.transform is None and not _agrees(later, env):
                    continue
                if _contradicts(items, env, missing, against):
                    continue
                return env, list(missing), list(against), list(conditions)
            for following, lacking, blocked, demand in self.ways(items[at], env):
                blocked = tuple(row for row in blocked if row not in against)  # one fact is counted once
                extra = len(lacking) + len(blocked)
                for earlier in missing if lacking else ():
                    shared = _shared(items[at], earlier, env, once)
                    if shared is not None:
                        counter += 1
                        heapq.heappush(heap, (cost, -(at + 1), counter, shared, missing, against, conditions))
                counter += 1
                state = (
                    cost + extra,
                    -(at + 1),
                    counter,
                    following,
                    missing + lacking,
                    against + blocked,
                    conditions + demand,
                )
                heapq.heappush(heap, state)
        return None

    def ways(self, item: Item, env: Known) -> Iterator[tuple[Known, Any, Any, Any]]:
        """Each way past one item: bindings, what is missing, what is against, conditions."""
        if item.kind == "row":
            goal = (item.name, tuple(_try(arg, env) for arg in item.args))
            for row in self.rows(goal):
                found = bind(item.args, row, env)
                if found is not None:
                    yield found, (), (), ()
            yield env, (item,), (), ()
        elif item.kind == "neg":
            free = [name for arg in item.args for name in variables(arg) if name not in env]
            if free:
                yield env, (), (), (_show(item, env),)
                return
            rows = self.rows((item.name, tuple(_try(arg, env) for arg in item.args)))
            yield env, (), tuple((item.key, row) for row in rows), ()
        elif not ready(item, set(env)):
            yield env, (), (), (() if item.part is None else (_show(item, env),))
        else:
            try:
                for found in computed(item, env):
                    yield found, (), (), ()
            except PolicyError:
                return


def _try(term: Term, env: Known) -> Inner | None:
    if isinstance(term, Wild) or not set(variables(term)) <= set(env):
        return None
    return value_of(term, env)


def _shared(item: Item, other: Item, env: Known, once: set[str]) -> Known | None:
    """What is known when one missing fact stands for both literals; None when it cannot. `once`: variables
    that stand nowhere else, so that they may be any value."""
    if item.key != other.key:
        return None
    found = dict(env)
    pairs, before = list(zip(item.args, other.args, strict=True)), -1
    while len(found) > before:  # a value that one argument gives may be what another one lacked
        before = len(found)
        for one, two in pairs:
            left, right = _try(one, found), _try(two, found)
            if left is None and right is None:
                continue
            if left is None or right is None:
                free = one if left is None else two
                if isinstance(free, Var):
                    found[free.name] = right if left is None else left
            elif left != right:
                return None
    for one, two in pairs:
        unknown = _try(one, found) is None and _try(two, found) is None
        if unknown and one != two and not any(_any(term, once) for term in (one, two)):
            return None
    return found


def _any(term: Term, once: set[str]) -> bool:
    return isinstance(term, Wild) or (isinstance(term, Var) and term.name in once)


def _contradicts(items: list[Item], env: Known, missing: Any, against: Any) -> bool:
    """True when the body needs a row that it also rules out."""
    needed = [(item.key, tuple(_try(arg, env) for arg in item.args)) for item in items if item.kind == "row"]
    if any((key, row) in against for key, row in needed):
        return True
    for item in items:
        if item.kind != "neg" or not all(name in env for arg in item.args for name in variables(arg)):
            continue
        pattern = [_try(arg, env) for arg in item.args]
        for key, row in needed:
            if key == item.key and all(
                value == wanted for value, wanted in zip(row, pattern, strict=True) if wanted is not None
            ):
                return True
    return False


def _agrees(later: list[tuple[Term, Inner]], env: Known) -> bool:
    """Expressions of the head against the goal, where they can be computed."""
    try:
        return all(_try(term, env) in (None, value) for term, value in later)
    except PolicyError:
        return False


def _show(item: Item, env: Known) -> str:
    def fill(term: Term) -> Term:
        if isinstance(term, Var) and term.name in env:
            return Const(env[term.name])
        if isinstance(term, Apply):
            return Apply(term.function, tuple(fill(arg) for arg in term.args))
        return term

    args = tuple(fill(arg) for arg in item.args)
    if item.kind == "compare":
        return show_part(Compare(item.name, args[0], args[1]))
    return show_part(Literal_(Atom(item.name, args), item.negated))


def _atom(pred: str, args: tuple[Inner | None, ...]) -> str:
    return written(pred, ["_" if value is None else show(value) for value in args])
