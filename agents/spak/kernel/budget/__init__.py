"""Budgets: what a run may use up, what it has used, and when it hears that little is left.

Takes the rules and the state; gives numbers, or the code and the knob of a budget that is used up. What a run
may use is what BUDGET says and what extensions added (extend.py). It spends nothing itself:
`Turn.spend` counts what was recorded.

`budget_low` is a signal and not a verdict: it falls due once when R2 passes `low_percent` of the budget of
tokens. An edge of NEXT takes it at the end of a task, a heuristic in the next prompt, each of them once.
Pure functions. Source: seed 001 (R2; "no signal before truncation").
"""

from __future__ import annotations

from spak.kernel.rules import Rules
from spak.kernel.state import State, change
from spak.program import Budgets

LOW = "budget_low"
"""The trigger that is given once little is left of the tokens."""

EDGE, PROMPT = "edge", "prompt"
"""Where `budget_low` is still to be taken: by an edge of NEXT, by a heuristic."""


EXTENSIBLE = ("steps", "elapsed_ms", "tokens", "cost")
"""The budgets that can be extended while a run is under way."""


def allowed(rules: Rules, state: State) -> Budgets:
    """The budgets as they are now."""
    return rules.program.budgets.extended(state.r7.extended)


def spent(state: State) -> dict[str, int]:
    """What was used of each budget that can be extended; money rounded up to whole micro-dollars."""
    cost = -(-state.r7.cost // 1000)
    return dict(zip(EXTENSIBLE, (state.r1.steps, state.r1.elapsed_ms, state.r2, cost), strict=True))


def exhausted(rules: Rules, state: State) -> tuple[str, str] | None:
    """The code and the knob of a budget that is used up, if any is."""
    budgets = allowed(rules, state)
    if budgets.steps and state.r1.steps >= budgets.steps:
        return "budget.steps", f"BUDGET {{ steps: {budgets.steps * 2} }}"
    if budgets.elapsed_ms and state.r1.elapsed_ms >= budgets.elapsed_ms:
        return "budget.elapsed", f"BUDGET {{ elapsed_s: {budgets.elapsed_ms * 2 // 1000} }}"
    if budgets.tokens and state.r2 >= budgets.tokens:
        return "budget.tokens", f"BUDGET {{ tokens: {budgets.tokens * 2} }}"
    return unaffordable(rules, state, 0)


def unaffordable(rules: Rules, state: State, bound: int) -> tuple[str, str] | None:
    """The same of money, with so many nano-dollars more; what is used up to the last is used up."""
    cost = allowed(rules, state).cost
    after = state.r7.cost + max(bound, 1)
    return ("budget.cost", f"BUDGET {{ cost: {cost * 2} }}") if cost and after > cost * 1000 else None


def noticed(rules: Rules, state: State) -> State:
    """The state after tokens were counted: `budget_low` is due where they have just passed the threshold."""
    budgets, r7 = allowed(rules, state), state.r7
    low = bool(budgets.tokens) and state.r2 * 100 >= budgets.tokens * budgets.low_percent
    if low == r7.low:
        return state
    return change(state, r7=change(r7, low=low, low_due=(EDGE, PROMPT) if low else ()))


def taken(state: State, where: str) -> State:
    """The state once `budget_low` was taken there."""
    left = tuple(name for name in state.r7.low_due if name != where)
    return change(state, r7=change(state.r7, low_due=left))
