"""What a new run needs before its first record, wherever it is kept: on the command line or on the platform.

Takes a spec with its imports resolved and what was asked for; gives a Plan: the program, the host's adapters,
the mode, and the genesis body once the workspace is filled. Everything that is named is checked here. It
keeps nothing and writes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spak import canon, config, data
from spak.costs.prices import no_price
from spak.errors import SpecError, UnavailableError, UsageError, UserError
from spak.evolve.suites.sealed import Bench
from spak.kernel.foresee import moves
from spak.lang import Parsed, parse
from spak.lang.catalog import Catalog, backend_name
from spak.lang.checks import evolving
from spak.lang.checks.policy import check_law
from spak.lang.diagnostics import Severity
from spak.lang.imports import Resolved
from spak.lang.outline_builder import outline
from spak.lang.spec_files import folder_reader
from spak.llm import Redactor, redactor
from spak.own import asked, unmet
from spak.policy.law import Law, compiled, rules_of
from spak.ports import Asking, Backend, Priced, Prompt, Proposer, Sealed, Searching
from spak.program import Mode, Program
from spak.program import compile as compile_program
from spak.runner import SHIPPED, Host, Own, laws, searches
from spak.runner.answer_record import no_model
from spak.runner.genesis import genesis
from spak.runner.searches import Earlier

MODE_LEVELS: Mapping[Mode, int] = {"stepwise": 1, "semi_auto": 3, "full_auto": 4}
"""The LEVEL that a mode takes, as `check` has it for CONFIG."""
OWN = "own"
"""Of the first record's notes: what is there that does not ship, by name (`Own.marks`)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run that could begin."""

    whole: Resolved
    program: Program
    inputs: Mapping[str, Any]
    host: Host
    backend: str
    mode: Mode
    auto: int
    proposer: str
    approvers: Sequence[Mapping[str, Any]]
    law: Law
    problems: Mapping[str, str]
    searches: Mapping[str, Mapping[str, Any]]
    own: Own
    reached: Collection[str] = ()
    """Of backends and predicates of the operator, the names in `Own.marks` of those that are used."""

    def genesis(self, run: str, r3: str, seed: int | None = None, **about: Any) -> dict[str, Any]:
        """The body of the first record; `about` is for people and decides nothing."""
        used = config.used(config.catalog(self.own), self.program)
        reached = {*used.tools, *used.validators, *self.reached}
        own = {name: mark for name, mark in self.own.marks.items() if name in reached}
        host = {
            "run": run,
            "mode": self.mode,
            "auto_steps": self.auto,
            "backend": self.backend,
            "launcher": self.host.launcher.entry.name if self.host.launcher else "",
            "in_place": "",
            "toolchain": dict(config.versions()),
            "kernel_code": data.kernel_code(),
            **({OWN: own} if own else {}),
            **about,
        }
        return genesis(
            self.whole.parsed.text,
            used,
            self.inputs,
            r3,
            secrets.randbits(52) if seed is None else seed,
            host,
            self.proposer,
            self.whole.policy,
            rules_of(self.program.axioms),
            self.approvers,
            self.law,
            self.problems,
            self.searches,
            self.host.sealed.hash if self.host.sealed else "",
        )


def plan(
    whole: Resolved,
    inputs: Mapping[str, Any],
    *,
    mode: Mode | None = None,
    backend: str = "",
    proposer: str = "",
    sandbox: str = "",
    answering: Backend | None = None,
    approvers: Sequence[Mapping[str, Any]] | None = None,
    known: Collection[str] = (),
    law: Law | None = None,
    prior: Mapping[str, Earlier] | None = None,
    sealed: Sealed | None = None,
    own: Own = SHIPPED,
) -> Plan:
    """`known` are values of files of secrets in the workspace, which no record holds.

    `sandbox` is the least strict launcher that will do; `answering` takes the place of the configured
    backend, `approvers` that of the configured keys, `law` that of the shipped law with the configured one;
    `prior` has the searches of an earlier run by task; `sealed` are the checks that judge what it made;
    `own` is what the operator adds to what ships.

    Raises: SpecError `lang.invalid`, UsageError `usage.input`, `usage.mode` and `tuner.prior`,
    UnavailableError, RunError `llm.redaction`; PolicyError when the configured law does not load.
    """
    chosen, full = replace(config.settings(), least=sandbox), config.catalog(own)
    law = laws.for_spec(config.law(chosen) if law is None else law, whole.parsed.text, full.tools)
    recordable(inputs)
    whole, inputs = _clean(whole, inputs, redactor(chosen.llm).knowing(known))
    program = compile_program(whole.parsed, full, dict(inputs))
    lawful(whole, law, program, full)
    outside = asked_outside(whole, law, program, own)
    if proposer and proposer != "model" and proposer not in full.proposers:
        known = ", ".join([*sorted(full.proposers), "model"])
        raise UnavailableError(
            "unavailable.proposer", f"there is no proposer {proposer!r}", f"known: {known}"
        )
    host = replace(config.host(chosen, program, backend, own), sealed=sealed)
    if answering is not None:
        host = host.answered_by(answering)
    if host.backend is not None:
        host.backend.check()
        priced(program, host.backend, host.proposers)
    named = backend_name(backend or program.backend or chosen.backend)
    picked, auto = pick_mode(mode, whole.parsed, program, chosen, named)
    asked_by_proposers(program, host, picked, proposer)
    keys = chosen.approvers if approvers is None else approvers
    texts = problems_of(program, whole)
    begun = searches.begun(program, proposer, prior)
    backends = {f"backend {name}" for name in (named, *chosen.llm.backends())}
    return Plan(
        whole, program, dict(inputs), host, named, picked, auto, proposer, keys, law, texts, begun, own,
        backends | outside,
    )  # fmt: skip


def lacking(about: Mapping[str, Any], own: Own) -> UnavailableError | None:
    """Why a run with these notes cannot go on with these tools and validators."""
    for name, mark in about.get(OWN, {}).items():
        if name not in own.marks:
            why, hint = "is not here", "name its file or its package in [tools] of spak.toml"
        elif own.marks[name] != mark:
            why, hint = "is not the one that the run began with", "restore it, or start a new run"
        else:
            continue
        kind = name.partition(" ")[0]
        code = f"unavailable.{kind if kind != name else 'tool'}"
        return UnavailableError(code, f"{name} {why} ({mark})", hint)
    return None


def asked_outside(whole: Resolved, law: Law, program: Program, own: Own) -> set[str]:
    """The names in `Own.marks` of the predicates that a run's law asks and that do not ship.

    Raises: UnavailableError `unavailable.predicate` where nobody here answers one.
    """
    rules = rules_of(program.axioms)
    added = (*law.operator.values(), *law.team.values(), whole.policy, *rules.values())
    if not any("external" in text for text in added):
        return set()
    policy = compiled(law, whole.policy, rules)
    if error := unmet(policy, own):
        raise error
    return {f"predicate {name}" for name, _ in asked(policy)}


def marked(made: Plan, folder: Path) -> None:
    """Raises: SpecError `lang.invalid` where PROPOSER evolve would begin with a file in the folder whose
    marked blocks are wrong. One that is not there may be made by the run."""
    if all(task.proposing.name != evolving.EVOLVE for task in made.program.tasks.values()):
        return
    seen = outline(made.whole.parsed.spec, config.catalog())
    seen.report.found.clear()
    evolving.check_blocks(seen, folder_reader(folder / "spec"))
    for first in seen.report.found:
        where = f"{made.whole.parsed.name or 'the spec'}:{first.line}:{first.column}"
        message = f"{where}: {first.message} [{first.code}]"
        raise SpecError("lang.invalid", message, first.hint, tuple(seen.report.found))


def problems_of(program: Program, whole: Resolved) -> dict[str, str]:
    """The texts of the problems that validators of the program measure, by name."""
    from spak.validators import problems

    known = {**problems.shipped(), **whole.problems}
    steps = (step for task in program.tasks.values() for step in task.steps if step.kind == "validate")
    named = {step.args.get("problem", problems.USUAL) for step in steps if step.name in problems.MEASURED_BY}
    return {name: known[name] for name in sorted(map(str, named)) if name in known}


def asked_by_proposers(program: Program, host: Host, mode: Mode, proposer: str = "") -> None:
    """Raises: UnavailableError `unavailable.model` where a PROPOSER asks a model and only a person could;
    UsageError `usage.mode` where the run should stop at questions, which a PROPOSER's are not.

    `proposer` is the one that fills all plans, in the place of those that the program names.
    """
    for task in program.tasks.values():
        name = proposer or task.proposing.name
        if not isinstance(host.proposers.get(name), Asking) or all(
            step.kind != "plan" for step in task.steps
        ):
            continue
        if host.backend is None or host.backend.entry.name == "manual":
            raise no_model(name, task.name)
        if mode != "full_auto":
            raise UsageError(
                "usage.mode",
                f"PROPOSER {name} of TASK {task.name} asks a model without a stop, and the mode is {mode}",
                "--mode full_auto, or leave --mode and MODE out",
            )


def priced(
    program: Program,
    backend: Backend,
    proposers: Mapping[str, Proposer | Asking | Searching] = MappingProxyType({}),
) -> None:
    """Raises: UnavailableError `llm.no_price` where money is bounded and some question has no known price."""
    if not program.budgets.cost:
        return
    for task in program.tasks.values():
        for step in task.steps:
            asks = not task.proposing.name or isinstance(proposers.get(task.proposing.name), Asking)
            if step.kind == "ask" or (step.kind == "plan" and asks):
                asked = Prompt("", (), step.name, task=task.name)
                if not isinstance(backend, Priced) or backend.bound(asked, 0) is None:
                    raise no_price(task.name)


def _clean(
    whole: Resolved, inputs: Mapping[str, Any], without: Redactor
) -> tuple[Resolved, Mapping[str, Any]]:
    """The spec and the inputs as the first record may hold them: without secrets."""
    text = without.text(whole.parsed.text)
    if text != whole.parsed.text:
        whole = replace(whole, parsed=parse(text, whole.parsed.name))
    policy = without.text(whole.policy)
    problems = {name: without.text(text) for name, text in whole.problems.items()}
    if policy != whole.policy or problems != whole.problems:
        whole = replace(whole, policy=policy, problems=problems)
    return whole, without.value(inputs)


def lawful(whole: Resolved, law: Law, program: Program, known: Catalog) -> None:
    """Raises: SpecError `lang.invalid` when what the spec adds to the law does not load, or the
    moves that the law derives need not be one each, or need not end."""
    found = check_law(whole, law)
    if any(task.derived for task in program.tasks.values()):
        found = (*found, *moves(outline(whole.parsed.spec, known), whole, law))
    errors = [item for item in found if item.severity == Severity.ERROR]
    if errors:
        first = errors[0]
        where = f"{first.file or whole.parsed.name or 'the spec'}:{first.line}:{first.column}"
        raise SpecError("lang.invalid", f"{where}: {first.message} [{first.code}]", first.hint, found)


def recordable(inputs: Mapping[str, Any]) -> None:
    """Raises: UsageError `usage.input` for a value that no record can hold."""
    try:
        canon.dumps(dict(inputs))
    except UserError as error:
        raise UsageError("usage.input", f"--input: {error.message}", error.hint) from error


def level_of(parsed: Parsed) -> int:
    """The LEVEL that bounds the modes; without an AGENT, or where it names none, nothing does."""
    agent = parsed.spec.agent
    if agent is None or agent.level is None:
        return max(MODE_LEVELS.values())
    return int(agent.level.value)


def pick_mode(
    asked: Mode | None, parsed: Parsed, program: Program, chosen: config.Settings, backend: str
) -> tuple[Mode, int]:
    """The flag, else CONFIG, else spak.toml, else full_auto with a backend and stepwise with a person.

    An AGENT's LEVEL bounds it: a flag beyond is refused, a default falls back.

    Raises: UsageError `usage.mode`.
    """
    level = level_of(parsed)
    if asked is not None and MODE_LEVELS[asked] > level:
        raise UsageError(
            "usage.mode",
            f"LEVEL {level} of the AGENT does not allow mode {asked}",
            f"leave --mode out, or raise the AGENT to LEVEL {MODE_LEVELS[asked]}",
        )
    usual: Mode = "full_auto" if backend and backend != "manual" else "stepwise"
    wanted = asked or program.mode or chosen.mode or usual
    allowed = [mode for mode in config.MODES if MODE_LEVELS[mode] <= level]
    picked = wanted if wanted in allowed else allowed[-1]
    return picked, program.auto_steps or chosen.auto_steps or 1


def bench() -> Bench:
    """What the checks of a suite's cases run with here. Raises: UnavailableError `unavailable.sandbox`."""
    from spak.validators import VALIDATORS

    chosen = config.settings()
    return Bench(
        config.box(chosen),
        chosen.limits,
        config.toolchain(chosen.binds),
        {name: make() for name, make in VALIDATORS.items()},
    )
