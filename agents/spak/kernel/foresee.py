"""What the policy will say to the actions that a spec fixes, told before the run.

Takes the outline of a spec, its POLICY and the law; gives a warning for each tool step and VALIDATOR
whose arguments hold no variable and that will be denied in every run, and an info for one that will wait for
an approval. The gate decides, as at the start of a run. Left to the run is what asks to look at a path, a
host or the workspace first, and what a check that passed could change. Where a text besides the shipped law
speaks of the run's past nothing is foreseen, nor of a spec with errors. It opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from spak import canon
from spak.kernel.gate import Gate, Judged, Wish
from spak.kernel.render import render
from spak.kernel.rules import Rules, refs
from spak.kernel.situation import moving, situation
from spak.kernel.state import State
from spak.lang.diagnostics import Diagnostic, Severity, in_order
from spak.lang.imports import Resolved
from spak.lang.outline import Outline, StepPlan
from spak.policy import PolicyError
from spak.policy.approval import ADMIN
from spak.policy.law import Law, compiled, rules_of
from spak.policy.values import Name
from spak.program import CommandLine, Program, Step, Task
from spak.program.build import sketch

MOST = 200
"""Actions of a spec that are judged, equal ones counted once: the sessions for them fit into the gate."""

PAST = ("checks_ran", "diagnostic", "spent", "over_budget", "block_commit")
"""Words of a policy that speak of what happened in the run."""

SOMEBODY = ({"id": "somebody", "name": "somebody", "public": "", "roles": [ADMIN]},)
"""Whoever could approve."""


class Fixed(NamedTuple):
    """An action without variables, and where it stands."""

    task: Task
    act: Literal["tool", "validate"]
    name: str
    args: Mapping[str, Any]
    at: Any


def foresee(made: Outline, whole: Resolved, law: Law) -> tuple[Diagnostic, ...]:
    """What will be denied, and what will wait for somebody."""
    if made.broken or made.report.errors or not made.tasks:
        return ()
    program = sketch(made)
    axioms = rules_of(program.axioms)
    fixed = list(_fixed(made, program))
    added = (whole.policy, *axioms.values(), *law.operator.values(), *law.team.values())
    if not fixed or any(word in text for word in PAST for text in added):
        return ()
    try:
        gate = _gate(law.key, whole.policy, tuple(axioms.items()))
    except PolicyError:
        return ()  # check_law tells what is wrong with it
    rules = Rules(program, made.catalog, 0, "", "", frozenset(), gate)
    known: dict[bytes, Judged | None] = {}
    found = []
    for item in fixed:
        key = canon.dumps([item.act, item.name, item.args, item.task.name if _by_task(gate) else ""])
        if key not in known:
            if len(known) == MOST:
                break
            known[key] = _judge(rules, item)
        judged = known[key]
        if judged is not None:
            found.append(_told(made, item, judged))
    return in_order(found)


def _fixed(made: Outline, program: Program) -> Iterator[Fixed]:
    """The tool steps and validators whose arguments are known now."""
    for name, plan in made.tasks.items():
        task = program.tasks[name]
        nodes: dict[str, StepPlan] = {step.node.name: step for step in (*plan.steps, *plan.checks)}
        for step in task.steps:
            if step.kind not in ("tool", "validate") or refs(step.args):
                continue
            args = _plain(step.args)
            if step.kind == "tool":
                yield Fixed(task, "tool", step.name, args, _place(nodes[step.id], step))
            elif plan.validator is not None:
                yield Fixed(task, "validate", step.name, args, plan.validator.at)


def _place(found: StepPlan, step: Step) -> Any:
    """The command line of a step, where it has one; else its kind."""
    command = next((entry for entry in found.args if isinstance(step.args.get(entry.key), CommandLine)), None)
    return command.value if command is not None else found.node.start + 3


def _plain(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as a run has them: without variables nothing of the state is asked for."""
    rendered = {name: render(value, None, None) for name, value in args.items()}  # type: ignore[arg-type]
    made: dict[str, Any] = canon.loads(canon.dumps(rendered))
    return made


def _judge(rules: Rules, item: Fixed) -> Judged | None:
    """What will not be permitted; None where it will, or where that rests on more than the spec."""
    assert rules.gate is not None
    run = situation(rules, State(), item.task, item.name if item.act == "tool" else "")
    wish = Wish(item.act, item.name, item.args, run, moving(rules, State()))
    found = rules.gate.judge(wish, {})
    if not isinstance(found, Judged) or found.allow:
        return None
    passed = tuple(("checks_ran", (name, Name("/success"))) for name in sorted(rules.catalog.validators))
    later = rules.gate.judge(wish._replace(run=(*run, *passed)), {})
    if not isinstance(later, Judged) or later.allow:
        return None
    if rules.program.approvals == "ask" and rules.gate.approvable(wish, {}, SOMEBODY):
        return found._replace(allow="ask")
    return found


def _told(made: Outline, item: Fixed, judged: Judged) -> Diagnostic:
    start, end = made.report.offsets(item.at)
    if judged.allow == "ask":
        message = f"this will wait for an approval: {judged.reason}"
        hint = "whoever may approve answers with spak approve"
        return made.spec.source.diagnostic(Severity.INFO, "lang.needs_approval", message, hint, start, end)
    message = f"the policy will deny this: {judged.reason} [{judged.code}]"
    hint = "do it another way, or have the operator's law ([policy] law) or the team's rules permit it"
    return made.spec.source.diagnostic(Severity.WARNING, "lang.denied", message, hint, start, end)


@lru_cache(maxsize=8)
def _gate(law: bytes, spec: str, axioms: tuple[tuple[str, str], ...]) -> Gate:
    return Gate(compiled(Law.from_json(canon.loads(law)), spec, dict(axioms)))


def _by_task(gate: Gate) -> bool:
    """Whether the policy says different things to different tasks."""
    return ("in_task", 1) in gate.reads
