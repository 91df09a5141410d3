"""Route: where the run goes after a result, or how it ends.

Takes a Turn and what a result meant; commits the route and gives the Move that follows: the next step, a
proposer who may try again, the task that an edge of NEXT names. Results in a loop and rollbacks in a row end
the run here. Source: seed 000 section 3.2 (refine), seed 001 (R1, R4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak import canon
from spak.kernel import fit, watch
from spak.kernel.permit import comes_of_an_answer
from spak.kernel.state import Effect
from spak.kernel.turn import EnterStep, EnterTask, Misfit, Move, Turn
from spak.program import Step, Task
from spak.records import Kind

ANSWERS = ""
"""What invalid answers are counted under in semantics 2, where a tool has its name."""

UNREADABLE = "answer"
"""What answers are counted under that nobody could read, since semantics 3."""

POLL_LIMIT = "run.poll_limit"

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
    """Refine: the signal goes along the task's edge, or the run ends. Source: seed 000 section 3.2."""
    task = turn.task
    failing = signal in ("fail", "timeout")
    target = task.edges.get(signal)
    body = {**(route or {}), "signal": signal}
    if target is not None:
        body["to"] = f"{target}/"
    if code:
        body.setdefault("code", code)
    turn.commit(Kind.ROUTE, body)
    r7 = turn.state.r7
    if failing:
        turn.executive(fails=r7.fails + 1, due=(signal, code))
    elif r7.fails or r7.fired or r7.due:
        turn.executive(fails=0, fired=(), due=())
    if target is not None:
        if failing and r7.retries <= 0:
            turn.refuse("budget.retries", f"RETRIES {task.retries + 3} in TASK {task.name}")
            return None
        if failing:
            turn.executive(retries=r7.retries - 1)
        return EnterTask(target)
    if task.terminal and not failing:
        turn.end("succeeded")
    elif signal == "fail" or task.terminal:
        step = task.step(turn.state.r0.step)
        cause = {"times": step.poll.limit} if code == POLL_LIMIT and step and step.poll else {}
        knob = f"NEXT {{ {signal} -> ... }} in TASK {task.name}"
        turn.end("failed", code or "run.no_route", knob, cause)
    else:
        turn.refuse("run.unhandled_trigger", f"NEXT {{ {signal} -> ... }} in TASK {task.name}")
    return None


def failed_tool(turn: Turn, task: Task, step: Step, route: Mapping[str, Any], code: str) -> Move:
    """A tool that ended with a non-zero exit: go on, go back to who proposed it, or end the task."""
    handling = _handling(turn, task, step)
    if handling == "continue":
        return next_step(turn, task, step, route)
    source = task.asker(step) if handling == "retry" and "fail" not in task.edges else None
    if source is not None:
        return _retry(turn, task, source, route, code)
    return finish_task(turn, "fail", code, route)


def _handling(turn: Turn, task: Task, step: Step) -> str:
    """What a non-zero exit means: as the step says; a plan that says nothing leaves it to its tool.

    Where nothing else decides a task, whoever planned a tool that failed has to plan again.
    """
    decides = turn.rules.decides.exits_decide
    if step.kind != "plan" or (step.on_fail and decides):
        return step.on_fail
    entry = turn.rules.catalog.tool(turn.state.r5.name)
    handling = entry.on_fail if entry is not None else "stop"
    return "retry" if handling == "continue" and decides and not task.judged else handling


def misfit(turn: Turn, found: Misfit) -> Move:
    """Give whoever proposed it the reason, or end the run after too many.

    Each counts for the tool that was named; an answer that names none has a count of its own.
    """
    task, step, tool, errors = found
    route = {"signal": "fail", "code": errors[0]["code"], "r4": errors[0]}
    decides = turn.rules.decides
    if decides.rollbacks_by_tool:
        entry = turn.rules.catalog.tool(tool)
        name = (entry.name if entry is not None else tool[: fit.NAMED]) or UNREADABLE
        return roll_back(turn, task, step, name, errors[0], route)
    answered = decides.answers_counted_together and comes_of_an_answer(task, step)
    return roll_back(turn, task, step, ANSWERS if answered else tool, errors[0], route, tool)


def roll_back(
    turn: Turn,
    task: Task,
    step: Step,
    tool: str,
    error: Mapping[str, Any],
    route: Mapping[str, Any],
    shown: str = "",
) -> Move:
    """Count a rollback or a misfit on a tool: R4 to the proposer, too many in a row end the run.

    `tool` is what it is counted under, `shown` the name for people where that is another one.
    """
    name, count = turn.state.r7.rollbacks
    count = count + 1 if name == tool else 1
    turn.executive(rollbacks=(tool, count))
    turn.set(r4=error)
    turn.rolled_back += 1
    if count >= turn.rules.program.budgets.rollbacks or turn.rolled_back > UNATTENDED:
        turn.commit(Kind.ROUTE, route)
        times = max(count, turn.rolled_back)
        reason = f"{shown or tool or step.id} failed, {times} in a row: see R4"
        turn.fail("run.rollbacks", {"name": tool, "times": times}, reason)
        return None
    if route["signal"] == "timeout" and "timeout" in task.edges:
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
    """Take one more result into R1; end the run whose last turn was taken too often (kernel/watch.py).

    `quiet` results do not make a loop by themselves; gives whether the run ended.
    """
    budgets, state = turn.rules.program.budgets, turn.state
    limit, size = budgets.watchdog, budgets.window
    action = canon.content_hash([pending.name, pending.args])
    mark = watch.mark(pending.task, action, key, state.r3, quiet)
    whole = turn.rules.decides.turns_repeat
    window = watch.observe(state.r1.window, mark, watch.kept(size, limit) if whole else size)
    turn.set(r1=state.r1._replace(window=window))
    if whole:
        found = watch.loop(window, size, limit) if limit else None
    else:
        count = window.count(mark)
        found = watch.Turn(1, count) if limit and count >= limit else None
    if found is None:
        return False
    turn.commit(Kind.ROUTE, route)
    cause = {"name": pending.name or pending.act, "turn": found.length, "times": found.times}
    turn.fail("run.watchdog_loop", cause, f"BUDGET {{ watchdog: {limit + 1} }}")
    return True


def watched(turn: Turn, pending: Effect, route: Mapping[str, Any]) -> bool:
    """End the run that a committed result of a tool or a validator makes a loop; gives whether it did."""
    entry = turn.rules.catalog.tools.get(pending.name) if pending.act == "tool" else None
    quiet = entry is not None and entry.idempotent
    if quiet and not turn.rules.decides.turns_repeat:
        return False
    return looped(turn, pending, route, route["key"], quiet)
