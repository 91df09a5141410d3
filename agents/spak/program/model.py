"""The dataclasses of the Program: the flat state machine that the kernel runs.

Frozen data that `compile` (build.py) makes from a Spec; it runs nothing and opens no file.

A TASK becomes a list of steps and a table of edges:

    tool      one tool call with arguments known but for variables
    ask       `llm.query`: a question whose answer becomes a variable
    plan      `llm.plan`, or a TASK without steps: a list of candidate tool calls; the kernel selects one and
              performs it under the same step id
    check     the conditions of `success:` and the values of `evaluation`, after the last step
    validate  the task's VALIDATOR, last of all; its measurement becomes the task's signal
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from spak.lang.catalog import OnFail

StepKind = Literal["tool", "ask", "plan", "check", "validate"]
Mode = Literal["stepwise", "semi_auto", "full_auto"]


@dataclass(frozen=True, slots=True)
class Ref:
    """A variable in a template: `fix_patch`, `last_tool_output`, `axiom.1`, `heuristic.1`, `goal`, `error`,
    `input.n`, `best.source`, `metric.latency_ms`."""

    path: str


@dataclass(frozen=True, slots=True)
class Template:
    """Text with variables; a `str` part stands for itself."""

    parts: tuple[str | Ref, ...]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The parsed `cmd:` of a tool: one template per argument, so that a variable is one argument.

    `whole` is set instead when the text is nothing but one variable: its value is a command line that is
    parsed when the step is entered.
    """

    argv: tuple[str | Template | Ref, ...] = ()
    whole: Ref | None = None


Value = (
    None
    | bool
    | int
    | float
    | str
    | Ref
    | Template
    | CommandLine
    | tuple["Value", ...]
    | Mapping[str, "Value"]
)
"""A value of a step's field: JSON, or a part that is filled in when the step is entered."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A condition that only the workspace can answer: `file_contains(path, text)`, `file_exists(path)`."""

    function: Literal["file_contains", "file_exists"]
    arguments: tuple[str | Template | Ref, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right`, op in == != < <= > >=; names are Refs (`exit_code.s1`, `metric.x`, variables)."""

    op: Literal["==", "!=", "<", "<=", ">", ">="]
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold."""

    item: Condition


@dataclass(frozen=True, slots=True)
class All:
    """All conditions hold."""

    items: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of the conditions holds."""

    items: tuple[Condition, ...]


Condition = Atom | Compare | Not | All | AnyOf


@dataclass(frozen=True, slots=True)
class Poll:
    """A tool step that is done again until it ends with exit 0, at most `limit` times, `every_ms` apart."""

    every_ms: int
    limit: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a task, compiled; `line` is that of the spec."""

    id: str
    kind: StepKind
    name: str = ""
    """Tool name as in the catalog (aliases resolved), validator name, or the model role of an ask or plan."""
    args: Mapping[str, Value] = field(default_factory=dict)
    output_var: str = ""
    metric: str = ""
    """A check of an evaluation: `metric.NAME`, which gets its output as well."""
    on_fail: OnFail | Literal[""] = "stop"
    """Empty in a plan that leaves it to the tool chosen."""
    line: int = 0
    poll: Poll | None = None


@dataclass(frozen=True, slots=True)
class Proposing:
    """Who fills a plan: a generator (`tuner`) or, with an empty name, the model backend or a person."""

    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricRule:
    """When a measurement is an improvement, and when a loop has had enough. All integers.

    A pair is a win when `margin_den * candidate < margin_num * incumbent`; improved at
    `3^wins >= evidence * 2^pairs`, not improved at `3^(pairs-wins) >= evidence * 2^pairs`, undecided at
    `max_pairs`. `plateau` after `patience` evaluations without improvement or at `evaluations` in all.
    Source: notes of the measurement trial; an e-process against the null of no gain (betting 1/2 each pair).
    """

    metric: str
    better: Literal["lower", "higher"] = "lower"
    margin_num: int = 99
    margin_den: int = 100
    evidence: int = 20
    max_pairs: int = 80
    patience: int = 5
    evaluations: int = 60


@dataclass(frozen=True, slots=True)
class Heuristic:
    """A text that is injected after a fail; `when` is a trigger or a code, empty for any."""

    text: str
    when: str = ""
    """Empty, or the trigger or error code at which alone it may be injected."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the Program."""

    name: str
    goal: str | Template = ""
    """A Template where it reads variables: it is filled in when the task is entered."""
    tools: tuple[str, ...] = ()
    """What its plans may choose from."""
    steps: tuple[Step, ...] = ()
    edges: Mapping[str, str] = field(default_factory=dict)
    success: Condition | None = None
    invariant: Condition | None = None
    proposing: Proposing = Proposing()
    rule: MetricRule | None = None
    retries: int = 3
    line: int = 0
    places: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """Where each step is in `steps`, by id; a task may have thousands, and every record asks for one."""
    askers: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """For each step, the place of the nearest question or plan at or before it; -1 for none."""

    def __post_init__(self) -> None:
        places: dict[str, int] = {}
        askers, last = [], -1
        for place, step in enumerate(self.steps):
            places.setdefault(step.id, place)
            last = place if step.kind in ("ask", "plan") else last
            askers.append(last)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "askers", tuple(askers))

    def step(self, name: str) -> Step | None:
        """The step of this id; None where there is none."""
        place = self.places.get(name)
        return None if place is None else self.steps[place]

    def asker(self, step: Step) -> Step | None:
        """The nearest question or plan at or before one of its steps."""
        place = self.askers[self.places[step.id]]
        return self.steps[place] if place >= 0 else None

    @property
    def terminal(self) -> bool:
        """Whether no edge leaves it."""
        return not self.edges

    @property
    def derived(self) -> bool:
        """Whether the law derives where its verdicts lead: `NEXT BY next_action`."""
        return any(trigger.startswith("/") for trigger in self.edges)

    @property
    def judged(self) -> bool:
        """Whether `success:` or a VALIDATOR decides; elsewhere the exits of its tools do."""
        return self.success is not None or any(step.kind == "validate" for step in self.steps)


@dataclass(frozen=True, slots=True)
class Budgets:
    """What a run may use up; each has a knob of the same name in BUDGET. 0 means no limit."""

    steps: int = 1000
    elapsed_ms: int = 3_600_000
    tokens: int = 0
    cost: int = 0
    """Micro-dollars."""
    watchdog: int = 3
    window: int = 12
    rollbacks: int = 3
    requests: int = 0
    request_bytes: int = 0
    low_percent: int = 80
    """Percent of `tokens` at which `budget_low` is given."""
    extend_percent: int = 0
    """Percent of each budget that extensions may add to it, all of a run together."""

    def extended(self, more: Mapping[str, int]) -> Budgets:
        """These budgets with what extensions added, by the names of the fields."""
        return (
            replace(self, **{name: getattr(self, name) + by for name, by in more.items()}) if more else self
        )


@dataclass(frozen=True, slots=True)
class Program:
    """A spec compiled into a flat state machine; all that a run needs of it."""

    name: str
    level: int
    start: str
    tasks: Mapping[str, Task]
    axioms: tuple[str, ...] = ()
    heuristics: tuple[Heuristic, ...] = ()
    predictions: tuple[str, ...] = ()
    memory: str = "FLUSH_ON_TRANSITION"
    sandbox: str = "RESTRICTED"
    mode: Mode | None = None
    auto_steps: int = 0
    """Stops of `semi_auto`: how many llm steps may pass before the run stops."""
    backend: str = ""
    approvals: Literal["deny", "ask"] = "deny"
    """Whether an action that a signed approval would permit waits for one."""
    hosts: tuple[str, ...] = ()
    """Hosts that requests may reach."""
    history: int = 0
    """Commits of the user's history that the scratch repository has (spak.repository.past)."""
    budgets: Budgets = Budgets()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    spec_hash: str = ""
