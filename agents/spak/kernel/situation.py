"""The facts of a run around an action: what the policy may know besides the action and the world.

Takes the rules, the state and the act; gives facts, of predicates that the policy reads and of no others.
They come from the Program and from the registers, so that a replay states the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spak.datalog.values import Fact, Name
from spak.diagnostics import SEVERITIES
from spak.kernel.gate import MOVING
from spak.kernel.outcomes import BEGINNING, SEALED
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.policy.facts import ACTION
from spak.program import Task

MAX_DIAGNOSTICS = 50
MAX_TEXT = 400
BUDGETS = tuple(
    Name(f"/{what}") for what in ("steps", "tokens", "elapsed_ms", "requests", "request_bytes", "cost")
)
"""What is counted; `/cost` in micro-dollars, what was spent of it rounded up."""
_FILES = {BEGINNING: Name("/beginning"), SEALED: Name("/sealed")}
"""Which files a check ran on, where they are not the run's: those of its beginning with its ordinary changes,
or the run's with sealed ones."""


NO_CHECK = "No Check Ran"
"""The reason of `block_commit` that says nothing against the files: whoever takes them is asked."""


def situation(rules: Rules, state: State, task: Task, tool: str) -> tuple[Fact, ...]:
    """The facts, in a fixed order. `tool` is the tool that is to be called, or empty."""
    r7 = state.r7
    same = _widened(fixed(rules, task, tool), r7.extended)
    if not (r7.diagnostics or r7.checks or r7.moves[0]):
        return same
    read = (fact for fact in moves(state) if (fact[0], 1) in rules.gate.reads)
    return (*same, *read, *found(rules, state))


def _widened(facts: tuple[Fact, ...], more: Mapping[str, int]) -> tuple[Fact, ...]:
    """The facts with each allowance as extensions made it."""
    if not more:
        return facts
    return tuple(_wider(fact, more) for fact in facts)


def _wider(fact: Fact, more: Mapping[str, int]) -> Fact:
    name, args = fact
    if name != "allowance" or not isinstance(args[1], int):
        return fact
    return name, (args[0], args[1] + more.get(str(args[0]).removeprefix("/"), 0))


def moves(state: State) -> Iterator[Fact]:
    """What the law derived last (`NEXT BY next_action`), and how often that followed a failure."""
    action, retries = state.r7.moves
    if action:
        yield "last_action", (Name(action),)
    yield "retry_count", (retries,)


def fixed(rules: Rules, task: Task, tool: str) -> tuple[Fact, ...]:
    """Those of them that are the same whenever the run comes to this task and tool."""
    kept = rules.situations.get((task.name, tool))
    if kept is None:
        reads = rules.gate.reads
        kept = tuple(fact for fact in _fixed(rules, task, tool) if (fact[0], len(fact[1])) in reads)
        rules.situations[task.name, tool] = kept
    return kept


def moving(rules: Rules, state: State) -> tuple[Fact, ...]:
    """The facts that change with each step: what was used up."""
    if MOVING not in rules.gate.reads:
        return ()
    spent = (
        state.r1.steps,
        state.r2,
        state.r1.elapsed_ms,
        state.r7.requests,
        state.r7.request_bytes,
        -(-state.r7.cost // 1000),
    )
    return tuple(("spent", (what, used)) for what, used in zip(BUDGETS, spent, strict=True))


def _fixed(rules: Rules, task: Task, tool: str) -> Iterator[Fact]:
    program = rules.program
    yield "in_task", (task.name,)
    yield "at_level", (program.level,)
    for host in program.hosts:
        yield "allowed_host", (host,)
    yield from _sealed(rules)
    if tool:
        for name in sorted({_canonical(rules, name) for name in (*task.tools, tool)}):
            yield "declared_tool", (Name("/" + name),)
        entry = rules.catalog.tool(tool)
        # The least that holds it: no host starts a run with a launcher below CONFIG's SANDBOX (spak.config).
        inside = entry is not None and entry.sandboxed
        yield "sandboxed", (ACTION, Name("/" + program.sandbox.lower() if inside else "/none"))
    budgets = program.budgets
    allowed = (
        budgets.steps,
        budgets.tokens,
        budgets.elapsed_ms,
        budgets.requests,
        budgets.request_bytes,
        budgets.cost,
    )
    for what, most in zip(BUDGETS, allowed, strict=True):
        if most:
            yield "allowance", (what, most)


def found(rules: Rules, state: State) -> Iterator[Fact]:
    """What the last results said; the state holds none of it that the policy does not read."""
    for severity, file, line, code, message in state.r7.diagnostics:
        yield "diagnostic", (Name("/" + severity), file, line, code, message)
    checks = state.r7.checks
    own = ((name, Name("/" + signal)) for name, of, signal in checks if not of.startswith(BEGINNING))
    for args in dict.fromkeys(own):
        yield "checks_ran", args
    if ("checks_ran_on", 3) in rules.gate.reads:
        ran = ((_files(of), Name("/" + signal)) for _, of, signal in checks)
        for files, signal in dict.fromkeys(ran):
            yield "checks_ran_on", (state.r3, files, signal)


def _files(of: str) -> Name:
    return next((name for kind, name in _FILES.items() if of.startswith(kind)), Name("/own"))


def _sealed(rules: Rules) -> Iterator[Fact]:
    if rules.sealed:
        yield "sealed_checks", (rules.sealed,)


def blocked(rules: Rules, state: State) -> tuple[str, ...]:
    """Why nothing of a run's files may leave now, as the law says it (`block_commit`), but that no check
    ran."""
    session = rules.gate.policy.session((*_sealed(rules), *found(rules, state)))
    while open_ := session.requests():
        for request in open_:
            session.supply(request, ())
    reasons = (str(reason) for (reason,) in session.query("block_commit", None))
    return tuple(sorted(reason for reason in reasons if reason != NO_CHECK))


def diagnostics(listed: Any) -> tuple[tuple[str, str, int, str, str], ...]:
    """The diagnostics of a result, as the state keeps them: the first ones, their texts cut."""
    kept = []
    for item in listed[:MAX_DIAGNOSTICS] if isinstance(listed, list) else ():
        if not isinstance(item, dict):
            continue
        severity, line = item.get("severity"), item.get("line")
        kept.append(
            (
                severity if severity in SEVERITIES else "error",
                _text(item.get("file")),
                line if type(line) is int else 0,
                _text(item.get("code")),
                _text(item.get("message")),
            )
        )
    return tuple(dict.fromkeys(kept))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("head")  # a text too long to hold
    return value[:MAX_TEXT] if isinstance(value, str) else ""


def _canonical(rules: Rules, name: str) -> str:
    entry = rules.catalog.tool(name)
    return name if entry is None else entry.name
