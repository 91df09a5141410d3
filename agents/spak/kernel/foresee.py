"""What the policy will say to the actions that a spec fixes, reported before the run.

Takes the outline of a spec, its POLICY and the law; gives a warning for each tool step and VALIDATOR
whose arguments hold no variable and that will be denied in every run, and an info for one that will wait for
an approval. The gate decides, as at the start of a run. It opens nothing: of a path is known what its text
alone decides (spak.policy.textual), and where links could lead elsewhere, the denial must hold wherever they
lead. Left to the run is what asks where a full name of a host leads, or for the content of the workspace, and
what a check that passed could change. Where a text besides the shipped law speaks of the run's past nothing
is foreseen. Of a spec with errors only those parts are judged that they do not touch (`readable`).
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from spak import canon
from spak.datalog import PolicyError
from spak.datalog.values import Name
from spak.kept import by_size
from spak.kernel.executive.prove import prove
from spak.kernel.gate import ROUNDS, Gate, Judged, ProposedAction, uses_of
from spak.kernel.observed import Facts, merged, seen_json
from spak.kernel.render import render
from spak.kernel.rules import Rules, refs
from spak.kernel.situation import moving, situation
from spak.kernel.state import State
from spak.lang.checks.readable import readable, settings_touched
from spak.lang.diagnostics import Diagnostic, Severity, in_order
from spak.lang.imports import Resolved
from spak.lang.outline import Outline, StepPlan
from spak.policy.actions import Seen
from spak.policy.approval import ADMIN
from spak.policy.judge import permissible
from spak.policy.law import Law, compiled, rules_of
from spak.policy.textual import decided, inside
from spak.policy.urls import is_bare
from spak.program import CommandLine, Program, Step, Task
from spak.program.build import sketch

MOST = 200
"""Actions of a spec that are judged, equal ones counted once: the sessions for them fit into the gate."""

PAST = ("checks_ran", "checks_ran_on", "diagnostic", "spent", "over_budget", "block_commit")
"""Words of a policy that speak of what happened in the run."""

SOMEBODY = tuple(
    {"id": name, "name": name, "public": "", "roles": [ADMIN]} for name in ("somebody", "another", "a third")
)
"""Whoever could approve, where nobody says who may."""
Keys = Sequence[Mapping[str, Any]]
NOBODY = "nobody"
"""The code of a judgement that a signature would lift, of which there is none."""


class Fixed(NamedTuple):
    """An action without variables, and its nodes: the whole, and each argument."""

    task: Task
    act: Literal["tool", "validate"]
    name: str
    args: Mapping[str, Any]
    at: Any
    values: Mapping[str, Any]


def foresee(
    made: Outline, whole: Resolved, law: Law, approvers: Keys | None = None
) -> tuple[Diagnostic, ...]:
    """What will be denied, what will wait for somebody (one of the approvers, where they are known), and what
    is wrong with the moves that the law derives."""
    sound = readable(made)
    if sound is None or not sound.tasks:
        return ()
    program = sketch(sound)
    axioms = rules_of(program.axioms)
    fixed = list(_fixed(sound, program))
    added = (whole.policy, *axioms.values(), *law.operator.values(), *law.team.values())
    if not fixed or any(word in text for word in PAST for text in added):
        return moves(sound, whole, law)
    try:
        gate = _gate(law.key, whole.policy, tuple(axioms.items()))
    except PolicyError:
        return ()  # check_law reports what is wrong with it
    rules = Rules(program, made.catalog, 0, "", "", frozenset(), gate)
    unsure, checks = settings_touched(made), _checks(made)
    known: dict[bytes, Judged | None] = {}
    found = list(moves(sound, whole, law))
    for item in fixed:
        key = canon.dumps([item.act, item.name, item.args, item.task.name if _by_task(gate) else ""])
        if key not in known:
            if len(known) == MOST:
                break
            known[key] = _judge(rules, item, checks, approvers)
        judged = known[key]
        if judged is not None and not (unsure and _by_settings(judged)):
            found.append(_diagnostic(made, item, judged))
    return in_order(found)


def moves(made: Outline, whole: Resolved, law: Law) -> tuple[Diagnostic, ...]:
    """What is wrong with the moves that the law derives (`NEXT BY next_action`), of a spec without errors."""
    if not any(trigger.startswith("/") for plan in made.tasks.values() for trigger in plan.edges):
        return ()
    program = sketch(made)
    try:
        gate = _gate(law.key, whole.policy, tuple(rules_of(program.axioms).items()))
    except PolicyError:
        return ()
    return tuple(prove(made, program, gate))


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
                found = nodes[step.id]
                entries = {entry.key: entry.value for entry in found.args}
                yield Fixed(task, "tool", step.name, args, _place(found, step), entries)
            elif plan.validator is not None:
                yield Fixed(task, "validate", step.name, args, plan.validator.at, {})


def _place(found: StepPlan, step: Step) -> Any:
    """The command line of a step, where it has one; else its kind."""
    command = next((entry for entry in found.args if isinstance(step.args.get(entry.key), CommandLine)), None)
    return command.value if command is not None else found.node.start + 3


def _plain(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as a run has them: without variables nothing of the state is asked for."""
    rendered = {name: render(value, None, None) for name, value in args.items()}  # type: ignore[arg-type]
    made: dict[str, Any] = canon.loads(canon.dumps(rendered))
    return made


def _checks(made: Outline) -> list[str]:
    """The validators that may pass in a run; all that there are where one of the spec's is not known."""
    chosen = [task for task in made.tasks.values() if "VALIDATOR" in task.settings]
    names = {task.validator_entry.name if task.validator_entry else "" for task in chosen}
    return sorted(made.catalog.validators if "" in names else names)


def _judge(rules: Rules, item: Fixed, checks: Sequence[str], approvers: Keys | None) -> Judged | None:
    """What will not be permitted; None where it will, or where that rests on more than the spec."""
    run = situation(rules, State(), item.task, item.name if item.act == "tool" else "")
    proposed = ProposedAction(
        item.act,
        item.name,
        item.args,
        run,
        moving(rules, State()),
        uses_of(rules.catalog, item.act, item.name),
    )
    passed = tuple(("checks_ran", (name, Name("/success"))) for name in checks)
    first: Judged | None = None
    for wanted in (proposed, proposed._replace(run=(*run, *passed))):
        first = None  # what is said is what stands against it when all checks have passed
        for world, leads in zip(WORLDS, ADDRESSES, strict=True):
            found = _denied(rules, wanted, world, leads, approvers)
            if found is None:
                return None
            first = first or found
    return first


def _denied(
    rules: Rules, proposed: ProposedAction, world: Guess, leads: str, approvers: Keys | None
) -> Judged | None:
    """The denial in a workspace where what the text leaves open is as the guess says, and a short name of a
    host leads to that address."""
    known: Facts = {}
    for rounds in range(ROUNDS):
        found = rules.gate.judge(proposed, known, rounds, quiet=False)
        if isinstance(found, Judged):
            break
        if set(found) - {"paths", "hosts"} or not all(map(is_bare, found.get("hosts", ()))):
            return None
        answers = {
            "hosts": [[host, [host if {".", ":"} & {*host} else leads]] for host in found.get("hosts", ())],
            "paths": [seen_json(text, decided(text) or world(text)) for text in found.get("paths", ())],
        }
        known = merged(
            known, canon.loads(canon.dumps({kind: rows for kind, rows in answers.items() if rows}))
        )
    else:
        return None
    if found.allow:
        return None
    if rules.program.approvals != "ask" or not rules.gate.approvable(proposed, known, SOMEBODY):
        return found
    can = approvers is None or rules.gate.approvable(proposed, known, approvers)
    return found._replace(allow="ask") if can else found._replace(code=NOBODY)


Guess = Callable[[str], Seen]
"""Where a path leads that its text does not decide."""


def _name(text: str) -> str:
    """A name of the path's own without anything that says what kind of file it is."""
    return canon.content_hash(posixpath.normpath(inside(text)))[:12].replace("-", "_")


WORLDS: tuple[Guess, ...] = (
    lambda text: Seen("inside", f"build/{_name(text)}", "file"),
    lambda text: Seen("inside", f"build/{_name(text)}", "folder"),
    lambda text: Seen("inside", f"build/{_name(text)}"),
    lambda text: Seen("inside", posixpath.normpath(inside(text)), "file"),
)
"""Guesses about all undecided paths of an action. A name that says nothing is the place that permits most."""
ADDRESSES = ("127.0.0.1", "10.0.0.1", "169.254.1.1", "1.1.1.1")
"""With each of them a guess about where a short name of a host leads."""


def _by_settings(judged: Judged) -> bool:
    """Whether a decision could change with a setting of CONFIG: hosts, and whether somebody is asked."""
    return (
        judged.allow == "ask" or judged.code == NOBODY or any(name == "asks_url" for name, _ in judged.facts)
    )


def _at(item: Fixed, judged: Judged) -> Any:
    """The argument that names a denied path; else where the action is."""
    bad = {
        str(args[3])
        for name, args in judged.facts
        if name == "uses_path" and str(args[2]) in ("/outside", "/refused", "/git")
    }
    for name, value in item.values.items():
        text = item.args.get(name)
        seen = decided(text) if isinstance(text, str) else None
        if seen is not None and seen.path in bad:
            return value
    return item.at


def _diagnostic(made: Outline, item: Fixed, judged: Judged) -> Diagnostic:
    start, end = made.report.offsets(_at(item, judged))
    if judged.allow == "ask":
        message = f"this will wait for an approval: {judged.reason}"
        hint = "an approver answers with spak approve"
        return made.spec.source.diagnostic(Severity.INFO, "lang.needs_approval", message, hint, start, end)
    if judged.code == NOBODY:
        message = f"this needs an approval that nobody can give: {judged.reason}"
        hint = "list who may approve, as `spak keys make NAME` prints it: [[approvals.keys]] in spak.toml"
        severity = Severity.WARNING
        return made.spec.source.diagnostic(severity, "lang.needs_approval", message, hint, start, end)
    code = f" [{judged.code}]"
    message = f"the policy will deny this: {judged.reason.replace(code, '')}{code}"
    hint = "do it another way"
    if judged.code != "policy.forbidden" and permissible(judged.facts):  # it wins over whatever permits
        hint += ", or have the operator's law ([policy] law) or the team's rules permit it"
    return made.spec.source.diagnostic(Severity.WARNING, "lang.denied", message, hint, start, end)


@by_size(1 << 18)
def _gate(law: bytes, spec: str, axioms: tuple[tuple[str, str], ...]) -> Gate:
    return Gate(compiled(Law.from_json(canon.loads(law)), spec, dict(axioms)))


def _by_task(gate: Gate) -> bool:
    """Whether the policy says different things to different tasks."""
    return ("in_task", 1) in gate.reads
