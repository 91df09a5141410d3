"""The derived executive: the law says where the verdict of a task leads (`NEXT BY next_action`).

Takes the rules, the state and the signal that a task ended with; gives the names that `next_action` has, and
what they were derived from, so that `spak show --proof` tells why. The kernel takes the one edge that is
derived; it never chooses between two. What a law would have to look up in the world has no rows here: a move
rests on what the run itself recorded. `prove` shows before a run that every circle of moves ends.
Source: seed 004 section 3.2 (state transitions), DESIGN.md section 16.
"""

from __future__ import annotations

from typing import NamedTuple

from spak.datalog import Session
from spak.datalog.values import Fact, Name
from spak.errors import UserError
from spak.kernel import situation
from spak.kernel.gate import ROUTE, Judged
from spak.kernel.rules import Rules
from spak.kernel.state import State, change

FAILING = ("fail", "timeout")
SURRENDER = "/escalate_to_user"
"""The move by which a law gives up (seed 004, 3.2): what fails after it ends the run as refused."""


class Derived(NamedTuple):
    """What the law says of the next move."""

    actions: tuple[str, ...]
    """Names with their slash, in order."""
    judged: Judged
    trouble: str = ""
    """Why nothing could be derived, where the engine gave up."""


def derive(rules: Rules, state: State, signal: str) -> Derived:
    """The moves that follow from the end of the present task with this signal."""
    ended: Fact = ("ended", (state.r0.task, Name("/" + signal)))
    known = (ended, *situation.moves(state), *situation.found(rules, state))
    judged = Judged(True, "", "", known, goal=ROUTE)
    try:
        return Derived(actions(rules.gate.policy.session(known)), judged)
    except UserError as error:
        return Derived((), judged, error.message)


def actions(session: Session) -> tuple[str, ...]:
    """What `next_action` has in a session that nobody answers. Raises: PolicyError, PolicyLimit."""
    while asked := session.requests():
        for request in asked:
            session.supply(request, ())
    return tuple(sorted(str(action) for (action,) in session.query(ROUTE, None)))


def moved(state: State, action: str, signal: str) -> State:
    """The state once the run makes that move; a move after a failure is counted."""
    _, retries = state.r7.moves
    return change(state, r7=change(state.r7, moves=(action, retries + (signal in FAILING))))
