"""Route: where the run goes after a result, or how it ends.

Takes a Turn and what a result meant; commits the route and gives the Move that follows: the next step, a
proposer who may try again, the task that an edge of NEXT names. Results in a loop and rollbacks in a row end
the run here. Source: seed 000 section 3.2 (refine), seed 001 (R1, R4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spak import canon
from spak.kernel import budget, executive, fit, watchdog
from spak.kernel.state import Effect
from spak.kernel.turn import EnterStep, EnterTask, Misfit, Move, Turn
from spak.program import Step, Task
from spak.records import Kind

UNREADABLE = "answer"
"""What answers are counted under that nobody could read."""

SEALED: Final = "sealed"
"""The act that asks the sealed checks."""

POLL_LIMIT = "run.poll_limit"

LISTED = 8
"""Derived actions that are named where there should be one."""

UNATTENDED = 8
"""Misfits in a row, in whatever tasks, with no effect between them: nothing is left that could mend them."""


def next_step(turn: Turn, task: Task, step: Step, route: Mapping[str, Any]) -> Move:
    """To the next step of the task, or, after its last one, along its edge for `success`."""
    index = task.places[step.id]
    if index + 1 < len(task.steps):
        following = task.steps[index + 1]
        turn.commit(Kind.ROUTE, {**route, "to": following.id})
        return EnterStep(task, following)
    return finish_task(turn, "success", "", route)


def finish_task(turn: Turn, signal: str, code: str, route: Mapping[str, Any] | None = None) -> Move:
    """Refine: the signal goes along the task's edge, or the run ends; a task with an edge for `budget_low`
    takes that one instead when it is due, which costs no retry. Source: seed 000 section 3.2."""
    task = turn.task
    failing = signal in executive.FAILING
    body = {**(route or {}), "signal": signal}
    if code:
        body.setdefault("code", code)
    if task.derived:
        target, refused = _derived(turn, task, signal, body)
        if refused:
            return None
    else:
        low = budget.EDGE in turn.state.r7.low_due and budget.LOW in task.edges
        target = task.edges.get(budget.LOW if low else signal)
        if target is not None:
            body["to"] = f"{target}/"
        if low:
            body["by"] = budget.LOW
            turn.state = budget.taken(turn.state, budget.EDGE)
        turn.commit(Kind.ROUTE, body)
    r7 = turn.state.r7
    if failing:
        turn.executive(fails=r7.fails + 1, due=(signal, code))
    elif r7.fails or r7.fired or r7.due:
        turn.executive(fails=0, fired=(), due=())
    if target is not None:
        costs = failing and body.get("by") != budget.LOW
        if costs and r7.retries <= 0:
            turn.refuse("budget.retries", f"RETRIES {task.retries + 3} in TASK {task.name}")
            return None
        if costs:
            turn.executive(retries=r7.retries - 1)
        return EnterTask(target)
    if task.terminal and not failing:
        _succeed(turn)
    elif r7.moves[0] == executive.SURRENDER:
        given_up = r7.due[-1] if r7.due else ""
        turn.refuse(given_up or "run.escalated", "a person goes on from what the last search or check says")
    elif signal == "fail" or task.terminal:
        step = task.step(turn.state.r0.step)
        cause = {"times": step.poll.limit} if code == POLL_LIMIT and step and step.poll else {}
        knob = f"NEXT {{ {signal} -> ... }} in TASK {task.name}"
        turn.end("failed", code or "run.no_route", knob, cause)
    else:
        turn.refuse("run.unhandled_trigger", f"NEXT {{ {signal} -> ... }} in TASK {task.name}")
    return None


def _derived(turn: Turn, task: Task, signal: str, body: dict[str, Any]) -> tuple[str | None, bool]:
    """The task that the law's one `next_action` leads to, with the route committed; or the run is refused."""
    found = executive.derive(turn.rules, turn.state, signal)
    if len(found.actions) == 1:
        body["by"] = found.actions[0]
        if target := task.edges.get(found.actions[0]):
            body["to"] = f"{target}/"
    turn.commit(Kind.ROUTE, body)
    turn.judged.append((len(turn.commits) - 1, found.judged))
    if "to" in body:
        turn.state = executive.moved(turn.state, found.actions[0], signal)
        return task.edges[found.actions[0]], False
    cause = {"task": task.name, "signal": signal, "actions": list(found.actions[:LISTED])}
    if found.trouble:
        turn.refuse("run.next_action", "a law that can be evaluated", {**cause, "trouble": found.trouble})
    elif len(found.actions) == 1:
        knob = f"NEXT BY next_action {{ {found.actions[0]} -> ... }} in TASK {task.name}"
        turn.refuse("run.unhandled_action", knob, cause)
    else:
        knob = f"rules that give one next_action when TASK {task.name} ends with {signal}"
        turn.refuse("run.next_action", knob, cause)
    return None, True


def _succeed(turn: Turn) -> None:
    """The end of a run whose last task came right; where it has sealed checks these are asked first, once."""
    if not (wanted := turn.rules.sealed):
        turn.end("succeeded")
        return
    args = {"hash": wanted}
    content = turn.commit(Kind.PERMIT, {"act": SEALED, "allow": True, "args": args})
    turn.request(Effect(content, SEALED, SEALED, "costly", *turn.place, args, turn.state.r3))


def failed_tool(turn: Turn, task: Task, step: Step, route: Mapping[str, Any], code: str) -> Move:
    """A tool that ended with a non-zero exit: go on, go back to who proposed it, or end the task."""
    handling = _handling(turn, task, step)
    if handling == "continue":
        return next_step(turn, task, step, route)
    routed = task.derived or "fail" in task.edges
    source = task.asker(step) if handling == "retry" and not routed else None
    if source is not None:
        return _retry(turn, task, source, route, code)
    return finish_task(turn, "fail", code, route)


def _handling(turn: Turn, task: Task, step: Step) -> str:
    """What a non-zero exit means: as the step says; a plan that says nothing leaves it to its tool.

    Where nothing else decides a task, whoever planned a tool that failed has to plan again.
    """
    if step.kind != "plan" or step.on_fail:
        return step.on_fail
    entry = turn.rules.catalog.tool(turn.state.r5.name)
    handling = entry.on_fail if entry is not None else "stop"
    return "retry" if handling == "continue" and not task.judged else handling


def misfit(turn: Turn, found: Misfit) -> Move:
    """Give whoever proposed it the reason, or end the run after too many.

    Each counts for the tool that was named; an answer that names none has a count of its own.
    """
    task, step, tool, errors = found
    route = {"signal": "fail", "code": errors[0]["code"], "r4": errors[0]}
    entry = turn.rules.catalog.tool(tool)
    name = (entry.name if entry is not None else tool[: fit.NAMED]) or UNREADABLE
    return roll_back(turn, task, step, name, errors[0], route)


def roll_back(
    turn: Turn,
    task: Task,
    step: Step,
    tool: str,
    error: Mapping[str, Any],
    route: Mapping[str, Any],
) -> Move:
    """Count a rollback or a misfit on a tool: R4 to the proposer, too many in a row end the run."""
    name, count = turn.state.r7.rollbacks
    count = count + 1 if name == tool else 1
    turn.executive(rollbacks=(tool, count))
    turn.set(r4=error)
    turn.rolled_back += 1
    if count >= turn.rules.program.budgets.rollbacks or turn.rolled_back > UNATTENDED:
        turn.commit(Kind.ROUTE, route)
        times = max(count, turn.rolled_back)
        turn.end("failed", "run.rollbacks", cause={"name": tool, "times": times})
        return None
    if route["signal"] == "timeout" and ("timeout" in task.edges or task.derived):
        return finish_task(turn, "timeout", error["code"], route)
    source = task.asker(step)
    if source is not None:
        return _retry(turn, task, source, route, error["code"])
    return finish_task(turn, route["signal"], error["code"], route)


def _retry(turn: Turn, task: Task, source: Step, route: Mapping[str, Any], code: str) -> Move:
    """Go back to a proposer, at the price of a retry."""
    r7 = turn.state.r7
    if r7.retries <= 0:
        turn.commit(Kind.ROUTE, route)
        turn.refuse("budget.retries", f"RETRIES {task.retries + 3} in TASK {task.name}")
        return None
    turn.executive(retries=r7.retries - 1, fails=r7.fails + 1, due=("fail", code))
    turn.commit(Kind.ROUTE, {**route, "to": source.id})
    return EnterStep(task, source)


def looped(turn: Turn, pending: Effect, route: Mapping[str, Any], key: str, quiet: bool) -> bool:
    """Take one more result into R1; end the run whose last turn was taken too often (kernel/watchdog.py).

    `quiet` results do not make a loop by themselves; gives whether the run ended.
    """
    budgets, state = turn.rules.program.budgets, turn.state
    limit, size = budgets.watchdog, budgets.window
    action = _action(turn, pending)
    mark = watchdog.mark(pending.task, action, key, state.r3, quiet)
    window = watchdog.observe(state.r1.window, mark, watchdog.kept(size, limit))
    turn.set(r1=state.r1._replace(window=window))
    found = watchdog.loop(window, size, limit) if limit else None
    if found is None:
        return False
    turn.commit(Kind.ROUTE, route)
    cause = {"name": pending.name or pending.act, "turn": found.length, "times": found.times}
    turn.end("failed", "run.watchdog_loop", cause=cause)
    return True


def _action(turn: Turn, pending: Effect) -> str:
    """The hash of what was done; kept where a step does the same each time."""
    filling = turn.rules.fillings.get((pending.task, pending.step))
    if filling is None or pending.args is not filling.args:
        return canon.content_hash([pending.name, pending.args])
    if not filling.action:
        filling.action = canon.content_hash([pending.name, pending.args])
    return filling.action


def watched(turn: Turn, pending: Effect, route: Mapping[str, Any]) -> bool:
    """End the run that a committed result of a tool or a validator makes a loop; gives whether it did."""
    entry = turn.rules.catalog.tools.get(pending.name) if pending.act == "tool" else None
    return looped(turn, pending, route, route["key"], entry is not None and entry.idempotent)
