"""The outline: a spec sorted into what check and compile ask for, with its names resolved.

Plain data, made by outline_builder.py out of a Spec and a Catalog, with what is wrong in its Report. Both
`check` and `compile` read this one outline, so that they cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from spak.lang import ast, values
from spak.lang.catalog import Catalog, NamedEntry, OnFail, ToolEntry, ValidatorEntry
from spak.lang.diagnostics import Severity
from spak.lang.report import Report

META = ("output_var", "on_fail", "poll", "role")
ASK_KEYS = ("role", "prompt", "prompt_template", "output_var", "on_fail")
ON_FAIL: tuple[OnFail, ...] = ("stop", "retry", "continue")


@dataclass(slots=True)
class StepPlan:
    """A step or an evaluation's check, its kind and tool found; `args` are the entries that are its own."""

    node: ast.Step | ast.Check
    kind: Literal["tool", "ask", "plan", ""]
    name: str = ""
    tool: ToolEntry | None = None
    args: tuple[ast.Entry, ...] = ()
    output_var: str = ""
    on_fail: OnFail | Literal[""] = ""
    poll: dict[str, Any] | None = None

    @property
    def evaluation(self) -> bool:
        """Whether it is a check of an evaluation."""
        return isinstance(self.node, ast.Check)


@dataclass(slots=True)
class Choice:
    """A validator or a proposer of a task, with its options."""

    name: str
    options: ast.MapValue | None
    at: ast.Value
    entry: ValidatorEntry | NamedEntry | None = None


@dataclass(slots=True)
class TaskPlan:
    """A task as it is understood, whatever is wrong with it."""

    node: ast.Task
    settings: dict[str, ast.Entry] = field(default_factory=dict)
    steps: list[StepPlan] = field(default_factory=list)
    checks: list[StepPlan] = field(default_factory=list)
    edges: dict[str, ast.Edge] = field(default_factory=dict)
    success: list[ast.Condition] = field(default_factory=list)
    invariant: list[ast.Condition] = field(default_factory=list)
    tools: dict[str, ToolEntry] = field(default_factory=dict)
    """TOOLS, by catalog name, in order: what its plans may choose from."""
    output: str = ""
    """OUTPUT: the variable that has what its plan's tool wrote, in a task without steps."""
    validator: Choice | None = None
    proposer: Choice | None = None
    space: dict[str, Any] = field(default_factory=dict)
    rule: dict[str, Any] = field(default_factory=dict)
    retries: int | None = None
    taken: set[str] = field(default_factory=set)
    """Names of its steps and checks."""

    @property
    def name(self) -> str:
        """The task's name."""
        return self.node.name

    @property
    def validator_entry(self) -> ValidatorEntry | None:
        """The validator of the task, where it is known."""
        entry = self.validator.entry if self.validator else None
        return entry if isinstance(entry, ValidatorEntry) else None

    @property
    def judged(self) -> bool:
        """Whether `success:` or a VALIDATOR decides; elsewhere the exits of its tools do."""
        return bool(self.success) or self.validator is not None

    @property
    def step_tools(self) -> dict[str, ToolEntry]:
        """The tools of its steps and of the checks of its evaluation, by catalog name, in order."""
        used = (step.tool for step in (*self.steps, *self.checks))
        return {tool.name: tool for tool in used if tool is not None}

    @property
    def all_tools(self) -> dict[str, ToolEntry]:
        """Everything that it may use."""
        return self.tools | self.step_tools

    @property
    def empty(self) -> bool:
        """Whether it has nothing to do and nothing that says what it is for."""
        return not (self.steps or self.checks or self.judged or self.tools or "GOAL" in self.settings)

    @property
    def plans(self) -> bool:
        """True when the task leaves a choice of tool calls to a proposer and names no steps."""
        return not self.steps and bool(self.tools)


@dataclass(slots=True)
class Outline:
    """A spec as it is understood, whatever is wrong with it; `report` has the diagnostics."""

    spec: ast.Spec
    catalog: Catalog
    report: Report
    name: str = ""
    level: ast.Number | None = None
    start: ast.Start | None = None
    config: dict[str, Any] = field(default_factory=dict)
    budget: dict[str, Any] = field(default_factory=dict)
    proposer: Choice | None = None
    inputs: dict[str, values.Input] = field(default_factory=dict)
    export: str = ""
    axioms: list[str] = field(default_factory=list)
    heuristics: list[tuple[str, str]] = field(default_factory=list)
    predictions: list[str] = field(default_factory=list)
    tasks: dict[str, TaskPlan] = field(default_factory=dict)
    partial: bool = False
    """True when an IMPORT was not followed."""

    @property
    def broken(self) -> bool:
        """True when the text did not parse whole: what is missing may only have been lost."""
        source = self.spec.source
        return (
            self.partial or source.partial or any(item.severity is Severity.ERROR for item in source.problems)
        )
