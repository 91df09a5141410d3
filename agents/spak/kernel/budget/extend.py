"""Extensions of a budget while the run is under way: what AEP calls YIELD.

A person asks by a proposal, `control {extend: {budget, by}}`; the law asks by rows of
`extension(Budget, By)`, which is looked at before each step. Takes a Turn; commits the decision, of kind
`extend`. For both of them:

- a budget that is used up is not extended, and one without a limit has nothing to extend;
- all extensions of a budget in a run add no more to it than `extend_percent` of BUDGET;
- the law refuses any of them by `no_extension(Budget)`, which every level of it may state.

A spec has no other way to more than its BUDGET, and nothing that a model says is read here.
Source: seed 001 and the public AEP (YIELD), with the cap that its kernel does not keep; ADR 0132.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from spak import canon
from spak.datalog.session import Session
from spak.datalog.values import Fact, Name
from spak.errors import UserError
from spak.kernel import budget, situation
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.kernel.turn import Turn
from spak.records import Kind

GRANTS, REFUSES = "extension", "no_extension"
"""The predicates of the law: what it extends by itself, and what nobody extends."""


class Refusal(NamedTuple):
    """Why an extension is not granted, and what would let it be."""

    code: str
    message: str
    knob: str = ""


def refusal(rules: Rules, state: State, asked: Any) -> Refusal | None:
    """Why a person's extension `{budget, by}` would not be granted now; None where it would."""
    name, by = _asked(asked)
    if name not in budget.EXTENSIBLE:
        known = ", ".join(budget.EXTENSIBLE)
        return Refusal("budget.extension", f"there is no budget {name!r} to extend", f"one of {known}")
    if by <= 0:
        return Refusal("budget.extension", "an extension is a whole number above 0", f"{name}=50")
    found = _out_of_reach(rules, state, name, by)
    if found is None and name in _rows(_session(rules, state), REFUSES):
        return Refusal("budget.not_extended", f"the law extends no budget of {name}: {REFUSES}(/{name})")
    return found


def asked(turn: Turn, wanted: Any) -> None:
    """Decide on a person's extension: it is granted whole or not at all."""
    name, by = _asked(wanted)
    found = refusal(turn.rules, turn.state, wanted)
    if found is None:
        _grant(turn, name, by)
        return
    body = {"allow": False, "budget": name, "by": by, "code": found.code}
    turn.commit(Kind.EXTEND, {**body, "knob": found.knob} if found.knob else body)


def by_law(turn: Turn) -> None:
    """Grant what the law asks for, as far as the cap reaches; of several rows of a budget the largest."""
    rules = turn.rules
    if not rules.program.budgets.extend_percent or not _asks(rules):
        return
    session = _session(rules, turn.state)
    refused = _rows(session, REFUSES)
    for name, wanted in sorted(_rows(session, GRANTS).items()):
        by = min(wanted, left(rules, turn.state, name)) if name in budget.EXTENSIBLE else 0
        if by > 0 and name not in refused and _out_of_reach(rules, turn.state, name, by) is None:
            _grant(turn, name, by, law=True)


def left(rules: Rules, state: State, name: str) -> int:
    """How much extensions may still add to a budget in this run."""
    budgets = rules.program.budgets
    base = int(getattr(budgets, name))
    cap = min(base * budgets.extend_percent // 100, canon.MAX_INT - base)
    return max(cap - state.r7.extended.get(name, 0), 0)


def _asked(wanted: Any) -> tuple[str, int]:
    """The budget and the number of a proposal; what makes no sense in it is empty."""
    given = wanted if isinstance(wanted, Mapping) else {}
    name, by = given.get("budget"), given.get("by")
    return (name if name in budget.EXTENSIBLE else str(name)[:40]), by if type(by) is int else 0


def _out_of_reach(rules: Rules, state: State, name: str, by: int) -> Refusal | None:
    limit = int(getattr(budget.allowed(rules, state), name))
    if not limit:
        return Refusal("budget.extension", f"the run has no limit of {name}")
    if state.ended or budget.spent(state)[name] >= limit:
        return Refusal(
            "budget.used_up", f"the budget of {name} is used up: {limit}", "an extension before that"
        )
    room = left(rules, state, name)
    if by > room:
        percent = rules.program.budgets.extend_percent
        total = state.r7.extended.get(name, 0) + by
        base = int(getattr(rules.program.budgets, name))
        message = f"{by} more of {name} is above what may still be added: {room} (extend_percent {percent})"
        return Refusal("budget.cap", message, f"BUDGET {{ extend_percent: {-(-100 * total // base)} }}")
    return None


def _grant(turn: Turn, name: str, by: int, law: bool = False) -> None:
    r7 = turn.state.r7
    turn.executive(extended={**r7.extended, name: r7.extended.get(name, 0) + by})
    limit = int(getattr(budget.allowed(turn.rules, turn.state), name))
    body = {"allow": True, "budget": name, "by": by, "limit": limit}
    turn.commit(Kind.EXTEND, {**body, "law": True} if law else body)
    turn.state = budget.noticed(turn.rules, turn.state)


def _asks(rules: Rules) -> bool:
    return any(clause.head.key == (GRANTS, 2) for clause in rules.gate.policy.clauses)


def _session(rules: Rules, state: State) -> Session | None:
    """What the law says of the run as it is now; None where its engine gives up, which grants nothing."""
    limits = budget.allowed(rules, state)
    known: list[Fact] = [
        ("in_task", (state.r0.task,)),
        *situation.moves(state),
        *situation.found(rules, state),
    ]
    for name, used in budget.spent(state).items():
        known.append(("spent", (Name(f"/{name}"), used)))
        if most := int(getattr(limits, name)):
            known.append(("allowance", (Name(f"/{name}"), most)))
    try:
        session = rules.gate.policy.session(known)
        while open_ := session.requests():
            for request in open_:
                session.supply(request, ())
        session.query(GRANTS, None, None)
    except UserError:
        return None
    return session


def _rows(session: Session | None, predicate: str) -> dict[str, int]:
    """The rows of one of the two predicates, the largest number of each budget; a law that cannot be
    evaluated refuses every budget."""
    if session is None:
        return dict.fromkeys(budget.EXTENSIBLE, 0) if predicate == REFUSES else {}
    found: dict[str, int] = {}
    rows = session.query(predicate, *([None] * (2 if predicate == GRANTS else 1)))
    for name, *by in rows:
        number = by[0] if by and type(by[0]) is int else 0
        key = str(name).removeprefix("/")
        found[key] = max(found.get(key, 0), number)
    return found
