"""`step(rules, state, proposal) -> (state, commits, effects)`: the kernel's one function.

Pure and total: no clock, no randomness, no outside; a proposal that nobody awaits, or that is malformed,
never raises. Live run and replay feed the same function. The order is seed 000's cognitive loop:

    inject    a heuristic after a fail, before a proposer or a model is asked (permit.py)
    plan      candidates are asked for; `select` takes one (answer.py)
    permit    the policy's decision (gate.py), before the effect exists; what it has to know of the world is
              observed first (permit.py)
    act       the runner does it and brings back a proposal (answer.py)
    observe   the task's validator measures (measure.py)
    refine    the signal is derived and routed along the task's edges (route.py)

At most one effect is pending at a time (R6). A proposal is awaited when its `of` names that effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.kernel import budget, permit, route
from spak.kernel.answer import answer, settle
from spak.kernel.budget import extend
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.kernel.turn import CallTool, EnterStep, EnterTask, Move, Stepped, Turn
from spak.records import Authority, Kind, Record


def step(rules: Rules, state: State, proposal: Record) -> Stepped:
    """The next state, the commits that led to it, and what to do now (at most one effect)."""
    turn = Turn(rules, state, proposal.at, proposal.seq)
    body = proposal.body
    if not isinstance(body, Mapping) or proposal.authority != Authority.PROPOSAL or state.ended:
        return turn.done()
    if state.status == "new":
        if proposal.kind == Kind.GENESIS:
            _follow(turn, _begin(turn, body))
    elif proposal.kind == Kind.CONTROL:
        if body.get("cancel") is True:
            turn.end("cancelled", "run.cancelled")
        elif "extend" in body:
            extend.asked(turn, body["extend"])
    elif expects(state, proposal):
        turn.spend(proposal.side)
        turn.state = budget.noticed(rules, turn.state)
        settle(turn, proposal)
        _follow(turn, answer(turn, proposal.kind, body))
    return turn.done()


def expects(state: State, proposal: Record) -> bool:
    """Whether a proposal answers the pending effect, in the kind that such an effect is answered with."""
    pending = state.r6
    if pending is None or not isinstance(proposal.body, Mapping):
        return False
    of = proposal.body.get("of")
    if pending.act == "approve" and proposal.kind == Kind.APPROVAL:
        return of == pending.id or any(of == permit for permit, _ in state.r7.put_off)
    if of != pending.id:
        return False
    if proposal.kind == Kind.PLAN:
        return pending.act == "plan"
    if proposal.kind == Kind.OBSERVE and pending.act in ("ask", "plan"):
        return pending.cls == "ask" and not pending.counted
    if pending.act == "observe":
        return proposal.kind == Kind.OBSERVE
    return proposal.kind == Kind.ACT and pending.act != "approve"


def _begin(turn: Turn, genesis: Mapping[str, Any]) -> Move:
    """The first record: the run has its own id, its files and the summary of nothing."""
    host = genesis.get("host")
    run = host.get("run") if isinstance(host, Mapping) else ""
    turn.set(status="running", run=run if isinstance(run, str) else "", r3=turn.rules.r3)
    turn.executive(summary=turn.rules.opening)
    return EnterTask(turn.rules.program.start)


def _follow(turn: Turn, move: Move) -> None:
    """Make moves until an effect is pending or the run ended; budgets and `route.UNATTENDED` bound them."""
    while move is not None:
        if isinstance(move, EnterStep):
            move = permit.enter_step(turn, move.task, move.step)
        elif isinstance(move, EnterTask):
            move = permit.enter_task(turn, move.name)
        elif isinstance(move, CallTool):
            move = permit.enter_tool(turn, *move)
        else:
            move = route.misfit(turn, move)
