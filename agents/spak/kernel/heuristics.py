"""HEURISTIC: which one a failed task injects into the next prompt. Takes a Turn; commits what is injected.

`WHEN` names a trigger or a code of the failure; context.py puts the text of those that fired into the prompt.
"""

from __future__ import annotations

from spak.kernel.turn import Turn
from spak.records import Kind


def inject(turn: Turn) -> None:
    """The next heuristic in order, one per consecutive fail. Source: seed 000 section 3.2."""
    r7 = turn.state.r7
    if not r7.due:
        return
    for index, heuristic in enumerate(turn.rules.program.heuristics):
        if index not in r7.fired and (not heuristic.when or heuristic.when in r7.due):
            turn.commit(Kind.INJECT, {"heuristic": index + 1, "on": list(r7.due)})
            turn.executive(fired=(*r7.fired, index))
            break
    turn.executive(due=())
