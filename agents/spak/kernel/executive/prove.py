"""That a derived executive ends, shown before a run: every circle of its moves spends a budget.

Takes a spec's outline, its Program and the policy of its runs; gives findings: a verdict after which the law
derives no move or several, a move that NEXT does not name, one that is never derived, and a circle that
nothing ends, with the moves that go round. What a move may rest on is walked through: each task that can have
ended, each signal, the move before, the count of failures up to the first number beyond all that the law
compares it with. The measure that falls is lexicographic: the failures that the law still allows, then the
evaluations of a metric loop, and RETRIES of its task. What a law reads besides (diagnostics, checks, the
world) is not foreseen: there each literal about it may hold or not, so that a circle is never missed, and one
may be told that no run goes.
Source: seed 004 section 3.2, notes on repair ("each cycle of the derived graph spends one").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from spak.datalog import Policy
from spak.datalog.errors import PolicyError, PolicyLimit
from spak.datalog.plan import Key
from spak.datalog.syntax import Apply, Atom, Clause, Compare, Const, Literal_, Term, Var
from spak.datalog.values import Fact, Name, encode
from spak.kernel.executive import FAILING, actions
from spak.kernel.gate import ROUTE, Gate
from spak.lang import ast
from spak.lang.checks.transitions import ALWAYS
from spak.lang.diagnostics import Diagnostic, Severity
from spak.lang.outline import Outline
from spak.lang.task_graph import parts
from spak.policy.stated import COLUMNS
from spak.program import Program

MOST = 5_000
"""Situations that are walked through."""
SHOWN = 6
"""Moves of a circle that are named."""
_RETRIES = ("retry_count", 1)
_KNOWN: frozenset[Key] = frozenset({("ended", 2), ("last_action", 1), _RETRIES})


class Place(NamedTuple):
    """A situation in which the run goes on: what ended, the move before, and failures counted."""

    task: str
    signal: str
    action: str
    retries: int

    def words(self) -> str:
        """The situation for people."""
        before = f", last_action({self.action})" if self.action else ""
        return f"ended({self.task}, /{self.signal}){before}, retry_count({self.retries})"


def prove(made: Outline, program: Program, gate: Gate) -> Iterator[Diagnostic]:
    """What is wrong with the moves that the law derives; nothing for a spec that derives none."""
    if not any(task.derived for task in program.tasks.values()) or program.start not in program.tasks:
        return
    walk = _Walk(made, program, gate)
    try:
        yield from walk.findings()
    except (PolicyError, PolicyLimit) as error:
        yield walk.told("lang.next_action", program.start, f"no next_action can be derived: {error.message}")


class _Walk:
    def __init__(self, made: Outline, program: Program, gate: Gate) -> None:
        self.made, self.program = made, program
        names = {name for task in program.tasks.values() for name in task.edges if name[0] == "/"}
        self.policy, self.exact, self.cap = _possible(gate, sorted(names))
        self.nodes = {
            name: next(item for item in plan.node.items if isinstance(item, ast.Next))
            for name, plan in made.tasks.items()
            if program.tasks[name].derived
        }
        self.used: set[tuple[str, str]] = set()
        self.onward: dict[Place, list[Place]] = {}

    def findings(self) -> Iterator[Diagnostic]:
        waiting = list(self.arrivals(self.program.start, "", 0))
        told: set[tuple[str, tuple[str, ...]]] = set()
        for place in waiting:  # which grows: the nearest places are told first
            if place in self.onward:
                continue
            if len(self.onward) == MOST:
                yield self.told(
                    "lang.next_action", self.program.start, f"more than {MOST} situations to prove"
                )
                return
            found, problem = self.moves(place)
            self.onward[place] = found
            waiting += found
            if problem and problem[:2] not in told:
                told.add(problem[:2])
                yield self.told("lang.next_action", place.task, problem[2])
        yield from self.circles()
        for name in self.nodes:
            for trigger, edge in self.made.tasks[name].edges.items():
                if trigger[0] == "/" and (name, trigger) not in self.used:
                    message = f"no law derives {trigger} after task '{name}'"
                    hint = "remove the edge, or state a rule for it in POLICY"
                    yield _at(self.made, Severity.WARNING, "lang.dead_trigger", message, hint, edge)

    def moves(self, place: Place) -> tuple[list[Place], tuple[str, tuple[str, ...], str] | None]:
        """Where the run can go on, and what is wrong with that."""
        task = self.program.tasks[place.task]
        if not task.derived:
            target = task.edges.get(place.signal, "")
            return list(self.arrivals(target, place.action, place.retries)), None
        derived = actions(self.policy.session(self.facts(place)))
        retries = min(place.retries + (place.signal in FAILING), self.cap)
        onward: list[Place] = []
        for name in derived:
            self.used.add((place.task, name))
            onward += self.arrivals(task.edges.get(name, ""), name, retries)
        if not derived or (self.exact and len(derived) > 1):
            many = " and ".join(derived) or "no next_action"
            return onward, (place.task, derived, f"the law derives {many} at {place.words()}")
        if self.exact and derived[0] not in task.edges:
            message = f"the law derives {derived[0]} at {place.words()}, and NEXT does not name it"
            return onward, (place.task, derived, message)
        return onward, None

    def facts(self, place: Place) -> list[Fact]:
        known: list[Fact] = [
            ("ended", (place.task, Name("/" + place.signal))),
            ("retry_count", (place.retries,)),
        ]
        return [*known, ("last_action", (Name(place.action),))] if place.action else known

    def arrivals(self, name: str, action: str, retries: int) -> Iterator[Place]:
        """A task that is entered ends with any of its signals; one without edges ends the run."""
        task = self.program.tasks.get(name)
        if task is not None and not task.terminal:
            entry = self.made.tasks[name].validator_entry
            for signal in dict.fromkeys((*ALWAYS, *(entry.triggers if entry else ()))):
                yield Place(name, signal, action, retries)

    def circles(self) -> Iterator[Diagnostic]:
        """The first circle through each task that no budget ends."""
        told: set[str] = set()
        spending = {
            name
            for name, task in self.program.tasks.items()
            if task.rule is not None and (task.rule.evaluations or task.rule.patience)
        }
        free = {
            place: onward if place.task not in spending else _unspent(place, onward)
            for place, onward in self.onward.items()
        }
        for part in parts(free):
            if len(part) == 1 and part[0] not in free[part[0]]:
                continue
            derived = sorted(place for place in part if place.task in self.nodes)
            if not derived or derived[0].task in told:
                continue
            told.update(place.task for place in derived)
            way = _round(derived[0], set(part), free)
            shown = "; then ".join(place.words() for place in way[:SHOWN])
            more = f"; and {len(way) - SHOWN} more" if len(way) > SHOWN else ""
            yield self.told("lang.endless", way[0].task, f"these moves go round for ever: {shown}{more}")

    def told(self, code: str, task: str, message: str) -> Diagnostic:
        hints = {
            "lang.next_action": "one rule of POLICY for each verdict, and an edge for what it derives",
            "lang.endless": "let a rule read retry_count(N), N < 3, and lead elsewhere after that",
        }
        node = self.nodes.get(task) or next(iter(self.nodes.values()))
        return _at(self.made, Severity.ERROR, code, message, hints[code], node)


def _at(
    made: Outline, severity: Severity, code: str, message: str, hint: str, node: ast.Next | ast.Edge
) -> Diagnostic:
    source = made.spec.source
    end = node.bracket if isinstance(node, ast.Next) else node.end
    return source.diagnostic(severity, code, message, hint, *source.offsets(node.start, end))


def _unspent(place: Place, onward: list[Place]) -> list[Place]:
    """The ways on from a metric loop's task that use up neither an evaluation nor, back in it at once, a
    retry: a failure need not have come to a measurement."""
    if place.signal in FAILING:
        return [other for other in onward if other.task != place.task]
    return onward if place.signal == "plateau" else []


def _round(first: Place, part: set[Place], onward: Mapping[Place, list[Place]]) -> list[Place]:
    """A shortest way from a place back to it, inside its part."""
    before: dict[Place, Place] = {}
    queue = [first]
    for place in queue:
        for other in onward[place]:
            if other == first:
                way = [place]
                while way[-1] != first:
                    way.append(before[way[-1]])
                return way[::-1]
            if other in part and other not in before:
                before[other] = place
                queue.append(other)
    return [first]


# ---- a policy that derives whatever the law may derive --------------------------------------------------


def _possible(gate: Gate, names: list[str]) -> tuple[Policy, bool, int]:
    """A policy over _KNOWN alone that derives at least the moves of the law; whether it derives the same; and
    the count of failures from which on all are alike."""
    law = gate.policy
    rules = [clause for clause in law.clauses if clause.head.key in gate.routing]
    stated = {(name, len(columns)) for name, columns in COLUMNS.items()}
    unknown = {key for key in gate.routing if key in stated or key in law.externals or key in law.folds}
    unknown -= _KNOWN
    computes = any(_computes(clause) for clause in rules)
    if computes:
        unknown.add(_RETRIES)
    exact = not unknown
    while True:
        kept, loose = _without(rules, unknown, names)
        if not loose:
            break
        unknown |= loose
    numbers = [value for clause in kept for value in _numbers(clause)]
    cap = 0 if computes else max(numbers, default=0) + 1
    decls = tuple(decl for key, decl in law.decls.items() if key in gate.routing and key not in law.externals)
    return Policy(tuple(kept), decls, ()), exact, cap


def _without(rules: list[Clause], unknown: set[Key], names: list[str]) -> tuple[list[Clause], set[Key]]:
    """The rules without what they read of the unknown, and the predicates that then have no bounds."""
    unsure, grown = set(unknown), True
    while grown:
        more = {
            clause.head.key
            for clause in rules
            if any(isinstance(part, Literal_) and part.atom.key in unsure for part in clause.body)
        }
        grown = not more <= unsure
        unsure |= more
    kept: list[Clause] = []
    loose: set[Key] = set()
    for clause in rules:
        if clause.head.key in unknown:
            continue
        body = [part for part in clause.body if not _left_open(part, unknown, unsure)]
        cut = len(body) < len(clause.body)
        bound, body = _bound(body)
        free = [arg.name for arg in clause.head.args if isinstance(arg, Var) and arg.name not in bound]
        if (cut and clause.transform is not None) or (free and clause.head.key != (ROUTE, 1)):
            loose.add(clause.head.key)
        elif free:
            heads = (Atom(ROUTE, (Const(encode(Name(name))),)) for name in names)
            kept += (Clause(head, tuple(body)) for head in heads)
        else:
            kept.append(Clause(clause.head, tuple(body), clause.transform, clause.place))
    return kept, loose


def _left_open(part: Literal_ | Compare, unknown: set[Key], unsure: set[Key]) -> bool:
    if not isinstance(part, Literal_):
        return False
    return part.atom.key in unknown or (part.negated and part.atom.key in unsure)


def _bound(body: list[Literal_ | Compare]) -> tuple[set[str], list[Literal_ | Compare]]:
    """The variables with a value, and the parts that have one for each of theirs."""
    bound = {
        name
        for part in body
        if isinstance(part, Literal_) and not part.negated and not part.atom.pred.startswith(":")
        for arg in part.atom.args
        for name in _variables(arg)
    }
    kept: list[Literal_ | Compare] = []
    for part in body:
        terms = part.atom.args if isinstance(part, Literal_) else (part.left, part.right)
        if isinstance(part, Compare) and part.op == "=":
            for one, two in (terms, terms[::-1]):
                if isinstance(one, Var) and set(_variables(two)) <= bound:
                    bound.add(one.name)
        if {name for term in terms for name in _variables(term)} <= bound:
            kept.append(part)
    return bound, kept


def _variables(term: Term) -> Iterator[str]:
    if isinstance(term, Var):
        yield term.name
    elif isinstance(term, Apply):
        for arg in term.args:
            yield from _variables(arg)


def _terms(clause: Clause) -> Iterator[Term]:
    yield from clause.head.args
    for part in clause.body:
        yield from part.atom.args if isinstance(part, Literal_) else (part.left, part.right)


def _computes(clause: Clause) -> bool:
    return clause.transform is not None or any(isinstance(term, Apply) for term in _terms(clause))


def _numbers(clause: Clause) -> Iterator[int]:
    for term in _terms(clause):
        if isinstance(term, Const) and type(term.value) is int:
            yield term.value
