"""Limits that stop too early: a search's patience, a task's retries. Pure.

Takes the traces of runs of one spec; gives findings. A limit is too low when runs ended by it and what it
still allowed paid until the last: of the later half of what it allows, more than LATE succeeded (the 95 %
Wilson interval begins above it). What more would bring is not known from such runs, so the edit doubles the
limit and no more; fresh runs judge it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spak.evolve.analyze.model import Finding
from spak.evolve.analyze.trace import Trace, Visit
from spak.evolve.stats import wilson
from spak.lang.edit import ops
from spak.program import Task

LEAST = 20
"""Evaluations or attempts below which a rate says nothing."""
LATE = 0.05
"""A limit may stop what succeeds less often than that."""

Attempts = list[tuple[int, bool, Visit]]
"""How much of the limit was used up before an attempt, whether it succeeded, and the attempt."""


def short_patience(traces: Sequence[Trace]) -> Iterator[Finding]:
    """Searches that RULE's patience ended although late evaluations still improved."""
    for task in traces[0].rules.program.tasks.values():
        rule = task.rule
        if rule is None or "plateau" not in task.edges or 0 < rule.evaluations <= rule.patience:
            continue
        made: Attempts = []
        ended: list[tuple[Trace, Visit]] = []
        for trace in traces:
            found = _streaks(trace, task)
            made += found
            if found and found[-1][2].signal == "plateau" and found[-1][0] >= rule.patience - 1:
                ended.append((trace, found[-1][2]))
        more = min(2 * rule.patience, rule.evaluations or 2 * rule.patience)
        edit = ops.Set("RULE.patience", more, task.name)
        yield from _finding("short_patience", task, rule.patience, made, ended, edit)


def few_retries(traces: Sequence[Trace]) -> Iterator[Finding]:
    """Runs that RETRIES ended although late attempts still succeeded."""
    for task in traces[0].rules.program.tasks.values():
        made: Attempts = []
        ended: list[tuple[Trace, Visit]] = []
        for trace in traces:
            found = _tries(trace, task)
            made += found
            if found and "budget.retries" in trace.codes and trace.visits[-1] is found[-1][2]:
                ended.append((trace, found[-1][2]))
        edit = ops.Set("RETRIES", 2 * task.retries, task.name)
        yield from _finding("few_retries", task, task.retries, made, ended, edit)


_SAYS = {
    "short_patience": ("patience {limit} ended {ended} searches", "evaluations", "improved"),
    "few_retries": ("RETRIES {limit} ended {ended} runs", "attempts", "succeeded"),
}


def _finding(
    code: str, task: Task, limit: int, made: Attempts, ended: list[tuple[Trace, Visit]], edit: ops.Set
) -> Iterator[Finding]:
    late = [good for used, good, _ in made if limit > 0 and 2 * used >= limit]
    low, high = wilson(sum(late), len(late))
    if not ended or len(late) < LEAST or low <= LATE:
        return
    head, what, word = _SAYS[code]
    spent = sum(visit.ms for trace, _ in ended for visit in trace.visits if visit.task == task.name)
    run = ended[0][0].run
    shown = f"{sum(late)} of {len(late)} late {what} {word} (95 % from {100 * low:.0f} to {100 * high:.0f} %)"
    yield Finding(
        code, run, task.name, tuple(visit.last for trace, visit in ended if trace.run == run),
        f"{head.format(limit=limit, ended=len(ended))} of TASK {task.name}, and {shown}",
        spent / 1000, "s", (edit,),
    )  # fmt: skip


def _streaks(trace: Trace, task: Task) -> Attempts:
    """Each evaluation of a search, with those in a row before it that brought nothing. A search without a
    baseline of its own makes one first."""
    program = trace.rules.program
    stale = 0 if any(_baseline(other) for other in program.tasks.values()) else -1
    found: Attempts = []
    for visit in trace.visits:
        if visit.task == task.name and visit.signal in ("success", "metric_improved", "plateau"):
            improved = visit.signal == "metric_improved"
            found.append((max(stale, 0), improved, visit))
            stale = 0 if improved else stale + 1
    return found


def _baseline(task: Task) -> bool:
    return any(step.kind == "validate" and step.args.get("role") == "baseline" for step in task.steps)


def _tries(trace: Trace, task: Task) -> Attempts:
    """Each attempt at a task, with the retries that went before it in a row."""
    used, found = 0, []
    before: Visit | None = None
    for visit in trace.visits:
        if visit.task == task.name and visit.signal:
            retried = before is not None and before.task == task.name and before.signal == "fail"
            used = used + 1 if retried else 0
            found.append((used, visit.signal != "fail", visit))
        before = visit
    return found
