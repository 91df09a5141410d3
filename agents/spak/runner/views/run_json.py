"""Projections of a run: what the command line and pages show, made from the state and the ledger.

Gives one View as JSON (CLI.md, `spak run`), and the two files of seed 002 section 5: context.json (step
pointer, variables, pending query) and metrics.json. Both can be made again from the ledger at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from spak.kernel.outcomes import BEGINNING, PASSED
from spak.kernel.state import State, registers
from spak.policy.approval import action_hash
from spak.ports import Prompt
from spak.program import Budgets
from spak.runner.views.refusals import refusal

UNCHECKED = "completed, unchecked"
"""The word for a run that succeeded though nothing checked its result."""
OWN_TESTS = "succeeded, by its own tests"
"""The word for a run whose check passes with its own tests, and not with those that it began with."""


@dataclass(frozen=True, slots=True)
class View:
    """A run at a glance; `to_json` is the document of `spak run --json`."""

    run: str
    state: str
    task: str
    summary_hash: str
    chain_head: str
    records: int
    metrics: Mapping[str, Any]
    artifacts: tuple[Mapping[str, Any], ...] = ()
    waiting: Mapping[str, Any] | None = None
    refusal: Mapping[str, Any] | None = None
    recorded: Mapping[str, int] | None = None
    """How many recorded answers were given to another prompt, and the first record (spak.runner.repeats)."""
    registers: Mapping[str, Any] = field(default_factory=dict)
    monitors: tuple[Mapping[str, Any], ...] = ()
    """What the policy's folds hold (spak.policy.history.monitors); shown with the registers."""
    checked: bool | None = None
    """Whether anything checked the result; None where nobody looked. No document has it."""
    applies: bool = False
    """Whether it changed files of a folder that it was copied from. No document has it."""
    by_own_tests: tuple[str, ...] = ()
    """The paths without which a check fails that passed (spak.runner.views.own_tests)."""

    witnessed: Mapping[str, int] | None = None
    """Counts of what the run only witnessed (spak.runner.views.witnessed); only such a run has it."""

    @property
    def word(self) -> str:
        """The state as people read it: a success that nothing checked is not called one."""
        return worded(self.state, {"checked": self.checked, "by_own_tests": self.by_own_tests})

    def to_json(self, with_registers: bool = False) -> dict[str, Any]:
        """The view as `run --json` prints it."""
        value = asdict(self)
        del value["checked"], value["applies"]
        if not self.by_own_tests:
            del value["by_own_tests"]
        if self.witnessed is None:
            del value["witnessed"]
        if not with_registers:
            del value["registers"], value["monitors"]
        return value


def worded(state: str, found: Mapping[str, Any]) -> str:
    """A state as people read it; `found` has what is kept of the run beside it."""
    if state != "succeeded":
        return state
    if found.get("by_own_tests"):
        return OWN_TESTS
    return UNCHECKED if found.get("checked") is False else state


def view(
    run: str,
    state: State,
    head: str,
    records: int,
    stop: str = "",
    prompt: Prompt | None = None,
    budgets: Budgets | None = None,
    cause: str = "",
    evidence: Sequence[Mapping[str, Any]] = (),
) -> View:
    """The view of a run. `stop` is how the last advance stopped; `prompt` the question it waits for; with the
    spec's `budgets` metrics and registers say what may still be used; `cause` says in a sentence why the run
    ended (spak.runner.views.causes), `evidence` on which records (spak.runner.views.refusals)."""
    return View(
        run=run,
        state=shown_state(state, stop),
        task=state.r0.task,
        summary_hash=state.summary,
        chain_head=head,
        records=records,
        metrics=metrics(state) if budgets is None else {**metrics(state), **allowance(budgets, state)},
        artifacts=artifacts(state),
        waiting=waiting(state, prompt),
        refusal=refusal(state, cause, evidence),
        registers=registers(state, budgets),
    )


def by_own_tests(state: State) -> bool:
    """Whether a check passes with what the run changed of its tests alone (`checks_ran_on`)."""
    return any(of.startswith(BEGINNING) and signal not in PASSED for _, of, signal in state.r7.checks)


def shown_state(state: State, stop: str = "") -> str:
    """The state as people know it: an open question is waiting, a stopped run is paused."""
    if state.ended:
        return state.status
    if state.r6 is not None and state.r6.cls == "ask":
        return "waiting"
    return {"paused": "paused", "interrupted": "paused"}.get(stop, "running")


def metrics(state: State) -> dict[str, Any]:
    """The last measurement, the loop's bookkeeping, and for a tuning run the figures of its two ends."""
    r7 = state.r7
    found: dict[str, Any] = dict(r7.metrics)
    found |= {"steps": state.r1.steps, "elapsed_ms": state.r1.elapsed_ms}
    found |= {
        name.removeprefix("metric."): value
        for name, value in r7.variables.items()
        if name.startswith("metric.")
    }
    if r7.usage:
        found |= {"calls": sum(calls for calls, _, _ in r7.usage.values())}
        found |= {"tokens": state.r2, "cost_nanousd": r7.cost}
        found["by_task"] = {
            task: {"calls": calls, "tokens": tokens, "cost_nanousd": cost}
            for task, (calls, tokens, cost) in sorted(r7.usage.items())
        }
    if r7.evaluations:
        found["evaluations"] = r7.evaluations
    if r7.stopped:
        found["stopped_by"] = r7.stopped
    if r7.best is not None and r7.baseline is not None:
        found["best_params"] = dict(r7.best.params)
        found |= _ends(r7.metrics, r7.baseline.value, r7.best.value, r7.best.per_unit)
    return found


def _ends(metrics: Mapping[str, Any], baseline: int, best: int, per_unit: int = 0) -> dict[str, Any]:
    """The first and the best value: milliseconds, or whatever the validator Metric's unit is.

    `per_unit` is the best's: the last measurement, whose `metrics` these are, may have failed before it said.
    """
    if per_unit:
        better = max(baseline, best) / min(baseline, best)
        return {"baseline": baseline / per_unit, "best": best / per_unit, "improvement": round(better, 3)}
    if isinstance(metrics.get("baseline_ns"), int) and isinstance(metrics.get("time_ns"), int):
        baseline, best = metrics["baseline_ns"], metrics["time_ns"]
    found = {"baseline_ms": baseline / 1e6, "best_ms": best / 1e6, "speedup": round(baseline / best, 3)}
    names = ("baseline_low_ns", "baseline_high_ns", "time_low_ns", "time_high_ns")
    ends = [end for name in names if isinstance(end := metrics.get(name), int) and end > 0]
    if len(ends) == len(names):
        low, high, least, most = ends
        found |= {"speedup_low": round(low / most, 3), "speedup_high": round(high / least, 3)}
    return found


def allowance(budgets: Budgets, state: State) -> dict[str, Any]:
    """What a spec and the extensions of the run let models use, where there is a limit."""
    budgets = budgets.extended(state.r7.extended)
    limits = {"tokens": budgets.tokens, "cost_nanousd": budgets.cost * 1000}
    found = {name: limit for name, limit in limits.items() if limit}
    return {"allowance": found} if found else {}


def artifacts(state: State) -> tuple[Mapping[str, Any], ...]:
    """The files of the best candidate, by the name of their blob."""
    best = state.r7.best
    if best is None:
        return ()
    return tuple({"name": f"best.{role}", "blob": digest} for role, digest in sorted(best.files.items()))


def waiting(state: State, prompt: Prompt | None) -> dict[str, Any] | None:
    """The open question, if there is one."""
    effect = state.r6
    if state.ended or effect is None or effect.cls != "ask":
        return None
    if effect.act == "approve":
        return {
            "kind": "approval",
            "task": effect.task,
            "step": effect.step,
            "id": effect.id,
            "act": effect.args["act"],
            "name": effect.name,
            "args": effect.args["args"],
            "action": action_hash(effect.name, effect.args["args"]),
        }
    found: dict[str, Any] = {
        "kind": "llm.query" if effect.act == "ask" else "plan",
        "task": effect.task,
        "step": effect.step,
        "role": effect.name,
        "id": effect.id,
    }
    if prompt is not None:
        found |= {"role": prompt.role, "prompt": prompt.text, "items": outline(prompt)}
    return found


def outline(prompt: Prompt) -> list[dict[str, Any]]:
    """The items of a prompt in order, by name and length: with its text they say where each begins."""
    return [{"name": item["name"], "chars": len(item["text"])} for item in prompt.items]


TASK_STATES: Mapping[str, str] = {
    "queued": "READY",
    "running": "RUNNING",
    "paused": "SUSPEND",
    "waiting": "WAIT_INPUT",
    "succeeded": "SUCCESS",
    "failed": "FAIL",
    "refused": "FAIL",
    "cancelled": "FAIL",
}
"""Our states as the states of seed 002's step machine (section 3.2)."""


def context(view_: View, state: State, last_tool_output: str = "") -> dict[str, Any]:
    """context.json: step pointer, variables and pending query, and what the last tool wrote, whether or not
    the spec reads it. Source: seed 002 sections 3.3 and 5.3."""
    return {
        "run": view_.run,
        "task_state": "READY" if state.status == "new" else TASK_STATES[view_.state],
        "state": view_.state,
        "checked": view_.checked,
        **({"by_own_tests": view_.by_own_tests} if view_.by_own_tests else {}),
        "task": state.r0.task,
        "step_pointer": state.r0.step,
        "attempt": state.r0.attempt,
        "variables": dict(state.r7.variables),
        "last_tool_output": last_tool_output,
        "pending": view_.waiting,
        "summary_hash": view_.summary_hash,
    }
