"""Answer: what the proposal that answers the pending effect means.

Takes a Turn whose state has the effect pending, the proposal's kind and its body, which is JSON of any shape;
changes the registers and gives the Move. Nothing in a body raises: what cannot be read is a misfit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from spak import canon
from spak.costs import cost_of
from spak.datalog.values import Fact
from spak.errors import UserError
from spak.kernel import fit, measure, outcomes, permit, recollect, render, route
from spak.kernel.gate import ProposedAction, uses_of
from spak.kernel.observed import Malformed
from spak.kernel.rules import Rules
from spak.kernel.state import Effect, Watchdog
from spak.kernel.turn import CallTool, EnterStep, Misfit, Move, Turn
from spak.policy.facts import is_reference
from spak.policy.history import state as past
from spak.policy.history.deciding import results
from spak.policy.history.state import Fed, History
from spak.program import Poll, Step, Task
from spak.records import Kind, Record

CODE = re.compile(r"[a-z][a-z_]{0,39}\.[a-z][a-z_]{0,39}")
"""What a search may name as the code of its refusal."""


def settle(turn: Turn, proposal: Record) -> None:
    """Tell the folds of the policy that the pending call ended, and what it answered."""
    pending, gate = turn.state.r6, turn.rules.gate
    if gate.folds and pending is not None:
        turn.executive(history=answered(turn.rules, turn.state.r7.history, pending, proposal))


def answered(rules: Rules, history: History, pending: Effect, proposal: Record) -> History:
    """The history after a proposal that answers a pending call.

    An action that was rolled back or never done did not happen; whatever else came of it did. A look at the
    world, an approval, a prompt that was counted and sealed checks end no call.
    """
    gate = rules.gate
    if proposal.kind == Kind.OBSERVE:
        return history
    if pending.act == "observe" or pending.act == "approve" or pending.act == "sealed":
        return history
    done = pending.act != "tool" or proposal.body.get("outcome") == "exited"
    fed: Fed = ()
    try:
        if done:
            uses = uses_of(rules.catalog, pending.act, pending.name)
            proposed = ProposedAction(pending.act, pending.name, pending.args, uses=uses)
            fed = gate.feeds(proposed, pending.observed, _results(proposal.body, proposal.side))
    except (UserError, Malformed):
        history = past.lost(gate.folds, history, proposal.seq)
    call = str(pending.attempt)
    return past.settled(gate.folds, history, call, proposal.at, done=done, record=proposal.seq, fed=fed)


def _results(body: Mapping[str, Any], side: Mapping[str, Any]) -> list[Fact]:
    """What an answer says, as facts: how it ended, and what it took."""
    found: dict[str, Any] = {}
    for name in ("exit", "outcome", "signal", "key"):
        value = body.get(name)
        if isinstance(value, str) or type(value) is int:
            found[name] = value
    out = body.get("out")
    if isinstance(out, str):
        found["out"] = out
    cost = cost_of(side)
    found |= {"ms": fit.count(side, "ms"), "tokens": cost.tokens, "cost": -(-cost.nanousd // 1000)}
    return results(found)


def answer(turn: Turn, kind: str, body: Mapping[str, Any]) -> Move:
    """What the answer to the pending effect leads to."""
    pending = turn.state.r6
    assert pending is not None
    task = turn.task
    step = task.steps[task.places[pending.step]]
    if pending.act == "observe":
        return permit.observed(turn, task, step, pending, body)
    if pending.act == "approve":
        return permit.approved(turn, task, step, pending, body)
    if kind == Kind.OBSERVE:
        permit.counted(turn, task, step, pending, body)
        return None
    if pending.act == "plan":
        turn.recollect(recollect.sent)
    dog = turn.state.r1
    turn.set(r1=Watchdog(dog.elapsed_ms, dog.steps + 1, dog.window))
    if kind == Kind.PLAN:
        return _planned(turn, task, step, body)
    if pending.act == "tool":
        return _acted(turn, task, step, pending, body)
    if pending.act == "validate":
        return measure.measured(turn, task, step, pending, body)
    if pending.act == "sealed":
        measure.sealed(turn, body)
        return None
    if pending.act == "check":
        return measure.checked(turn, task, step, body)
    return _answered(turn, task, step, pending, body)


def _planned(turn: Turn, task: Task, step: Step, body: Mapping[str, Any]) -> Move:
    """Select: the valid candidate with the highest score, the lowest index among equals."""
    candidates = body.get("candidates")
    listed = candidates if isinstance(candidates, list) else []
    if not listed:
        return _no_candidates(turn, task, body)
    judged = [fit.misfit(turn.rules, task, candidate) for candidate in listed]
    valid = [index for index, found in enumerate(judged) if not found]
    rejected = [found[0]["code"] for found in judged if found]
    select: dict[str, Any] = {"n": len(listed)}
    if rejected:
        select["rejected"] = rejected
    if not valid:
        turn.commit(Kind.SELECT, {**select, "i": -1})
        tool = listed[0].get("tool") if isinstance(listed[0], Mapping) else None
        return Misfit(task, step, tool if isinstance(tool, str) else "", judged[0])
    index = max(valid, key=lambda i: (fit.score(listed[i]), -i))
    chosen = listed[index]
    args = dict(chosen.get("args", {}))
    turn.commit(Kind.SELECT, {**select, "i": index, "choice": canon.content_hash([chosen["tool"], args])})
    params = args.get("params")
    turn.executive(params=params if isinstance(params, Mapping) else {})
    return CallTool(task, step, chosen["tool"], args)


def _no_candidates(turn: Turn, task: Task, body: Mapping[str, Any]) -> Move:
    """Nothing proposed: a metric loop has searched its space; a search that says why goes along the task's
    edge for `fail`, or ends the run as refused; anything else cannot go on."""
    refusal = body.get("refusal")
    code = refusal.get("code") if isinstance(refusal, Mapping) else None
    if isinstance(code, str) and CODE.fullmatch(code):
        if "fail" in task.edges or task.derived:
            return route.finish_task(turn, "fail", code)
        turn.refuse(code, f"NEXT {{ fail -> ... }} in TASK {task.name}")
        return None
    if task.rule is not None and ("plateau" in task.edges or task.derived):
        turn.executive(stopped="space")
        return route.finish_task(turn, "plateau", "run.no_candidates")
    turn.refuse("run.no_candidates", f"a PROPOSER or a model that answers TASK {task.name}")
    return None


def _answered(turn: Turn, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> Move:
    """An answer to `llm.query`, or to a plan that nobody could read as a plan."""
    if body.get("outcome") != "answered" or pending.act == "plan":
        return Misfit(task, step, route.UNREADABLE, [fit.unanswered(body)])
    turn.recollect(recollect.answered, pending, body)
    value = body.get("out", "")
    _keep_output(turn, step, value)
    turn.set(r4=None)
    result = {"signal": "success"}
    if route.looped(turn, pending, result, canon.content_hash(value), quiet=True):
        return None
    return route.next_step(turn, task, step, result)


def _acted(turn: Turn, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> Move:
    """What a tool did: rolled back, or committed with its files, its output and its exit."""
    exit_code = body.get("exit", 0)
    if body.get("outcome") != "exited" or type(exit_code) is not int:
        return _rolled_back(turn, task, step, pending, body)
    writes = pending.cls == "effect"
    root = body.get("r3") if writes else None
    result: dict[str, Any] = {"signal": "success" if exit_code == 0 else "fail"}
    if writes:
        result["txn"] = "commit"
    invariant, facts = task.invariant, fit.booleans(body.get("facts"))
    kept = invariant is None or render.holds(invariant, facts, turn.rules, turn.state)
    if kept is not True:
        _broken_invariant(turn, task, step, kept, writes)
        return None
    if isinstance(root, str):
        result["r3"] = root
        if root != turn.state.r3:
            turn.executive(diagnostics=(), checks=())
            turn.set(r3=root)
    entry = turn.rules.catalog.tool(pending.name)
    if entry is not None and entry.sandboxed:  # what others say is about their call and not about the files
        measure.keep_diagnostics(turn, body)
    key = body.get("key")
    result["key"] = key if isinstance(key, str) else ""
    _keep_output(turn, step, body.get("out", ""))
    turn.recollect(recollect.acted, pending, body)
    if f"exit_code.{step.id}" in turn.rules.wanted:
        turn.bind(f"exit_code.{step.id}", exit_code)
    if turn.state.r7.rollbacks[1]:
        turn.executive(rollbacks=("", 0))
    if step.poll is not None and exit_code != 0 and _polled(turn, step, step.poll, result):
        return EnterStep(task, step)
    if route.watched(turn, pending, result):
        return None
    if turn.state.r7.polls:
        turn.executive(polls=0)
    if exit_code == 0:
        if turn.state.r4 is not None:
            turn.set(r4=None)
        return route.next_step(turn, task, step, result)
    return _failed(turn, task, step, pending, body, result, exit_code)


def _failed(
    turn: Turn,
    task: Task,
    step: Step,
    pending: Effect,
    body: Mapping[str, Any],
    result: Mapping[str, Any],
    exit_code: int,
) -> Move:
    """A committed result whose exit is not 0: R4 says why, and the route follows from the step."""
    place = f"{pending.name} in step {step.id}"
    error = fit.exit_r4(exit_code, place, body)
    if step.poll is not None:
        error = {**error, "code": route.POLL_LIMIT, "expected": f"exit 0 within {step.poll.limit} polls"}
    turn.set(r4=error)
    code = route.POLL_LIMIT if step.poll is not None else "tool.exit"
    return route.failed_tool(turn, task, step, result, code)


def _polled(turn: Turn, step: Step, poll: Poll, result: Mapping[str, Any]) -> bool:
    """Whether a step that did not end with exit 0 is taken again; False when its polls are used up.

    The runner waits before it does the next one: `step` only says when that one is due.
    """
    polls = turn.state.r7.polls + 1
    if polls >= poll.limit:
        return False
    turn.executive(polls=polls)
    turn.set(r4=None)
    turn.commit(Kind.ROUTE, {**result, "poll": polls, "to": step.id})
    return True


def _broken_invariant(
    turn: Turn, task: Task, step: Step, found: render.NotANumber | Literal[False], writes: bool
) -> None:
    """End the run with its last tool undone; an invariant that has no answer does not hold."""
    result: dict[str, Any] = {"signal": "fail", "code": "run.invariant"}
    if isinstance(found, render.NotANumber):
        error = fit.not_a_number(found)
        turn.set(r4=error)
        result |= {"code": error["code"], "r4": error}
    if writes:
        result["txn"] = "rollback"
    turn.commit(Kind.ROUTE, result)
    turn.end("failed", result["code"], f"fix step {step.id} or the invariant of TASK {task.name}")


def _rolled_back(turn: Turn, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> Move:
    """An effect that was undone, because its tool did not end by itself."""
    outcome, code = outcomes.rolled_back(body)
    result = {"signal": "timeout" if outcome == "timeout" else "fail", "code": code}
    if pending.cls == "effect":
        result["txn"] = "rollback"
    if turn.state.r7.polls:
        turn.executive(polls=0)
    hint = f"{pending.name} in step {step.id}: see the record"
    error = outcomes.rollback_r4(outcome, code, hint, body.get("why"))
    if code == outcomes.CHANGES and not permit.comes_of_an_answer(task, step):
        turn.set(r4=error)
        turn.commit(Kind.ROUTE, result)
        turn.refuse(
            code, f"step {step.id} of TASK {task.name}", {"name": pending.name, "reason": error["received"]}
        )
        return None
    return route.roll_back(turn, task, step, pending.name, error, result)


def _keep_output(turn: Turn, step: Step, value: Any) -> None:
    """Bind what a step gave to the variables that hold it."""
    kept = value if isinstance(value, str) or is_reference(value) else ""
    if "last_tool_output" in turn.rules.wanted and step.kind != "ask":
        turn.bind("last_tool_output", kept)
    for name in (step.output_var, step.metric):
        if name:
            turn.bind(name, kept)
