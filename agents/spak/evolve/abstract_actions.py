"""What a change of the law newly permits or denies among abstract actions, which no run need have taken.

`compare(old, new)` takes two policies. An abstract action is an act (a tool that a rule names, one that none
does, a question, a plan, a check, a validator) with at most two more facts that can be stated of it. The
facts are instances of what rules of either policy ask: each literal with its own constants, with what the
tables that it is joined with hold, and with a value that no rule names. Every abstract action is judged under
both; folds are as at the beginning of a run, and the world answers nothing.

It says how many it judged and how many it left out beyond `most`, and nothing about actions of three facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from spak.datalog.explain import prove
from spak.datalog.plan import Key
from spak.datalog.session import Policy, Session
from spak.datalog.syntax import Atom, Clause, Compare, Const, Literal_, Var
from spak.datalog.terms import matched
from spak.datalog.values import Fact, Inner, Name, Value, decode, encode, show_atom
from spak.errors import UserError
from spak.policy.history.deciding import answers, folds_of
from spak.policy.history.state import History
from spak.policy.law import RESERVED
from spak.policy.stated import ACTS, OF_ACT, OF_ALL, OF_OTHER, OF_RUN, STATED
from spak.policy.toolfacts import ACTION

Direction = Literal["permitted", "denied"]
Facts = tuple[Fact, ...]
LISTED = 1_000
"""Differences that are listed, each with its proof; the others are counted."""
OTHER: Mapping[str, Value] = {"number": 1, "string": "other"}
"""Values that no rule names, by the type of the column; elsewhere the name `/other`."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An abstract action that the two judge differently."""

    facts: tuple[str, ...]
    newly: Direction
    proof: str
    """How the side that permits derives it; where it is newly denied and forbidden, how that is derived."""

    def to_json(self) -> dict[str, Any]:
        """As commands print it."""
        return {"facts": list(self.facts), "newly": self.newly, "proof": self.proof}


@dataclass(slots=True)
class Compared:
    """What was judged, and what differed."""

    judged: int = 0
    left_out: int = 0
    """Beyond the most that was asked for."""
    facts: int = 0
    """Abstract facts that rules of either policy ask for."""
    found: list[Difference] = field(default_factory=list)
    """What differs, but for what differs in the same direction with fewer facts already."""
    unlisted: int = 0
    """Further differences, beyond `LISTED`."""

    def newly(self, direction: Direction) -> list[Difference]:
        """The differences in one direction."""
        return [item for item in self.found if item.newly == direction]

    def to_json(self) -> dict[str, Any]:
        """As commands print it."""
        return {
            "judged": self.judged, "left_out": self.left_out, "facts": self.facts,
            "unlisted": self.unlisted,
            "newly_permitted": [item.to_json() for item in self.newly("permitted")],
            "newly_denied": [item.to_json() for item in self.newly("denied")],
        }  # fmt: skip


def compare(old: Policy, new: Policy, most: int = 300_000) -> Compared:
    """Judge every abstract action under both. Raises: what loading a session raises."""
    universe = sorted({*_instances(old), *_instances(new)}, key=repr)
    found = Compared(facts=len(universe))
    if old.hash == new.hash:
        return found
    sides = Side(old), Side(new)
    for kind, stated in kinds_of_acts(old, new):
        own = [fact for fact in universe if fact[0] in stated]
        differs: dict[Facts, Direction] = {}
        found.left_out += 1 + len(own) + len(own) * (len(own) - 1) // 2
        for facts, fewer in islice(_walk(sides, kind, own), most - found.judged):
            found.judged += 1
            found.left_out -= 1
            before, after = (side.judge() for side in sides)
            if before == after:
                continue
            differs[facts] = "permitted" if after else "denied"
            if all(differs.get(part) != differs[facts] for part in fewer):
                _list(found, sides, facts, differs[facts])
    return found


def _walk(
    sides: tuple[Side, Side], kind: Facts, own: Sequence[Fact]
) -> Iterator[tuple[Facts, tuple[Facts, ...]]]:
    """Each action of an act, as it stands in both sessions meanwhile, with those of fewer facts in it."""
    for side in sides:
        side.begin(kind)
    yield kind, ()
    for at, one in enumerate(own):
        for side in sides:
            side.change((), (one,))
        yield (*kind, one), (kind,)
        for two in own[:at]:
            for side in sides:
                side.change((), (two,))
            yield (*kind, one, two), (kind, (*kind, one), (*kind, two))
            for side in sides:
                side.change((two,), ())
        for side in sides:
            side.change((one,), ())


def _list(found: Compared, sides: tuple[Side, Side], facts: Facts, newly: Direction) -> None:
    if len(found.found) >= LISTED:
        found.unlisted += 1
        return
    side = sides[1] if newly == "permitted" or sides[1].forbids() else sides[0]
    shown = tuple(show_atom(name, map(encode, row)) for name, row in facts)
    found.found.append(Difference(shown, newly, side.proof()))


class Side:
    """A policy with a session whose facts are changed from action to action.

    An error of the engine is a denial, as in a run; while the facts are such that an update fails, each
    action is judged in a session of its own.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy, self.folds = policy, folds_of(policy)
        self.session: Session = policy.session()
        self.facts: dict[Fact, None] = {}
        self.is_whole = True
        """Whether the session holds all of the facts."""

    def begin(self, facts: Iterable[Fact]) -> None:
        """Start again from these facts, without those that the policy does not know."""
        self.facts = dict.fromkeys(self._known(facts))
        self.is_whole = False
        self._whole()

    def change(self, less: Iterable[Fact], more: Iterable[Fact]) -> None:
        """Replace the facts `less` with `more`, in the session too while it holds all facts."""
        less, more = self._known(less), self._known(more)
        for fact in less:
            del self.facts[fact]
        self.facts.update(dict.fromkeys(more))
        try:
            if self.is_whole:
                self.session.update(less, more)
        except UserError:
            self.is_whole = False

    def judge(self) -> bool:
        """Whether the action is permitted."""
        try:
            if not self._whole():
                return False
            self._answer()
            return self.holds("permitted") and not self.holds("forbidden")
        except UserError:
            return False

    def _whole(self) -> bool:
        if not self.is_whole:
            try:
                self.session = self.policy.session(self.facts)
            except UserError:
                return False
            self.is_whole = True
        return True

    def forbids(self) -> bool:
        """Whether the action is denied by a rule, and not by an error."""
        try:
            return self.is_whole and self.holds("forbidden")
        except UserError:
            return False

    def holds(self, pred: str) -> bool:
        """Whether the predicate holds for the action. Raises: UserError of the engine."""
        return self.session.holds(pred, ACTION)

    def proof(self) -> str:
        """Why the action is permitted or forbidden, as text."""
        pred = "forbidden" if self.holds("forbidden") else "permitted"
        return prove(self.session, pred, ACTION).text()

    def _answer(self) -> None:
        while requests := self.session.requests():
            for request in requests:
                self.session.supply(request, answers(self.folds, History(), request) or ())

    def _known(self, facts: Iterable[Fact]) -> list[Fact]:
        """Those of which the policy knows the predicate: others are no news to it."""
        return [fact for fact in facts if (fact[0], len(fact[1])) in self.policy.predicates]


def kinds_of_acts(old: Policy, new: Policy) -> Iterator[tuple[tuple[Fact, ...], frozenset[str]]]:
    """Each act with the predicates that can be stated of it: tools that a rule names, one that none does."""
    named = {*_named_tools(old), *_named_tools(new), "/other"}
    held: Fact = ("sandboxed", (ACTION, Name("/restricted")))
    for tool in sorted(named):
        stated = OF_ALL | STATED.get(tool, OF_OTHER)
        yield (("act", (ACTION, Name("/tool"))), ("tool", (ACTION, Name(tool))), held), stated
    for act in ACTS:
        yield (("act", (ACTION, Name(f"/{act}"))), held), OF_ALL | STATED.get(f"/{act}", frozenset())


def _named_tools(policy: Policy) -> Iterator[str]:
    """Names that rules compare a tool with: their own, and those of tables that they join it with."""
    tables = _tables(policy)
    for clause in policy.rules:
        for part in clause.body:
            if isinstance(part, Literal_) and part.atom.key == ("tool", 2):
                for known in _bindings(clause, part.atom, tables):
                    yield str(_instance(policy, part.atom, known)[1][1])


# ---- facts that rules ask for -----------------------------------------------------------------------------


def _instances(policy: Policy) -> Iterator[Fact]:
    """Instances of every literal about an action or a run that a rule of the policy has."""
    tables = _tables(policy)
    for clause in policy.rules:
        for part in clause.body:
            if isinstance(part, Literal_) and _is_stated(part.atom, policy):
                for known in _bindings(clause, part.atom, tables):
                    yield _instance(policy, part.atom, known)


def _tables(policy: Policy) -> dict[Key, list[tuple[Inner, ...]]]:
    """The rows of predicates that no rule derives."""
    derived = {clause.head.key for clause in policy.rules}
    found: dict[Key, list[tuple[Inner, ...]]] = {}
    for key, row in policy.facts:
        if key not in derived:
            found.setdefault(key, []).append(row)
    return found


def _is_stated(atom: Atom, policy: Policy) -> bool:
    mine = atom.pred in RESERVED and atom.pred not in OF_ACT
    return mine and atom.key not in policy.externals and atom.key not in policy.folds


def _bindings(
    clause: Clause, atom: Atom, tables: Mapping[Key, list[tuple[Inner, ...]]]
) -> Iterator[dict[str, Inner]]:
    """Values of a literal's variables: none, rows of tables that share one, what they are compared with."""
    yield {}
    mine = {arg.name for arg in atom.args if isinstance(arg, Var)}
    rows: list[dict[str, Inner]] = []
    for part in clause.body:
        if isinstance(part, Literal_) and part.atom.key in tables:
            for row in tables[part.atom.key]:
                known = matched(part.atom.args, row)
                if known is not None:
                    rows.append(known)
        if isinstance(part, Compare):
            rows += _compared(part)
    for known in rows:
        if mine & known.keys():
            yield known
        for part in clause.body:  # `:string:starts_with(Text, Begins)`: a text that is the beginning itself
            if isinstance(part, Literal_) and part.atom.pred.startswith(":string:"):
                names = [arg.name for arg in part.atom.args if isinstance(arg, Var)]
                if len(names) == 2 and names[1] in known and names[0] in mine:
                    yield {names[0]: known[names[1]]}


def _compared(part: Compare) -> list[dict[str, Inner]]:
    """A variable as it is compared with a number: that number, and those next to it."""
    for one, two in ((part.left, part.right), (part.right, part.left)):
        if isinstance(one, Var) and isinstance(two, Const):
            if type(two.value) is int:
                return [{one.name: two.value + step} for step in (-1, 0, 1)]
            return [{one.name: two.value}]
    return []


def _instance(policy: Policy, atom: Atom, known: Mapping[str, Inner]) -> Fact:
    """The literal as a fact; what nothing binds is a value of its column's type that no rule names."""
    decl = policy.decls.get(atom.key)
    bounds = decl.bounds[0] if decl is not None and decl.bounds else ()
    row: list[Value] = []
    for at, arg in enumerate(atom.args):
        kind = bounds[at].kind if at < len(bounds) else "any"
        if at == 0 and atom.pred not in OF_RUN:
            row.append(ACTION)
        elif isinstance(arg, Const):
            row.append(decode(arg.value))
        elif isinstance(arg, Var) and arg.name in known:
            row.append(decode(known[arg.name]))
        else:
            row.append(OTHER.get(kind, Name("/other")))
    return atom.pred, tuple(row)
