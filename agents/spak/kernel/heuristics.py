"""HEURISTIC: which one a failed task injects into the next prompt. Takes a Turn; commits what is injected.

`WHEN` names a trigger or a code of the failure; context.py puts the text of those that fired into the prompt.
One with `WHEN budget_low` answers no failure: it is injected once when little is left of the tokens.
"""

from __future__ import annotations

from spak.kernel import budget
from spak.kernel.turn import Turn
from spak.records import Kind


def inject(turn: Turn) -> None:
    """The next heuristic in order, one per consecutive fail. Source: seed 000 section 3.2."""
    due = turn.state.r7.due
    if due:
        _first(turn, due, ("", *due))
        turn.executive(due=())
    if budget.PROMPT in turn.state.r7.low_due:
        _first(turn, (budget.LOW,), (budget.LOW,))
        turn.state = budget.taken(turn.state, budget.PROMPT)


def _first(turn: Turn, on: tuple[str, ...], answers: tuple[str, ...]) -> None:
    """Inject the first that has not fired and whose WHEN is one of these."""
    fired = turn.state.r7.fired
    for index, heuristic in enumerate(turn.rules.program.heuristics):
        if index not in fired and heuristic.when in answers:
            turn.commit(Kind.INJECT, {"heuristic": index + 1, "on": list(on)})
            turn.executive(fired=(*fired, index))
            return
