"""Measure: what a validator's measurement and the answers of `success:` mean for the task.

Takes a Turn and the body of the proposal; changes the registers and gives the Move. The signal of a
measurement is derived in metric_signal.py, in integers, and whether one candidate is better in
metric_decision.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.kernel import fit, metric_signal, outcomes, render, route
from spak.kernel.situation import diagnostics
from spak.kernel.state import Effect, change
from spak.kernel.turn import EnterStep, Move, Turn
from spak.program import Step, Task
from spak.records import Kind


def checked(turn: Turn, task: Task, step: Step, body: Mapping[str, Any]) -> Move:
    """The answers to the questions of `success:`; one that cannot be answered is a failure with its R4."""
    good = task.success is None or render.holds(
        task.success, fit.booleans(body.get("facts")), turn.rules, turn.state
    )
    if isinstance(good, render.NotANumber):
        error = fit.not_a_number(good)
        turn.set(r4=error)
        failed = {"signal": "fail", "code": error["code"], "r4": error}
        return route.finish_task(turn, "fail", error["code"], failed)
    if good:
        return route.next_step(turn, task, step, {"signal": "success"})
    unmet = {"signal": "fail", "code": "run.success_unmet"}
    return route.finish_task(turn, "fail", "run.success_unmet", unmet)


def measured(turn: Turn, task: Task, step: Step, pending: Effect, body: Mapping[str, Any]) -> Move:
    """A validator's measurement: the best so far, R4 of a failed check, the signal along the task's edges."""
    if body.get("outcome") == "timeout":
        body = {"status": "timeout"}
    found = metric_signal.derive(task, step.name, pending.args, body, turn.state.r7)
    r7 = turn.state.r7
    turn.set(r7=change(found.executive, summary=r7.summary, last=r7.last))
    key = body.get("key")
    result: dict[str, Any] = {"signal": found.signal, "key": key if isinstance(key, str) else ""}
    if found.code:
        result["code"] = found.code
    if found.improved:
        assert found.executive.best is not None
        result["best"] = found.executive.best.value
    if found.void:
        return _remeasure(turn, task, step, result)
    keep_diagnostics(turn, body)
    _keep_check(turn, step.name, pending.args, found.signal, found.code)
    if isinstance(beginning := body.get("beginning"), Mapping):
        signal, code = metric_signal.plain(beginning)
        _keep_check(turn, step.name, pending.args, signal, code, beginning=True)
    if turn.state.r7.rollbacks[1]:
        turn.executive(rollbacks=("", 0))
    if route.watched(turn, pending, result):
        return None
    if found.signal == "fail":
        apart = turn.rules.decides.r4_payload
        turn.set(r4=fit.failed_check(found.code, step.name, body, apart))
    else:
        turn.set(r4=None)
    return route.finish_task(turn, found.signal, found.code, result)


def _remeasure(turn: Turn, task: Task, step: Step, result: Mapping[str, Any]) -> Move:
    """A void measurement is taken again; three in a row end the run."""
    name, count = turn.state.r7.rollbacks
    count = count + 1 if name == step.name else 1
    turn.executive(rollbacks=(step.name, count))
    if count >= turn.rules.program.budgets.rollbacks:
        turn.commit(Kind.ROUTE, result)
        turn.end("failed", "validator.void", "a quieter machine, or mend what the measurement says")
        return None
    turn.commit(Kind.ROUTE, {**result, "to": step.id})
    return EnterStep(task, step)


def keep_diagnostics(turn: Turn, body: Mapping[str, Any]) -> None:
    """Keep the diagnostics of a result, bounded, where the policy reads them."""
    if "diagnostics" in body and _reads(turn, "diagnostic", 5):
        turn.executive(diagnostics=diagnostics(body["diagnostics"]))


def _keep_check(
    turn: Turn, validator: str, options: Mapping[str, Any], signal: str, code: str, beginning: bool = False
) -> None:
    """What the check found in the present files, or in those of the beginning with the ordinary changes; the
    same check, taken again, replaces it."""
    if not _reads(turn, *(("checks_ran_on", 3) if beginning else ("checks_ran", 2))):
        return
    known = turn.state.r7.checks
    checks = outcomes.with_check(turn.rules, known, validator, options, signal, code, beginning)
    turn.executive(checks=checks)


def _reads(turn: Turn, pred: str, arity: int) -> bool:
    """Whether the policy reads a predicate; what it does not read, the state does not hold."""
    gate = turn.rules.gate
    return gate is not None and (pred, arity) in gate.reads
