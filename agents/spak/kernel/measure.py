"""Measure: what a validator's measurement and the answers of `success:` mean for the task.

Takes a Turn and the body of the proposal; changes the registers and gives the Move. The signal of a
measurement is derived in metric/signal.py, in integers, and whether one candidate is better in
metric/decision.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.kernel import fit, outcomes, render, route
from spak.kernel.metric import signal as metric_signal
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
    assert task.success is not None
    asked, found = render.unmet(task.success, fit.booleans(body.get("facts")), turn.rules, turn.state)
    error = fit.r4("run.success_unmet", asked, found, f"success: of TASK {task.name} does not hold")
    turn.set(r4=error)
    unmet = {"signal": "fail", "code": error["code"], "r4": error}
    return route.finish_task(turn, "fail", error["code"], unmet)


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
        _keep_check(turn, step.name, pending.args, signal, code, outcomes.BEGINNING)
    if turn.state.r7.rollbacks[1]:
        turn.executive(rollbacks=("", 0))
    if route.watched(turn, pending, result):
        return None
    if found.signal == "fail":
        turn.set(r4=fit.failed_check(found.code, step.name, body))
    else:
        turn.set(r4=None)
    return route.finish_task(turn, found.signal, found.code, result)


def sealed(turn: Turn, body: Mapping[str, Any]) -> None:
    """The answer of the sealed checks, which ends the run: nobody gets another try at them."""
    signal, code = metric_signal.plain(body)
    _keep_check(turn, outcomes.SEALED_CHECKS, {}, signal, code, outcomes.SEALED)
    if signal == "success":
        turn.end("succeeded")
    else:
        turn.end("failed", "run.sealed_checks")


def _remeasure(turn: Turn, task: Task, step: Step, result: Mapping[str, Any]) -> Move:
    """A void measurement is taken again; three in a row end the run."""
    name, count = turn.state.r7.rollbacks
    count = count + 1 if name == step.name else 1
    turn.executive(rollbacks=(step.name, count))
    if count >= turn.rules.program.budgets.rollbacks:
        turn.commit(Kind.ROUTE, result)
        turn.end("failed", "validator.void", "a quieter machine, or fix what the measurement reports")
        return None
    turn.commit(Kind.ROUTE, {**result, "to": step.id})
    return EnterStep(task, step)


def keep_diagnostics(turn: Turn, body: Mapping[str, Any]) -> None:
    """Keep the diagnostics of a result, bounded, where the policy reads them."""
    if "diagnostics" in body and _reads(turn, "diagnostic", 5):
        turn.executive(diagnostics=diagnostics(body["diagnostics"]))


def _keep_check(
    turn: Turn, validator: str, options: Mapping[str, Any], signal: str, code: str, kind: str = ""
) -> None:
    """What the check found in the present files, or what a check of another kind did; the same check, taken
    again, replaces it."""
    if not _reads(turn, *(("checks_ran_on", 3) if kind else ("checks_ran", 2))):
        return
    known = turn.state.r7.checks
    checks = outcomes.with_check(known, validator, options, signal, code, kind)
    turn.executive(checks=checks)


def _reads(turn: Turn, pred: str, arity: int) -> bool:
    """Whether the policy reads a predicate; what it does not read, the state does not hold."""
    gate = turn.rules.gate
    return (pred, arity) in gate.reads or (pred, arity) in gate.routing
