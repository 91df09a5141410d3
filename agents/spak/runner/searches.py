"""What the search of a task begins with: the strategy that is the default now, and what an earlier run found.

Takes a program and, where a prior is asked for, the records of an earlier run; gives `searches` for genesis,
by task: `{"defaults": {"strategy": ...}, "prior": [{"params": {...}, "value": ...}, ...]}`, a trial that
failed without a value. Both are recorded so that a run that goes on under another version of spak, or without
the earlier run, asks and gets the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spak import canon
from spak.errors import UsageError
from spak.kernel.rules import Rules
from spak.ports import Trial
from spak.program import Program
from spak.program.model import Task
from spak.proposers.strategies import WITH_PRIOR
from spak.proposers.tuner import DEFAULTS
from spak.records import Kind, Record
from spak.runner.history import History, rules_of

MAX_TRIALS = 1_000
"""Of a prior: the last ones."""
SEARCHES = "tuner"
"""The proposer whose tasks search."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The search of a task of an earlier run."""

    space: Mapping[str, Any]
    better: str
    trials: Sequence[Trial] = field(repr=False)


def earlier(records: Iterable[Record]) -> dict[str, Earlier]:
    """The searches of a run by task; those without a trial too.

    Raises: LedgerError `ledger.genesis`, `ledger.semantics`; what its spec raises.
    """
    history, rules = History(), None
    for record in records:
        if record.kind == Kind.GENESIS:
            rules = Rules.of(record.body)
            history.rules = rules_of(rules.program)
        history.feed(record)
    tasks = rules.program.tasks if rules is not None else {}
    return {
        name: Earlier(task.proposing.space, _better(task), history.of(name))
        for name, task in tasks.items()
        if task.proposing.name == SEARCHES
    }


def begun(
    program: Program, proposer: str = "", prior: Mapping[str, Earlier] | None = None
) -> dict[str, dict[str, Any]]:
    """`searches` of a new run; `proposer` is who fills all plans, where that is not the spec's.

    Raises: UsageError `tuner.prior` where the prior fits no task, a task of its name has another space, or
    nothing was tried in it.
    """
    found: dict[str, dict[str, Any]] = {}
    fitting = matched(program, proposer, prior) if prior is not None else {}
    for name, task in _searching(program, proposer).items():
        defaults = {key: value for key, value in DEFAULTS.items() if key not in task.proposing.options}
        found[name] = {"defaults": defaults} if defaults else {}
        if name in fitting:
            found[name]["prior"] = _listed(name, fitting[name])
    return {name: search for name, search in found.items() if search}


def matched(program: Program, proposer: str, prior: Mapping[str, Earlier]) -> dict[str, Earlier]:
    """The earlier searches that tasks of the program can begin with; their trials are not looked at.

    Raises: UsageError `tuner.prior` where there is none, or a task of its name has another space.
    """
    found = {}
    for name, task in _searching(program, proposer).items():
        if name in prior:
            _fits(name, task, prior[name])
            found[name] = prior[name]
    if not found:
        searched = ", ".join(prior) or "nothing"
        raise _error(f"no task of the spec searches what the earlier run did ({searched})")
    return found


def trials(search: Mapping[str, Any]) -> tuple[Trial, ...]:
    """The trials in a task's part of `searches`."""
    return tuple(
        Trial({}, item["params"], "measured" if "value" in item else "fail", item.get("value"))
        for item in search.get("prior", ())
    )


def _searching(program: Program, proposer: str) -> dict[str, Task]:
    return {
        name: task
        for name, task in program.tasks.items()
        if (proposer or task.proposing.name) == SEARCHES and task.proposing.space
    }


def _fits(name: str, task: Task, found: Earlier) -> None:
    if canon.dumps(found.space) != canon.dumps(task.proposing.space):
        raise _error(f"the SPACE of TASK {name} is not the one that the earlier run searched")
    if found.better != _better(task):
        raise _error(f"in the earlier run a {found.better} metric was better in TASK {name}")
    strategy = task.proposing.options.get("strategy", DEFAULTS["strategy"])
    if strategy not in WITH_PRIOR:
        raise _error(f"the strategy {strategy} of TASK {name} takes no prior; take {' or '.join(WITH_PRIOR)}")


def _listed(name: str, found: Earlier) -> list[dict[str, Any]]:
    kept = [trial for trial in found.trials if trial.params][-MAX_TRIALS:]
    if not kept:
        raise _error(f"the earlier run tried nothing in TASK {name}")
    return [
        {"params": dict(trial.params)}
        if trial.outcome == "fail" or trial.value is None
        else {"params": dict(trial.params), "value": trial.value}
        for trial in kept
    ]


def _better(task: Task) -> str:
    return str(task.proposing.options.get("better", "lower"))


def _error(message: str) -> UsageError:
    return UsageError("tuner.prior", message, "leave the prior out, or name a run of the same SPACE")
