"""Building the outline: `outline(spec, catalog)` gives the Outline and what is wrong with the structure.

It finds things that are twice or in the wrong place and steps of no kind; keys and values are judged in
keys.py. What depends on the graph or on variables is looked at later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from spak.lang import ast, settings, values
from spak.lang.catalog import Catalog, OnFail
from spak.lang.keys import Keys
from spak.lang.limits import MAX_TASKS
from spak.lang.near import did_you_mean, nearest
from spak.lang.outline import ASK_KEYS, ON_FAIL, Outline, StepPlan, TaskPlan
from spak.lang.report import Report

_AGENT_WORDS = ("TASK", "SYSTEM_MODEL", "START", "CONFIG", "POLICY", "INPUTS", "IMPORT", "EXPORT")
_TASK_WORDS = ("STEP", "NEXT", "SUCCESS", "INVARIANT", "EVALUATION")


def outline(spec: ast.Spec, catalog: Catalog) -> Outline:
    """The outline of a spec; what is wrong with its structure is in its report."""
    made = Outline(spec, catalog, Report(spec.source))
    _Builder(made).build()
    return made


TAKEN = frozenset(
    {"last_tool_output", "goal", "error", "best", "baseline", "runner_up", "metric", "exit_code"}
    | {"input", "axiom", "heuristic", "prediction"}
)
"""Names of variables that every run has (spak.lang.scope); an output of that name would hide one."""


class _Builder(Keys):
    def __init__(self, made: Outline) -> None:
        super().__init__(made.catalog, made.report)
        self.made = made

    # ---- the file and the agent

    def build(self) -> None:
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
                    "this is outside of the AGENT",
                    "move it inside its braces",
                    item.start,
                )
        self.add_agent([*outside, *(agent.items if agent else ())])
        if agent is None:
            self.made.name = next(iter(self.made.tasks), "")
        if not self.made.tasks and not self.made.broken:
            self.report_empty(agent)

    def report_empty(self, agent: ast.Agent | None) -> None:
        """No task: told as an error, but of a file that is there to be imported."""
        items = self.made.spec.items
        models = [item for item in items if isinstance(item, ast.SystemModel)]
        keys = {item.key.upper() for item in items if isinstance(item, ast.Entry) and self.is_setting(item)}
        if agent is None and models and keys <= {"IMPORT"}:
            hint = 'IMPORT "FILE" in the AGENT that uses it; add a task to run it alone'
            self.report.inform("lang.empty", "no task: a file to import, not to run", hint, models[0].start)
            return
        hint = 'AGENT Name LEVEL 1 { START -> a TASK a { GOAL "..." TOOLS [run] } }, or task a { step ... }'
        at = agent.start if agent else 0
        self.report.error("lang.empty", "no task: there is nothing to run", hint, at)

    def is_setting(self, item: ast.TopItem) -> bool:
        return isinstance(item, ast.Entry) and settings.find("agent", item.key) is not None

    def add_agent(self, items: Iterable[ast.AgentItem | ast.TopItem]) -> None:
        items = list(items)
        tasks = [item for item in items if isinstance(item, ast.Task)]
        entries = [item for item in items if isinstance(item, ast.Entry)]
        for item in items:
            if isinstance(item, ast.SystemModel):
                self.add_model(item)
            elif isinstance(item, ast.Start):
                if self.made.start is not None:
                    self.report.error("lang.duplicate_key", "START is given twice", "keep one", item.start)
                else:
                    self.made.start = item
        self.add_agent_settings(entries)
        for index, task in enumerate(tasks):
            if index == MAX_TASKS:
                hint = "split the agent"
                self.report.error("lang.too_many_tasks", f"more than {MAX_TASKS} tasks", hint, task.start + 1)
                break
            if self.report.full:
                break
            self.add_task(task)

    def add_agent_settings(self, entries: list[ast.Entry]) -> None:
        imports = [entry for entry in entries if entry.key.upper() == "IMPORT"]
        rest = [entry for entry in entries if entry.key.upper() != "IMPORT"]
        found = self.known(rest, "agent", _AGENT_WORDS, opaque=True)
        if imports and not self.report.source.partial:
            self.made.partial = True
            hint = "its contents are unknown here: check the file in its folder"
            self.report.error("lang.import_unresolved", "IMPORT was not followed", hint, imports[0])
        if "POLICY" in found:
            self.plain_setting(found["POLICY"], "agent")
        if "EXPORT" in found:
            self.made.export = self.plain_setting(found["EXPORT"], "agent") or ""
        if "INPUTS" in found:
            self.made.inputs = values.inputs(found["INPUTS"].value, self.report)
        if "CONFIG" in found:
            self.add_config(found["CONFIG"])

    def add_config(self, block: ast.Entry) -> None:
        found = self.block(block, "config")
        for key, entry in found.items():
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

    def add_model(self, model: ast.SystemModel) -> None:
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

    def add_task(self, node: ast.Task) -> None:
        task = TaskPlan(node)
        self.check_name(node.name, node.start + 1, "a task")
        if node.name and node.name in self.made.tasks:
            hint = f"the first is on {self.report.source.where(self.made.tasks[node.name].node.start)}"
            self.report.error("lang.duplicate_task", f"a second task '{node.name}'", hint, node.start + 1)
        elif node.name:
            self.made.tasks[node.name] = task
        entries = [item for item in node.items if isinstance(item, ast.Entry)]
        task.settings = self.known(entries, "task", _TASK_WORDS)
        self.add_task_settings(task)
        joined: list[ast.Condition] | None = None
        for item in node.items:
            if self.report.full:
                return
            match item:
                case ast.Step():
                    self.add_step(task, item, task.steps)
                case ast.Evaluation():
                    for check in item.items:
                        self.add_step(task, check, task.checks)
                case ast.Next():
                    self.add_edges(task, item)
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
        self.settle_plan(task)

    def add_task_settings(self, task: TaskPlan) -> None:
        found = task.settings
        if "GOAL" in found:
            self.plain_setting(found["GOAL"], "task")
        if "TOOLS" in found:
            self.add_tools(task, found["TOOLS"])
        if "OUTPUT" in found:
            task.output = self.variable(found["OUTPUT"])
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

    def add_tools(self, task: TaskPlan, entry: ast.Entry) -> None:
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

    def add_edges(self, task: TaskPlan, node: ast.Next) -> None:
        for edge in node.items:
            if edge.trigger and edge.trigger in task.edges:
                hint = "one trigger leads to one task"
                self.report.error(
                    "lang.duplicate_trigger", f"'{edge.trigger}' is routed twice", hint, edge.start
                )
            elif edge.trigger and edge.target:
                task.edges[edge.trigger] = edge

    def settle_plan(self, task: TaskPlan) -> None:
        """A plan chooses out of TOOLS; OUTPUT is for a task that is one plan."""
        for step in task.steps:
            if step.kind == "plan" and "TOOLS" not in task.settings:
                hint = "TOOLS [cc, write_file]: what the plan may choose from"
                self.report.error("lang.no_tools", "llm.plan needs TOOLS", hint, step.node.start + 3)
        if "OUTPUT" in task.settings and not task.plans:
            hint = "a step has an output_var of its own" if task.steps else "OUTPUT is of a plan: add TOOLS"
            message = f"task '{task.name}' has no plan without steps that OUTPUT could name"
            self.report.error("lang.misplaced", message, hint, task.settings["OUTPUT"].start)

    # ---- a step

    def add_step(self, task: TaskPlan, node: ast.Step | ast.Check, into: list[StepPlan]) -> None:
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
        self.add_fields(step)
        into.append(step)

    def add_fields(self, step: StepPlan) -> None:
        args: list[ast.Entry] = []
        for entry in values.entries(step.node.body, self.report):
            if entry.key == "output_var":
                step.output_var = self.variable(entry)
            elif entry.key == "on_fail":
                step.on_fail = self.on_fail(entry)
            elif entry.key == "poll" and step.kind:
                step.poll = self.poll(step, entry)
            elif entry.key == "role" and step.kind in ("ask", "plan"):
                step.name = self.word(entry)
            elif step.kind == "ask" and entry.key not in ASK_KEYS:
                hint = did_you_mean(entry.key, ASK_KEYS) or f"known: {', '.join(ASK_KEYS)}"
                message = f"llm step takes no '{entry.key}'; it is left out"
                fix = self.report.replace(entry.start, nearest(entry.key, ASK_KEYS))
                self.report.warn("lang.unknown_field", message, hint, entry.start, fix)
            else:
                args.append(self.argument(step, entry, args))
        step.args = tuple(args)
        if step.kind == "ask" and not any(entry.key.startswith("prompt") for entry in args):
            hint = 'prompt: "..."'
            self.report.error("lang.missing_field", "an llm step needs a prompt", hint, step.node.start + 1)

    def argument(self, step: StepPlan, entry: ast.Entry, before: list[ast.Entry]) -> ast.Entry:
        """An argument by its own name, where its tool knows another one for it."""
        name = step.tool.also.get(entry.key, "") if step.tool is not None else ""
        if not name:
            return entry
        if any(item.key == name for item in before):
            hint = f"'{entry.key}' is another name of '{name}': keep one"
            self.report.error("lang.duplicate_key", f"'{name}' is given twice", hint, entry.start)
        return replace(entry, key=name)

    def variable(self, entry: ast.Entry) -> str:
        value = entry.value
        if isinstance(value, (ast.Name, ast.Text)):
            name = value.value
            if (
                name.isascii()
                and name.replace("_", "a").replace("-", "a").isalnum()
                and not name[0].isdigit()
            ):
                if name in TAKEN:
                    hint = f"another name, such as my_{name}"
                    self.report.warn("lang.shadowed_variable", f"'{name}' is a variable already", hint, value)
                return name
        if not self.missing(entry):
            example = "output_var: fix_patch" if entry.key == "output_var" else "OUTPUT notes"
            self.report.error("lang.name", f"{entry.key} wants a plain name", example, value)
        return ""

    def poll(self, step: StepPlan, entry: ast.Entry) -> dict[str, Any] | None:
        """How a step is polled: `every_s` and `limit`, by the table of settings."""
        if step.kind != "tool" or step.evaluation:
            hint = "poll belongs to a step of a task that calls a tool"
            self.report.error("lang.misplaced", "this can not be polled", hint, entry.start)
            return None
        defaults = {key: found.default for key, found in settings.PLACES["poll"].items()}
        return {**defaults, **self.plain_block(entry, "poll")}

    def on_fail(self, entry: ast.Entry) -> OnFail | Literal[""]:
        word = self.word(entry)
        for known in ON_FAIL:
            if word == known:
                return known
        if word:
            hint = did_you_mean(word, ON_FAIL) or f"one of {', '.join(ON_FAIL)}"
            fix = self.report.replace(entry.value, nearest(word, ON_FAIL))
            self.report.error("lang.value", f"on_fail can not be '{word}'", hint, entry.value, fix)
        return ""
