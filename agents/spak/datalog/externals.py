"""External predicates: rows that the world holds, asked for by what a rule binds.

`Decl p(X, Y) descr [external(), mode("+", "-")].` says that whoever knows X can be told Y. For every literal
of such a predicate a rule is made here that derives what has to be asked: its body is everything of the rule
that can be judged before, its head the inputs. The engine only ever sees rows; who answers, and from where,
is not its business.

A question of which the need rests on a negation or a grouping of other answers has a higher level, and is
held back until all questions below it are answered: so no question is asked that a later answer would undo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spak.datalog.errors import PolicyError
from spak.datalog.folds import folds_of
from spak.datalog.intervals import written
from spak.datalog.plan import Key, prepare, sequence, variables
from spak.datalog.strata import edges, tarjan
from spak.datalog.syntax import Atom, Clause, Decl, Finding, Literal_, Part, Term, Wild
from spak.datalog.values import Row, Value, decode, encode, from_json, order, show, to_json

Mode = tuple[int, ...]
"""The places of a mode's inputs."""
Externals = Mapping[Key, tuple[Mode, ...]]


@dataclass(frozen=True, slots=True)
class Request:
    """One question: the inputs are values, None stands for what is wanted."""

    pred: str
    args: tuple[Value | None, ...]

    @property
    def key(self) -> Key:
        """The predicate and its number of arguments."""
        return (self.pred, len(self.args))

    @property
    def mode(self) -> Mode:
        """The places whose values are given."""
        return tuple(place for place, arg in enumerate(self.args) if arg is not None)

    def __str__(self) -> str:
        return written(self.pred, ["_" if arg is None else show(encode(arg)) for arg in self.args])

    def to_json(self) -> list[Any]:
        """`[predicate, [value or null for what is asked]]`."""
        return [self.pred, [None if arg is None else to_json(encode(arg)) for arg in self.args]]

    @classmethod
    def from_json(cls, data: Any) -> Request:
        """What `to_json` gave. Raises: PolicyError `policy.external`."""
        if not (isinstance(data, list) and len(data) == 2 and isinstance(data[0], str)):
            raise PolicyError("policy.external", "no question: [predicate, [value or null, ...]] is wanted")
        if not isinstance(data[1], list):
            raise PolicyError("policy.external", "the arguments of a question are a list")
        return cls(data[0], tuple(None if arg is None else decode(from_json(arg)) for arg in data[1]))


Answers = Callable[[list[Request]], Sequence[Iterable[tuple[Value, ...]]]]
"""Whoever knows the world: the rows of each question, in their order."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a derived predicate of questions asks: the external predicate, the mode, the level."""

    key: Key
    mode: Mode
    level: int

    def request(self, row: Row) -> Request:
        """The request for one row of given values, in the order of `mode`."""
        args: list[Value | None] = [None] * self.key[1]
        for place, value in zip(self.mode, row, strict=True):
            args[place] = decode(value)
        return Request(self.key[0], tuple(args))

    def order(self, row: Row) -> tuple[Any, ...]:
        """What requests are sorted by, the same in every process."""
        return (self.key, self.mode, tuple(order(value) for value in row))


def externals_of(decls: Iterable[Decl]) -> dict[Key, tuple[Mode, ...]]:
    """The modes of each external predicate, as they were declared; folds that are asked by a key are such."""
    decls = tuple(decls)
    asked = {key: (fold.mode,) for key, fold in folds_of(decls).items() if fold.mode is not None}
    return asked | {
        decl.atom.key: tuple(
            tuple(place for place, sign in enumerate(mode) if sign == "+") for mode in decl.modes
        )
        for decl in decls
        if decl.external
    }


def check_external(decl: Decl) -> list[Finding]:
    """What is wrong with the modes of a declaration."""
    found = []
    for mode in decl.modes:
        if len(mode) != len(decl.names) or not set(mode) <= {"+", "-", "?"}:
            message = f'a mode of {decl.atom.pred} has {len(decl.names)} of "+" and "-"'
            found.append(Finding("policy.mode", "error", message, decl.place))
    if decl.external and not decl.modes:
        hint = 'such as mode("+", "-"): the columns that are known, and those that are told'
        found.append(Finding("policy.mode", "error", "an external predicate needs a mode", decl.place, hint))
    return found


def arrange(clause: Clause, externals: Externals) -> tuple[list[tuple[list[Part], Part, Mode]], Part | None]:
    """For each external literal what is judged before it and the mode that fits; and one that nothing fits.

    All else comes before: a question is asked only where the rest of the rule already holds.
    """
    left = list(clause.body)
    done: list[Part] = []
    found: list[tuple[list[Part], Part, Mode]] = []
    while left:
        pick = next((part for part in left if _key(part) not in externals and _fits([*done, part])), None)
        if pick is None:
            bound = _bound(done)
            for part in left:
                mode = next(
                    (mode for mode in externals.get(_key(part), ()) if _given(part, mode, bound)), None
                )
                if mode is not None and _fits([*done, part]):
                    found.append((list(done), part, mode))
                    pick = part
                    break
        if pick is None:
            return found, next((part for part in left if _key(part) in externals), None)
        left.remove(pick)
        done.append(pick)
    return found, None


def asking(clauses: Iterable[Clause], externals: Externals) -> tuple[list[Clause], dict[Key, Ask]]:
    """The rules that derive questions, and what each of their predicates asks."""
    rules = [clause for clause in clauses if clause.body]
    levels = _levels(rules, externals)
    made: list[Clause] = []
    asks: dict[Key, Ask] = {}
    for rule in rules:
        for before, part, mode in arrange(rule, externals)[0]:
            assert isinstance(part, Literal_)
            key = part.atom.key
            level = max((0, *(_above(item, levels, False) for item in before)))
            signs = "".join("+" if place in mode else "-" for place in range(key[1]))
            inputs: tuple[Term, ...] = tuple(part.atom.args[place] for place in mode)
            head = Atom(f"?{level}{signs}{key[0]}", inputs, part.atom.place)
            asks[head.key] = Ask(key, mode, level)
            made.append(Clause(head, tuple(before) or (_TRUE,), None, part.atom.place))
    return made, asks


_TRUE = Literal_(Atom("?true", ()))
TRUE: tuple[Key, Row] = (("?true", 0), ())
"""The fact on which a question rests that nothing has to be known for."""


def _key(part: Part) -> Key:
    return part.atom.key if isinstance(part, Literal_) else ("", 0)


def _fits(parts: list[Part]) -> bool:
    body = prepare(Clause(Atom("", ()), tuple(parts)))
    return not sequence(body.items, set())[1]


def _bound(parts: list[Part]) -> set[str]:
    body = prepare(Clause(Atom("", ()), tuple(parts)))
    done, _ = sequence(body.items, set())
    return {name for item in done if item.kind != "neg" for arg in item.args for name in variables(arg)}


def _given(part: Part, mode: Mode, bound: set[str]) -> bool:
    assert isinstance(part, Literal_)
    args = [part.atom.args[place] for place in mode]
    return not any(isinstance(arg, Wild) or not set(variables(arg)) <= bound for arg in args)


def _levels(rules: list[Clause], externals: Externals) -> dict[Key, int]:
    """How many negations or groupings lie between a predicate and the answers it rests on; -1 for none."""
    levels: dict[Key, int] = dict.fromkeys(externals, 0)
    below = edges(prepare(rule) for rule in rules)
    heads: dict[Key, list[Clause]] = {}
    for rule in rules:
        heads.setdefault(rule.head.key, []).append(rule)
    for group in tarjan(below, ()):
        for _ in group:  # in a component there is no negation, so that one round for each member is enough
            for key in group:
                for rule in heads.get(key, ()):
                    grouped = rule.transform is not None
                    found = max((_above(part, levels, grouped) for part in rule.body), default=-1)
                    levels[key] = max(levels.get(key, -1), found)
    return levels


def _above(part: Part, levels: Mapping[Key, int], grouped: bool) -> int:
    level = levels.get(_key(part), -1)
    negated = isinstance(part, Literal_) and part.negated
    return level + 1 if level >= 0 and (grouped or negated) else level
