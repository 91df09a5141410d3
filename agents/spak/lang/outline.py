"""The outline: a spec sorted into what check and compile ask for, with its names resolved.

Takes a Spec and a Catalog; gives an Outline and, in its Report, what is wrong with the structure: keys that
nobody knows, things twice or in the wrong place, values that do not fit their setting, names that the catalog
does not have. Both `check` and `compile` read this one outline, so that they cannot disagree. What depends on
the graph or on variables is looked at later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spak.lang import ast, settings, values
from spak.lang.catalog import Catalog, NamedEntry, ToolEntry, ValidatorEntry
from spak.lang.diagnostics import Edit, Severity
from spak.lang.lookalike import odd, reading
from spak.lang.near import did_you_mean, nearest
from spak.lang.report import Report
from spak.lang.schema import violations

MAX_TASKS = 2000
META = ("output_var", "on_fail", "role")
ASK_KEYS = ("role", "prompt", "prompt_template", "output_var", "on_fail")
ON_FAIL = ("stop", "retry", "continue")
_AGENT_WORDS = ("TASK", "SYSTEM_MODEL", "START", "CONFIG", "POLICY", "INPUTS", "IMPORT")
_TASK_WORDS = ("STEP", "NEXT", "SUCCESS", "INVARIANT", "EVALUATION")


@dataclass(slots=True)
class StepPlan:
    """A step or an evaluation's check, its kind and tool found; `args` are the entries that are its own."""

    node: ast.Step | ast.Check
    kind: Literal["tool", "ask", "plan", ""]
    name: str = ""
    tool: ToolEntry | None = None
    args: tuple[ast.Entry, ...] = ()
    output_var: str = ""
    on_fail: str = ""

    @property
    def evaluation(self) -> bool:
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
    node: ast.Task
    settings: dict[str, ast.Entry] = field(default_factory=dict)
    steps: list[StepPlan] = field(default_factory=list)
    checks: list[StepPlan] = field(default_factory=list)
    edges: dict[str, ast.Edge] = field(default_factory=dict)
    success: list[ast.Condition] = field(default_factory=list)
    invariant: list[ast.Condition] = field(default_factory=list)
    tools: dict[str, ToolEntry] = field(default_factory=dict)
    """By catalog name, in order; TOOLS where the task has it, else what its steps use."""
    validator: Choice | None = None
    proposer: Choice | None = None
    space: dict[str, Any] = field(default_factory=dict)
    rule: dict[str, Any] = field(default_factory=dict)
    retries: int | None = None
    taken: set[str] = field(default_factory=set)
    """Names of its steps and checks."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def validator_entry(self) -> ValidatorEntry | None:
        entry = self.validator.entry if self.validator else None
        return entry if isinstance(entry, ValidatorEntry) else None

    @property
    def plans(self) -> bool:
        """True when the task leaves a choice of tool calls to a proposer and names no steps."""
        return not self.steps and bool(self.tools)


@dataclass(slots=True)
class Outline:
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


def outline(spec: ast.Spec, catalog: Catalog) -> Outline:
    """Sort the spec."""
    made = Outline(spec, catalog, Report(spec.source))
    _Sorter(made).sort()
    return made


class _Sorter:
    def __init__(self, made: Outline) -> None:
        self.made = made
        self.catalog = made.catalog
        self.report = made.report

    # ---- the file and the agent

    def sort(self) -> None:
        spec, report = self.made.spec, self.report
        agents = [item for item in spec.items if isinstance(item, ast.Agent)]
        for extra in agents[1:]:
            report.error(
                "lang.many_agents", f"a second AGENT '{extra.name}'", "one file is one agent", extra.start + 1
            )
        agent = agents[0] if agents else None
        outside = [item for item in spec.items if not isinstance(item, ast.Agent)]
        if agent is not None:
            self.made.name, self.made.level = agent.name, agent.level
            self.check_name(agent.name, agent.start + 1, "an agent")
        for item in outside:
            if agent is not None and (isinstance(item, ast.Task) or self.is_setting(item)):
                report.error(
                    "lang.misplaced",
                    "this stands outside of the AGENT",
                    "move it inside its braces",
                    item.start,
                )
        self.sort_agent([*outside, *(agent.items if agent else ())])
        if agent is None:
            self.made.name = next(iter(self.made.tasks), "")
        if not self.made.tasks and not self.made.broken:
            hint = (
                'AGENT Name LEVEL 1 { START -> a TASK a { GOAL "..." TOOLS [run] } }, or task a { step ... }'
            )
            report.error("lang.empty", "no task: there is nothing to run", hint, agent.start if agent else 0)

    def is_setting(self, item: ast.TopItem) -> bool:
        return isinstance(item, ast.Entry) and settings.find("agent", item.key) is not None

    def sort_agent(self, items: Iterable[ast.AgentItem | ast.TopItem]) -> None:
        items = list(items)
        tasks = [item for item in items if isinstance(item, ast.Task)]
        entries = [item for item in items if isinstance(item, ast.Entry)]
        for item in items:
            if isinstance(item, ast.SystemModel):
                self.sort_model(item)
            elif isinstance(item, ast.Start):
                if self.made.start is not None:
                    self.report.error("lang.duplicate_key", "START is given twice", "keep one", item.start)
                else:
                    self.made.start = item
        self.sort_agent_settings(entries)
        for index, task in enumerate(tasks):
            if index == MAX_TASKS:
                hint = "split the agent"
                self.report.error("lang.too_many_tasks", f"more than {MAX_TASKS} tasks", hint, task.start + 1)
                break
            if self.report.full:
                break
            self.sort_task(task)

    def sort_agent_settings(self, entries: list[ast.Entry]) -> None:
        imports = [entry for entry in entries if entry.key.upper() == "IMPORT"]
        rest = [entry for entry in entries if entry.key.upper() != "IMPORT"]
        found = self.known(rest, "agent", _AGENT_WORDS, opaque=True)
        if imports and not self.report.source.partial:
            self.made.partial = True
            hint = "what it brings is unknown here: check the file where it lies"
            self.report.error("lang.import_unresolved", "IMPORT was not followed", hint, imports[0])
        if "POLICY" in found:
            self.plain_setting(found["POLICY"], "agent")
            hint = "the run carries its text; a tool runs if TOOLS lists it and a launcher is there"
            self.report.warn(
                "lang.policy_unused", "this version does not evaluate POLICY yet", hint, found["POLICY"]
            )
        if "INPUTS" in found:
            self.made.inputs = values.inputs(found["INPUTS"].value, self.report)
        if "CONFIG" in found:
            self.sort_config(found["CONFIG"])

    def sort_config(self, block: ast.Entry) -> None:
        for key, entry in self.block(block, "config").items():
            if key == "BUDGET":
                self.made.budget = self.plain_block(entry, "budget")
            elif key == "PROPOSER":
                self.made.proposer = self.choice(entry, "proposers")
            elif key == "SANDBOX":
                self.made.config[key] = self.sandbox(entry)
            elif key == "BACKEND":
                choice = self.choice(entry, "backends")
                self.made.config[key] = choice.name if choice else ""
            else:
                self.made.config[key] = self.plain_setting(entry, "config")

    def sandbox(self, entry: ast.Entry) -> str:
        word = self.word(entry)
        names = dict.fromkeys([*settings.SANDBOXES, *(name.upper() for name in self.catalog.launchers)])
        if word and word.upper() not in names:
            hint = did_you_mean(word, names) or f"known: {', '.join(names)}"
            fix = self.report.replace(entry.value, nearest(word, names))
            self.report.error("lang.unknown_launcher", f"unknown sandbox '{word}'", hint, entry.value, fix)
        return word.upper()

    def sort_model(self, model: ast.SystemModel) -> None:
        for item in model.items:
            match item:
                case ast.Axiom():
                    self.made.axioms.append(item.text.value)
                case ast.Heuristic():
                    self.made.heuristics.append((item.text.value, item.when.value if item.when else ""))
                case ast.Prediction():
                    self.made.predictions.append(item.text.value)
                case ast.Entry():
                    self.unknown_key(item, ("AXIOM", "HEURISTIC", "PREDICTION"), "a SYSTEM_MODEL")

    # ---- a task

    def sort_task(self, node: ast.Task) -> None:
        task = TaskPlan(node)
        self.check_name(node.name, node.start + 1, "a task")
        if node.name and node.name in self.made.tasks:
            hint = f"the first is on {self.report.source.where(self.made.tasks[node.name].node.start)}"
            self.report.error("lang.duplicate_task", f"a second task '{node.name}'", hint, node.start + 1)
        elif node.name:
            self.made.tasks[node.name] = task
        entries = [item for item in node.items if isinstance(item, ast.Entry)]
        task.settings = self.known(entries, "task", _TASK_WORDS)
        self.sort_task_settings(task)
        joined: list[ast.Condition] | None = None
        for item in node.items:
            if self.report.full:
                return
            match item:
                case ast.Step():
                    self.sort_step(task, item, task.steps)
                case ast.Evaluation():
                    for check in item.items:
                        self.sort_step(task, check, task.checks)
                case ast.Next():
                    self.sort_edges(task, item)
                case ast.Success():
                    joined = task.success
                    joined.append(item.condition)
                case ast.Invariant():
                    joined = task.invariant
                    joined.append(item.condition)
                case ast.BareCondition(condition=ast.Call(name=name)) if settings.find("task", name):
                    hint = settings.example(name.upper())
                    self.report.error("lang.value", f"{name} takes no parentheses", hint, item)
                case ast.BareCondition():
                    if joined is None:
                        hint = "write success: or invariant: before it"
                        self.report.error("lang.condition", "a condition that belongs to nothing", hint, item)
                        joined = task.success
                    joined.append(item.condition)
        self.settle_tools(task)

    def sort_task_settings(self, task: TaskPlan) -> None:
        found = task.settings
        if "GOAL" in found:
            self.plain_setting(found["GOAL"], "task")
        if "TOOLS" in found:
            self.sort_tools(task, found["TOOLS"])
        if "VALIDATOR" in found:
            task.validator = self.choice(found["VALIDATOR"], "validators")
        task.proposer = (
            self.choice(found["PROPOSER"], "proposers") if "PROPOSER" in found else self.made.proposer
        )
        if "SPACE" in found:
            task.space = values.space(found["SPACE"].value, self.report)
        if "RETRIES" in found:
            retries = self.plain_setting(found["RETRIES"], "task")
            task.retries = retries if isinstance(retries, int) else None
        for key, place in (("BUDGET", "task budget"), ("RULE", "rule")):
            if key in found:
                task.rule |= self.plain_block(found[key], place)

    def sort_tools(self, task: TaskPlan, entry: ast.Entry) -> None:
        if not isinstance(entry.value, ast.ListValue):
            if self.missing(entry):
                return
            start, end = self.report.offsets(entry.value)
            fix = ((start, start, "["), (end, end, "]"))
            self.report.error("lang.value", "TOOLS wants a list", "TOOLS [cc, run]", entry.value, fix)
            items: tuple[ast.Value, ...] = (entry.value,)
        else:
            items = entry.value.items
        for item in items:
            if not isinstance(item, (ast.Name, ast.Text)):
                self.report.error("lang.value", "a tool is a name", "TOOLS [cc, run]", item)
            elif item.value and (tool := self.tool(item.value, item)) is not None:
                task.tools[tool.name] = tool

    def sort_edges(self, task: TaskPlan, node: ast.Next) -> None:
        for edge in node.items:
            if edge.trigger and edge.trigger in task.edges:
                hint = "one trigger leads to one task"
                self.report.error(
                    "lang.duplicate_trigger", f"'{edge.trigger}' is routed twice", hint, edge.start
                )
            elif edge.trigger and edge.target:
                task.edges[edge.trigger] = edge

    def settle_tools(self, task: TaskPlan) -> None:
        """Tools of steps must be in TOOLS where the task has it; else they are its tools."""
        used = [step for step in (*task.steps, *task.checks) if step.tool is not None]
        if "TOOLS" not in task.settings:
            task.tools |= {step.tool.name: step.tool for step in used if step.tool is not None}
        for step in used:
            if step.tool is not None and step.tool.name not in task.tools:
                hint = f"add {step.tool.name} to TOOLS, or leave TOOLS out"
                message = f"'{step.tool.name}' is not in TOOLS of task '{task.name}'"
                fix = self.listed(task, step.tool.name)
                self.report.error("lang.tool_not_listed", message, hint, step.node.start + 3, fix)
        for step in task.steps:
            if step.kind == "plan" and "TOOLS" not in task.settings:
                hint = "TOOLS [cc, write_file]: what the plan may choose from"
                self.report.error("lang.no_tools", "llm.plan needs TOOLS", hint, step.node.start + 3)

    def listed(self, task: TaskPlan, tool: str) -> tuple[Edit, ...] | None:
        """The fix that adds a tool to the task's TOOLS."""
        value = task.settings["TOOLS"].value
        if not isinstance(value, ast.ListValue):
            return None
        end = self.report.offsets(value.items[-1] if value.items else value.start)[1]
        return ((end, end, f", {tool}" if value.items else tool),)

    # ---- a step

    def sort_step(self, task: TaskPlan, node: ast.Step | ast.Check, into: list[StepPlan]) -> None:
        self.check_name(node.name, node.start + 1, "a step")
        if node.name in task.taken:
            hint = "steps and checks of a task have names of their own"
            self.report.error("lang.duplicate_step", f"a second step '{node.name}'", hint, node.start + 1)
            return
        if node.name:
            task.taken.add(node.name)
        step = StepPlan(node, "")
        family, _, rest = node.kind.partition(".")
        if family == "tool" and rest:
            step.kind, step.tool = "tool", self.tool(rest, node.start + 3)
            step.name = step.tool.name if step.tool else rest
        elif family == "llm" and rest:
            step.kind = "plan" if rest == "plan" else "ask"
            step.name = "" if rest in ("plan", "query") else rest
        elif node.kind:
            hint = did_you_mean(family, ("tool", "llm")) or "a step is tool.NAME { ... } or llm.NAME { ... }"
            self.report.error(
                "lang.unknown_step", f"unknown kind of step '{node.kind}'", hint, node.start + 3
            )
        if step.evaluation and step.kind == "plan":
            hint = "check name: tool.run { ... } or llm.query { ... }"
            self.report.error("lang.unknown_step", "an evaluation can not plan", hint, node.start + 3)
        self.sort_fields(step)
        into.append(step)

    def sort_fields(self, step: StepPlan) -> None:
        args = []
        for entry in values.entries(step.node.body, self.report):
            if entry.key == "output_var":
                step.output_var = self.variable(entry)
            elif entry.key == "on_fail":
                step.on_fail = self.on_fail(entry)
            elif entry.key == "role" and step.kind in ("ask", "plan"):
                step.name = self.word(entry)
            elif step.kind == "ask" and entry.key not in ASK_KEYS:
                hint = did_you_mean(entry.key, ASK_KEYS) or f"known: {', '.join(ASK_KEYS)}"
                message = f"llm step takes no '{entry.key}'; it is left out"
                self.report.warn("lang.unknown_field", message, hint, entry.start)
            else:
                args.append(entry)
        step.args = tuple(args)
        if step.kind == "ask" and not any(entry.key.startswith("prompt") for entry in args):
            hint = 'prompt: "..."'
            self.report.error("lang.missing_field", "an llm step needs a prompt", hint, step.node.start + 1)
        if step.evaluation and step.output_var:
            hint = f"its value is the metric '{step.node.name}'"
            self.report.error(
                "lang.misplaced", "a check of an evaluation has no output_var", hint, step.node.start
            )

    def variable(self, entry: ast.Entry) -> str:
        value = entry.value
        if isinstance(value, (ast.Name, ast.Text)):
            name = value.value
            if (
                name.isascii()
                and name.replace("_", "a").replace("-", "a").isalnum()
                and not name[0].isdigit()
            ):
                return name
        if not self.missing(entry):
            self.report.error("lang.name", "output_var wants a plain name", "output_var: fix_patch", value)
        return ""

    def on_fail(self, entry: ast.Entry) -> str:
        word = self.word(entry)
        if word and word not in ON_FAIL:
            hint = did_you_mean(word, ON_FAIL) or f"one of {', '.join(ON_FAIL)}"
            fix = self.report.replace(entry.value, nearest(word, ON_FAIL))
            self.report.error("lang.value", f"on_fail can not be '{word}'", hint, entry.value, fix)
        return word

    # ---- names of the catalog

    def tool(self, name: str, at: ast.Value | int) -> ToolEntry | None:
        found = self.catalog.tool(name)
        if found is None:
            names = [
                *self.catalog.tools,
                *(alias for tool in self.catalog.tools.values() for alias in tool.aliases),
            ]
            hint = did_you_mean(name, names) or f"known: {', '.join(sorted(self.catalog.tools)) or 'none'}"
            near = nearest(name, names)
            fix = self.report.replace(at, f"tool.{near}" if near and isinstance(at, int) else near)
            self.report.error("lang.unknown_tool", f"unknown tool '{name}'", hint, at, fix)
        return found

    def choice(self, entry: ast.Entry, table: str) -> Choice | None:
        """`VALIDATOR name`, `VALIDATOR name { options }`, `VALIDATOR none`."""
        value = entry.value
        if self.missing(entry):
            return None
        if isinstance(value, ast.Tagged):
            name, options = value.name, value.body
        elif isinstance(value, (ast.Name, ast.Text)):
            name, options = value.value, None
        else:
            self.report.error("lang.value", f"{entry.key} wants a name", settings.example(entry.key), value)
            return None
        if name.lower() in ("none", "null"):
            return None
        known: Mapping[str, Any] = getattr(self.catalog, table)
        found = known.get(name)
        if found is None:
            code = _UNKNOWN[table]
            what = table.removesuffix("s")
            hint = did_you_mean(name, known) or f"known: {', '.join(sorted(known)) or 'none'}"
            fix = self.report.replace(value.start, nearest(name, known))
            self.report.error(code, f"unknown {what} '{name}'", hint, value.start, fix)
        return Choice(name, options, value, found)

    # ---- keys and values of settings

    def known(
        self, entries: list[ast.Entry], place: str, words: tuple[str, ...], opaque: bool = False
    ) -> dict[str, ast.Entry]:
        """The entries of a place by key; unknown ones and second ones are reported."""
        found: dict[str, ast.Entry] = {}
        for entry in entries:
            setting = settings.find(place, entry.key)
            if setting is None and self.report.full:
                break
            if setting is None:
                names = (*words, *settings.PLACES[place])
                block = isinstance(entry.value, (ast.MapValue, ast.Tagged))
                if opaque and block and not nearest(entry.key, names) and not settings.place_of(entry.key):
                    hint = "it means nothing to SPAK and is left alone"
                    self.report.warn("lang.unknown_block", f"unknown block '{entry.key}'", hint, entry.start)
                else:
                    self.unknown_key(entry, names, _OWNERS[place])
            elif setting.key in found:
                hint = f"the first is on {self.report.source.where(found[setting.key].start)}"
                message = f"{setting.key} is given twice"
                self.report.error("lang.duplicate_key", message, hint, entry.start)
            else:
                found[setting.key] = entry
                if entry.default is not None:
                    hint = "defaults belong in INPUTS"
                    self.report.error("lang.value", "a default has no place here", hint, entry.default)
        return found

    def unknown_key(self, entry: ast.Entry, names: Iterable[str], where: str) -> None:
        if self.report.full:
            return
        names = tuple(names)
        near = nearest(entry.key, names)
        place = settings.place_of(entry.key)
        if near:
            hint = f"did you mean {near}?"
        elif place:
            hint = f"{entry.key} belongs in {_BLOCKS.get(place, place)}"
        else:
            hint = f"known: {', '.join(names)}"
        fix = self.report.replace(entry.start, near)
        self.report.error("lang.unknown_key", f"{where} has no '{entry.key}'", hint, entry.start, fix)

    def block(self, entry: ast.Entry, place: str) -> dict[str, ast.Entry]:
        if not isinstance(entry.value, ast.MapValue):
            if not self.missing(entry):
                hint = settings.example(entry.key.upper()) or f"{entry.key} {{ ... }}"
                self.report.error("lang.value", f"{entry.key} wants a block", hint, entry.value)
            return {}
        return self.known(list(entry.value.entries), place, ())

    def plain_block(self, entry: ast.Entry, place: str) -> dict[str, Any]:
        return {key: self.plain_setting(item, place) for key, item in self.block(entry, place).items()}

    def plain_setting(self, entry: ast.Entry, place: str) -> Any:
        """The value of a setting, judged by its schema; its default where it does not fit."""
        setting = settings.find(place, entry.key)
        if setting is None or self.missing(entry):
            return None if setting is None else setting.default
        value = values.plain(entry.value, self.report, values.as_text)
        choices = setting.schema.get("enum", ())
        if isinstance(value, str) and choices:
            value = next((word for word in choices if word.lower() == value.lower()), value)
        for wrong in violations(setting.schema, value)[:1]:
            wanted = ", ".join(choices) if choices else wrong.expected
            limit = {"schema.minimum": "at least ", "schema.maximum": "at most "}.get(wrong.code, "")
            hint = (did_you_mean(str(value), choices) if choices else "") or f"for example: {setting.example}"
            message = (
                f"{setting.key} wants {'one of ' if choices else ''}{limit}{wanted}, not {wrong.received}"
            )
            self.report.error("lang.value", message, hint, entry.value)
            return setting.default
        return value

    def word(self, entry: ast.Entry) -> str:
        """A value that is one word; empty, and reported, when it is not."""
        if isinstance(entry.value, (ast.Name, ast.Text)):
            return "" if self.missing(entry) else entry.value.value
        self.report.error("lang.value", f"{entry.key} wants a word", settings.example(entry.key), entry.value)
        return ""

    def missing(self, entry: ast.Entry) -> bool:
        """True for the parser's gap filler, and for a value that is the next line's key."""
        value = entry.value
        if not isinstance(value, ast.Name):
            return False
        if not value.value:
            return True
        source = self.report.source
        if value.value not in settings.KEYS or source.line(value.start) == source.line(entry.start):
            return False
        _, end = self.report.offsets(entry.start)
        fix = ((end, end, " none"),) if entry.key.upper() == "VALIDATOR" else None
        self.report.error(
            "lang.missing_value", f"{entry.key} has no value", settings.example(entry.key), entry.start, fix
        )
        return True

    def check_name(self, name: str, token: int, what: str) -> None:
        if "." in name:
            self.report.error("lang.name", f"{what} can not have a dot in its name", "use _", token)
        elif seen := reading(name):
            fix = self.report.replace(token, seen)
            message, hint = (
                f"'{name}' is not '{seen}': {odd(name)} only looks alike",
                f"did you mean '{seen}'?",
            )
            self.report.error("lang.lookalike", message, hint, token, fix)
        elif not name.isascii():
            hint = f"{odd(name)} is none of a-z, 0-9, _, -"
            self.report.error("lang.name", f"'{name}' has letters outside ASCII", hint, token)


_UNKNOWN = {
    "validators": "lang.unknown_validator",
    "proposers": "lang.unknown_proposer",
    "backends": "lang.unknown_backend",
}
_OWNERS = {
    "agent": "an AGENT",
    "config": "CONFIG",
    "budget": "BUDGET",
    "task": "a TASK",
    "rule": "RULE",
    "task budget": "a TASK's BUDGET",
}
_BLOCKS = {
    "agent": "the AGENT",
    "config": "CONFIG { }",
    "budget": "CONFIG { BUDGET { } }",
    "task": "a TASK",
    "rule": "RULE { }",
    "task budget": "a TASK's BUDGET { }",
}
