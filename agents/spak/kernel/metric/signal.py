"""From a measurement to a signal: what a validator saw, judged by the rule in the Program.

Takes the body of a validator's `act` and the executive register; gives the signal and the register as it is
after the measurement (best, baseline, runner-up, patience). Integers only, so that it replays bit for bit.

    a check that is not ok            -> fail, with the check's code
    no metric rule                    -> success
    static evidence                   -> success; never an improvement
    first measurement of the metric   -> success; it becomes baseline and best
    pairs say improved                -> metric_improved; the old best becomes runner-up
    otherwise                         -> success
    patience or evaluations used up   -> plateau instead, in a task that loops on the metric
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spak.kernel.metric.decision import decide
from spak.kernel.state import Executive, Mark, change
from spak.program import MetricRule, Task


@dataclass(frozen=True, slots=True)
class Derived:
    """The signal of a measurement and the executive register after it; `void` is to be measured again."""

    signal: str
    executive: Executive
    code: str = ""
    improved: bool = False
    void: bool = False
    """The measurement itself is worthless and should be taken again."""


def derive(
    task: Task, name: str, options: Mapping[str, Any], body: Mapping[str, Any], r7: Executive
) -> Derived:
    """The signal of a measurement; total: whatever the body holds, there is an answer."""
    status = body.get("status")
    if status == "timeout":
        return Derived("timeout", r7, "validator.timeout")
    if status == "void":
        return Derived("fail", r7, "validator.void", void=True)
    if status == "unavailable":
        return Derived("fail", r7, "validator.unavailable")
    if status not in ("measured", "static", "checked"):
        return Derived("fail", r7, "validator.malformed")
    metrics = _numbers(body.get("metrics"))
    r7 = change(r7, metrics=metrics, evaluations=r7.evaluations + (task.rule is not None))
    failed = _failed(body.get("checks"))
    if failed is not None:
        return _looped(task, Derived("fail", r7, failed))
    if task.rule is None:
        return Derived("success", r7)
    if status != "measured":
        return _looped(task, Derived("success", change(r7, stale=r7.stale + 1)))
    return _measured(task, task.rule, options, body, r7)


def plain(body: Mapping[str, Any]) -> tuple[str, str]:
    """The signal and the code of a measurement that no metric is read from."""
    status = body.get("status")
    if status == "timeout":
        return "timeout", "validator.timeout"
    if status not in ("measured", "static", "checked"):
        return "fail", f"validator.{status if status in ('void', 'unavailable') else 'malformed'}"
    failed = _failed(body.get("checks"))
    return ("success", "") if failed is None else ("fail", failed)


def _measured(
    task: Task, rule: MetricRule, options: Mapping[str, Any], body: Mapping[str, Any], r7: Executive
) -> Derived:
    value = r7.metrics.get(rule.metric)
    if type(value) is not int or value <= 0:
        return _looped(task, Derived("fail", r7, "validator.no_metric"))
    per_unit = r7.metrics.get("per_unit")
    per_unit = per_unit if type(per_unit) is int and per_unit > 0 else 0
    mark = Mark(value, _files(body.get("subject")), r7.evaluations, r7.params, per_unit)
    role = options.get("role", "candidate")
    if r7.best is None or role == "baseline":
        return Derived("success", change(r7, best=mark, baseline=mark, runner_up=None, stale=0))
    numbers = {
        "margin_num": rule.margin_num,
        "margin_den": rule.margin_den,
        "evidence": rule.evidence,
        "max_pairs": rule.max_pairs,
    }
    higher = rule.better == "higher"
    if role == "final":
        return _confirmed(body, r7, numbers, higher)
    verdict = decide(_pairs(body, "incumbent"), numbers, higher)
    if verdict.outcome == "invalid":
        return _looped(task, Derived("fail", r7, f"measure.{verdict.reason}"))
    if verdict.outcome != "improved":
        return _looped(task, Derived("success", change(r7, stale=r7.stale + 1)))
    runner_up = r7.best if r7.best != r7.baseline else None
    return _looped(
        task, Derived("metric_improved", change(r7, best=mark, runner_up=runner_up, stale=0), improved=True)
    )


def _confirmed(body: Mapping[str, Any], r7: Executive, numbers: Mapping[str, int], higher: bool) -> Derived:
    """The winner measured again on fresh inputs: it must still beat the baseline if it ever did."""
    for rival, must_win in (("baseline", r7.best != r7.baseline), ("runner_up", False)):
        pairs = _pairs(body, rival)
        verdict = decide(pairs, numbers, higher)
        if verdict.outcome == "invalid":
            return Derived("fail", r7, f"measure.{verdict.reason}")
        if must_win and verdict.outcome != "improved":
            return Derived("fail", r7, "measure.not_confirmed")
    return Derived("success", r7)


def _looped(task: Task, derived: Derived) -> Derived:
    """The same, or `plateau` once a metric loop has used up its patience or its evaluations."""
    rule, r7 = task.rule, derived.executive
    if rule is None or not ({"plateau", "metric_improved"} & set(task.edges) or task.derived):
        return derived
    stopped = ""
    if r7.stale >= rule.patience:
        stopped = "patience"
    elif rule.evaluations and r7.evaluations >= rule.evaluations:
        stopped = "evaluations"
    if not stopped:
        return derived
    return replace(derived, signal="plateau", executive=change(r7, stopped=stopped))


def _pairs(body: Mapping[str, Any], rival: str) -> Sequence[Mapping[str, Any]]:
    pairs = body.get("pairs")
    if not isinstance(pairs, list):
        return ()
    return [pair for pair in pairs if isinstance(pair, Mapping) and pair.get("rival", "incumbent") == rival]


def _failed(checks: Any) -> str | None:
    """The code of the first check that is not ok; a malformed list of checks is itself a failure."""
    if not isinstance(checks, list):
        return "validator.malformed"
    for check in checks:
        if not isinstance(check, Mapping) or check.get("ok") is not True:
            code = check.get("code") if isinstance(check, Mapping) else None
            return code if isinstance(code, str) and code else "validator.failed"
    return None


def _numbers(metrics: Any) -> Mapping[str, Any]:
    if not isinstance(metrics, Mapping):
        return {}
    return {name: value for name, value in metrics.items() if type(value) in (int, float)}


def _files(subject: Any) -> Mapping[str, str]:
    if not isinstance(subject, Mapping):
        return {}
    named = {role: item.get("$blob") for role, item in subject.items() if isinstance(item, Mapping)}
    return {role: blob for role, blob in named.items() if type(blob) is str}
