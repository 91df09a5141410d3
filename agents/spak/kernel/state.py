"""State: the registers R0-R7 and the pending effect; everything that `step` knows besides its rules.

Frozen data; it is never stored whole, since replay makes it again from the ledger. Its size does not grow
with the length of a run: the watchdog window, the variables and the fired heuristics are bounded by the
Program. Source: seed 001 (register map), DESIGN.md section 4.

    R0 program counter      R1 watchdog          R2 context budget    R3 workspace root
    R4 error                R5 last tool         R6 transaction       R7 executive metadata
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

from spak.kernel import watchdog
from spak.kernel.memory import Memory
from spak.policy.history import state as history
from spak.policy.history.state import History
from spak.program import Budgets

PUT_OFF = 64

Status = Literal["new", "running", "succeeded", "failed", "refused", "cancelled"]
Act = Literal["tool", "ask", "plan", "check", "validate", "observe", "approve", "sealed"]
EffectClass = Literal["pure", "costly", "effect", "ask"]


class Counter(NamedTuple):
    """R0. `attempt` counts the permits of the whole run, so that no two permits are alike."""

    task: str = ""
    step: str = ""
    attempt: int = 0


class Watchdog(NamedTuple):
    """R1. `window` holds the last marks of results (spak.kernel.watchdog)."""

    elapsed_ms: int = 0
    steps: int = 0
    window: tuple[str, ...] = ()


class LastTool(NamedTuple):
    """R5."""

    name: str = ""
    schema: str = ""


class Effect(NamedTuple):
    """What `step` asks the runner to do, and R6 while it is under way.

    `id` is the content of its permit. `args` is JSON in which `{"$blob": hash, "size": n}` stands for a value
    too long to hold and `{"$text": [parts]}` for text with such values inside. `root` is R3 before it.
    """

    id: str
    act: Act
    name: str
    cls: EffectClass
    task: str
    step: str
    attempt: int
    args: Mapping[str, Any]
    root: str
    watch: tuple[Mapping[str, Any], ...] = ()
    """Invariant atoms `{function, args}` to be answered after a tool, in order."""
    seed: int = 0
    turn: int = 0
    due: int = 0
    """Unix milliseconds before which the runner does not do it: it is a poll after another one."""
    rivals: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """Measured files as blobs, for a measurement and for a generator's plan."""
    items: tuple[Mapping[str, Any], ...] = ()
    """Prompt items of an ask or a plan, in order: `{role, name, text}`."""
    prefix: int = 0
    """How many of them, from the first on, the next prompt of the task begins with as well."""
    counted: bool = False
    """Whether the prompt's tokens were counted and it may be sent."""
    observed: Mapping[str, Any] = MappingProxyType({})
    """What was seen of the world (spak.kernel.observed): the permission rests on it. An `observe` effect has
    what was seen so far, and its args are `{act, args, questions}`."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A measured candidate worth remembering: its metric, its files as blobs, its place in the run."""

    value: int
    files: Mapping[str, str]
    evaluation: int
    params: Mapping[str, Any] = field(default_factory=dict)
    per_unit: int = 0
    """How many of the value make one of the unit that people read; 0 where the validator said nothing."""


@dataclass(frozen=True)
class Executive:
    """R7."""

    summary: str = ""
    last: str = ""
    """Content of the last commit: evidence for a refusal."""
    fails: int = 0
    retries: int = 0
    """Retries left in the current task."""
    rollbacks: tuple[str, int] = ("", 0)
    due: tuple[str, ...] = ()
    """Signal and code of the last fail, until a heuristic has answered it."""
    fired: tuple[int, ...] = ()
    depth: int = 0
    """Tasks that were entered so far, the present one with them."""
    polls: int = 0
    """Polls of the current step that did not end with exit 0."""
    turns: int = 0
    """Plans that the current task asked for."""
    evaluations: int = 0
    stale: int = 0
    best: Mark | None = None
    baseline: Mark | None = None
    runner_up: Mark | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    """What a plan is shown of what happened (spak.kernel.memory); bounded."""
    codes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    knob: str = ""
    requests: int = 0
    """Requests that tools sent, and the bytes of them, as recorded."""
    request_bytes: int = 0
    diagnostics: tuple[tuple[str, str, int, str, str], ...] = ()
    """(severity, file, line, code, message) of the last result at the present R3; bounded."""
    checks: tuple[tuple[str, str, str], ...] = ()
    """(validator, options, signal) of the present files, by name and options (their content hash)."""
    usage: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """By task: answers of models, their tokens, their cost in nano-dollars, as recorded."""
    stopped: str = ""
    """Why a metric loop had enough: `patience`, `evaluations` or `space`."""
    goal: Any = ""
    """The GOAL of the current task with its variables filled in, where it reads any."""
    history: History = field(default=History())
    """What the policy's folds keep of the run (spak.policy.history); bounded."""
    extended: Mapping[str, int] = field(default_factory=dict)
    """What extensions added to each budget, by the names of Budgets."""
    low: bool = False
    """Whether the tokens have passed `low_percent` of their budget."""
    low_due: tuple[str, ...] = ()
    """Where `budget_low` is still to be taken (spak.kernel.budget)."""
    put_off: tuple[tuple[str, str], ...] = ()
    """Permits that asked for an approval and were denied before a person answered, each with the hash of its
    action (spak.policy.approval); the newest PUT_OFF."""
    moves: tuple[str, int] = ("", 0)
    """The last action that the law derived, and how many of its moves followed a failure."""

    @property
    def cost(self) -> int:
        """Nano-dollars of the run."""
        return sum(cost for _, _, cost in self.usage.values())


@dataclass(frozen=True)
class State:
    """The registers. `change` makes the next one."""

    status: Status = "new"
    run: str = ""
    """The run's own id, which approvals name; it is in no commit."""
    r0: Counter = field(default=Counter())
    r1: Watchdog = field(default=Watchdog())
    r2: int = 0
    r3: str = ""
    r4: Mapping[str, Any] | None = None
    r5: LastTool = field(default=LastTool())
    r6: Effect | None = None
    r7: Executive = Executive()

    @property
    def summary(self) -> str:
        """The summary of all commits so far."""
        return self.r7.summary

    @property
    def ended(self) -> bool:
        """Whether the run has its last commit."""
        return self.status not in ("new", "running")


T = TypeVar("T", State, Executive)


def change(item: T, **changes: Any) -> T:
    """`changed`, with the fields by name."""
    return changed(item, changes)


def changed(item: T, changes: Mapping[str, Any]) -> T:
    """`dataclasses.replace`, five times as fast: a step does it ten times, and a frozen object is made
    slowly, field by field (the small registers are tuples for the same reason)."""
    values = item.__dict__.copy()
    count = len(values)
    values.update(changes)
    if len(values) > count:
        raise TypeError(f"{type(item).__name__} has not all of: {', '.join(changes)}")
    made = object.__new__(type(item))
    object.__setattr__(made, "__dict__", values)
    return made


def registers(state: State, budgets: Budgets | None = None) -> dict[str, Any]:
    """The registers as JSON, for `spak show` and pages; with the spec's budgets also what is left of them,
    `null` where there is no limit. Source: seed 001 (register map)."""
    pending, dog, r7 = state.r6, state.r1, state.r7
    given = (budgets or Budgets(steps=0, elapsed_ms=0)).extended(r7.extended if budgets else {})
    return {
        "R0": state.r0._asdict(),
        "R1": {
            "elapsed_ms": dog.elapsed_ms,
            "deadline_ms": given.elapsed_ms or None,
            "steps": dog.steps,
            "steps_left": _left(given.steps, dog.steps),
            "loops": watchdog.turn(dog.window).times,
            "loop_limit": given.watchdog,
            "window": list(dog.window),
        },
        "R2": {"used": state.r2, "remaining": _left(given.tokens, state.r2)},
        "R3": state.r3,
        "R4": state.r4,
        "R5": state.r5._asdict(),
        "R6": None
        if pending is None
        else {
            "id": pending.id,
            "act": pending.act,
            "name": pending.name,
            "class": pending.cls,
            "root": pending.root,
        },
        "R7": {
            "task_id": state.r0.task,
            "depth": r7.depth,
            "tokens": state.r2,
            **_executive(r7),
            "memory": _memory(r7.memory),
            "history": history.to_data(r7.history),
        },
    }


def _executive(r7: Executive) -> dict[str, Any]:
    """As `asdict` has it, which copies every value to its ground: these are not changed by anybody."""
    found = r7.__dict__.copy()
    for name in ("params", "metrics", "variables", "usage", "extended"):
        found[name] = dict(found[name])
    for name in ("best", "baseline", "runner_up"):
        found[name] = None if found[name] is None else asdict(found[name])
    return found


def _left(limit: int, used: int) -> int | None:
    """What is left of a budget, never below 0; None where there is no limit."""
    return max(limit - used, 0) if limit else None


def _memory(memory: Memory) -> dict[str, Any]:
    """What the memory holds, by number: the texts themselves are what a prompt shows."""
    return {
        "fresh": [item.ref for item in memory.fresh],
        "references": [item.ref for block in memory.blocks for item in block],
        "folded": memory.folded,
    }
