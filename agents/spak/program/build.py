"""`compile`: a checked Spec becomes a Program.

Takes a Spec (or the Parsed around it), a Catalog and the inputs; gives the frozen Program, the same for the
same arguments, or raises SpecError with every diagnostic. It reads the outline that `check` reads and decides
nothing that `check` has not judged. Where a task says less than it means, this is what it means:

- TOOLS without steps is one `plan` step, whose output is the variable of OUTPUT; `success:` or `evaluation`
  add a `check` step after the last one, VALIDATOR a `validate` step; a task with none of these gets a `check`
  of nothing, and ends well; one without a GOAL too has no step, and a run that comes to it is refused.
- A VALIDATOR that checks axioms and is given none gets those of the SYSTEM_MODELs.
- A check of an evaluation is a step that goes on when it fails; its output is `metric.NAME`, and the value of
  its `output_var` if it has one.
- A VALIDATOR with a metric makes a MetricRule from the catalog's entry, RULE and BUDGET; a task that routes
  `metric_improved` or `plateau` and not `success` loops on `success`.
- A bare task runs under the least LEVEL that its steps need; the first is START.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

from spak.errors import SpecError
from spak.lang import Parsed, ast, command, values
from spak.lang.catalog import Catalog, OnFail
from spak.lang.check import examine
from spak.lang.checks import axioms
from spak.lang.checks.level import least_level
from spak.lang.checks.steps import is_command
from spak.lang.diagnostics import Severity, in_order
from spak.lang.near import did_you_mean
from spak.lang.outline import Choice, Outline, StepPlan, TaskPlan
from spak.lang.schema import show
from spak.lang.scope import Scope
from spak.lang.task_graph import start_of
from spak.lang.template import Hole, Part, split
from spak.program.model import (
    All,
    AnyOf,
    Atom,
    Budgets,
    CommandLine,
    Compare,
    Condition,
    Heuristic,
    MetricRule,
    Not,
    Poll,
    Program,
    Proposing,
    Ref,
    Step,
    Task,
    Template,
    Value,
)


def compile(  # noqa: A001  the word of the design for this arrow
    spec: ast.Spec | Parsed,
    catalog: Catalog,
    inputs: Mapping[str, Any] | None = None,
) -> Program:
    """The Program of a spec.

    Raises: SpecError `lang.invalid` when a diagnostic is an error (all are in `diagnostics`), `lang.input`
    when an input is missing, unknown or of the wrong type.
    """
    spec = spec.spec if isinstance(spec, Parsed) else spec
    made = examine(spec, catalog)
    found = in_order([*spec.source.problems, *made.report.found])
    errors = [item for item in found if item.severity == Severity.ERROR]
    if not made.tasks and not errors:  # a file to import: fine as it is, and nothing to run
        errors = [item for item in found if item.code == "lang.empty"]
    if errors:
        first = errors[0]
        where = f"{spec.source.name or 'the spec'}:{first.line}:{first.column}"
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise SpecError("lang.invalid", f"{where}: {first.message}{more}", first.hint, found)
    return _Compiler(made, _inputs(made, inputs or {})).program()


def sketch(made: Outline) -> Program:
    """The Program of an outline without errors, with a stand-in for each input that has no default: for
    whoever wants to know what is fixed before the run."""
    usual = {"int": 0, "float": 0.0, "string": "", "bool": False}
    inputs = {
        name: (declared.choices[0] if declared.choices else usual[declared.type])
        if declared.required
        else declared.default
        for name, declared in made.inputs.items()
    }
    return _Compiler(made, inputs).program()


def _inputs(made: Outline, given: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs by declaration: read, defaulted, judged."""
    for name in given:
        if name not in made.inputs:
            hint = did_you_mean(name, made.inputs) or f"declared: {', '.join(made.inputs) or 'none'}"
            raise SpecError("lang.input", f"the spec has no input '{name}'", hint)
    read: dict[str, Any] = {}
    for name, declared in made.inputs.items():
        if name in given:
            value = declared.read(given[name])
            if wanted := declared.problem(value):
                near = did_you_mean(value, map(str, declared.choices)) if isinstance(value, str) else ""
                hint = f"{near} it wants {wanted}".lstrip()
                raise SpecError("lang.input", f"input '{name}' can not be {show(value)}", hint)
            read[name] = value
        elif declared.required:
            wanted = declared.wanted
            raise SpecError("lang.input", f"input '{name}' has no value", f"--input {name}=VALUE: {wanted}")
        else:
            read[name] = declared.default
    return read


class _Compiler:
    def __init__(self, made: Outline, inputs: Mapping[str, Any]) -> None:
        self.made = made
        self.inputs = inputs
        self.scope = Scope(made)
        self.source = made.spec.source

    def program(self) -> Program:
        made, config = self.made, self.made.config
        level = least_level(made) if made.level is None else int(made.level.value)
        return Program(
            name=made.name,
            level=level,
            start=start_of(made),
            tasks={name: self.task(task) for name, task in made.tasks.items()},
            axioms=tuple(made.axioms),
            heuristics=tuple(Heuristic(text, when) for text, when in made.heuristics),
            predictions=tuple(made.predictions),
            memory=config.get("MEMORY", "FLUSH_ON_TRANSITION"),
            sandbox=config.get("SANDBOX", "RESTRICTED"),
            mode=config.get("MODE"),
            auto_steps=config.get("AUTO_STEPS", 0),
            backend=config.get("BACKEND", ""),
            approvals=config.get("APPROVALS", "deny"),
            hosts=tuple(sorted({host.lower() for host in config.get("HOSTS", ())})),
            history=config.get("HISTORY", 0),
            budgets=self.budgets(),
            inputs=self.inputs,
            spec_hash=made.spec.hash,
        )

    def budgets(self) -> Budgets:
        given, default = self.made.budget, Budgets()
        elapsed = given.get("elapsed_s")
        return Budgets(
            steps=given.get("steps", default.steps),
            elapsed_ms=default.elapsed_ms if elapsed is None else round(elapsed * 1000),
            tokens=given.get("tokens", default.tokens),
            cost=given.get("cost", default.cost),
            extend_percent=given.get("extend_percent", default.extend_percent),
            low_percent=given.get("low_percent", default.low_percent),
            watchdog=given.get("watchdog", default.watchdog),
            window=given.get("window", default.window),
            rollbacks=given.get("rollbacks", default.rollbacks),
            requests=given.get("requests", default.requests),
            request_bytes=given.get("request_bytes", default.request_bytes),
        )

    # ---- a task

    def task(self, task: TaskPlan) -> Task:
        edges = {trigger: edge.target for trigger, edge in task.edges.items()}
        if "success" not in edges and ("metric_improved" in edges or "plateau" in edges):
            edges["success"] = task.name
        goal = task.settings.get("GOAL")
        retries = task.retries if task.retries is not None else self.made.config.get("RETRIES", 3)
        return Task(
            name=task.name,
            goal=self.goal(goal.value) if goal is not None else "",
            tools=tuple(task.tools),
            steps=self.steps(task),
            edges=edges,
            success=self.conditions(task.success),
            invariant=self.conditions(task.invariant),
            proposing=self.proposing(task),
            rule=self.rule(task),
            retries=retries,
            line=self.source.line(task.node.start),
        )

    def steps(self, task: TaskPlan) -> tuple[Step, ...]:
        steps = [self.step(step, task) for step in task.steps]
        line = self.source.line(task.node.start)
        if not task.steps and task.tools:
            steps.append(Step(_free("plan", task), "plan", output_var=task.output, on_fail="", line=line))
        steps += [self.step(step, task) for step in task.checks]
        if task.empty:
            return ()
        if task.success or task.checks or not (steps or task.validator):
            steps.append(Step(_free("check", task), "check", line=line))
        if task.validator is not None:
            steps.append(self.validate(task, task.validator))
        return tuple(steps)

    def step(self, step: StepPlan, task: TaskPlan) -> Step:
        node = step.node
        args = {entry.key: self.field(entry, is_command(step, entry)) for entry in step.args}
        if step.kind in ("ask", "plan") and "prompt_template" in args:
            template = args.pop("prompt_template")
            args.setdefault("prompt", template)
        return Step(
            id=node.name,
            kind=step.kind or "tool",
            name=step.name,
            args=args,
            output_var=step.output_var,
            metric=f"metric.{node.name}" if step.evaluation else "",
            on_fail=self.on_fail(step, task),
            line=self.source.line(node.start),
            poll=Poll(round(step.poll["every_s"] * 1000), step.poll["limit"]) if step.poll else None,
        )

    def on_fail(self, step: StepPlan, task: TaskPlan) -> OnFail | Literal[""]:
        """What a non-zero exit means: as the step says, else as its tool does where the task is judged."""
        if step.evaluation:
            return "continue"
        if step.on_fail:
            return step.on_fail
        if step.kind == "plan":
            return ""
        given = step.tool.on_fail if step.tool else "stop"
        return "stop" if given == "continue" and not task.judged else given

    def validate(self, task: TaskPlan, choice: Choice) -> Step:
        schema = choice.entry.schema if choice.entry is not None else {}
        accepted = schema.get("properties", {}).get("cmd", {}).get("type", ())
        body = choice.options.entries if choice.options is not None else ()
        args = {
            entry.key: self.field(entry, entry.key == "cmd" and "array" in accepted and _is_text(entry.value))
            for entry in body
        }
        takes = getattr(choice.entry, "axioms", "")
        if takes and takes not in args and (stated := axioms.for_validator(self.made)):
            args[takes] = stated
        line = self.source.line(choice.at.start)
        return Step(_free("validate", task), "validate", choice.name, args, line=line)

    def proposing(self, task: TaskPlan) -> Proposing:
        choice = task.proposer
        options = {entry.key: self.fixed(entry.value) for entry in _entries(choice)}
        return Proposing(choice.name if choice else "", options, task.space)

    def rule(self, task: TaskPlan) -> MetricRule | None:
        entry, given, default = task.validator_entry, task.rule, MetricRule("")
        if entry is None or not entry.metric:
            return None
        margin = 1 - Fraction(str(given.get("margin_percent", 1))) / 100
        return MetricRule(
            metric=given.get("metric", entry.metric),
            better=given.get("better", default.better),
            margin_num=margin.numerator,
            margin_den=margin.denominator,
            evidence=given.get("evidence", default.evidence),
            max_pairs=given.get("max_pairs", default.max_pairs),
            patience=given.get("patience", default.patience),
            evaluations=given.get("evaluations", default.evaluations),
        )

    # ---- values

    def field(self, entry: ast.Entry, is_command: bool) -> Value:
        return self.command(entry.value) if is_command else self.value(entry.value)

    def value(self, value: ast.Value) -> Value:
        """JSON with Refs and Templates where variables stand."""
        return values.json_value(value, self.made.report, self.leaf)  # type: ignore[no-any-return]

    def leaf(self, value: ast.Text | ast.Name) -> Value:
        if isinstance(value, ast.Name):
            return Ref(value.value) if self.scope.is_variable(value.value) else value.value
        parts = split(value.value)
        if len(parts) == 1 and isinstance(parts[0], Hole):
            return Template((Ref(parts[0].path),))
        return _template(parts)

    def command(self, value: ast.Value) -> CommandLine:
        if isinstance(value, ast.Name):
            is_variable = self.scope.is_variable(value.value)
            return CommandLine(whole=Ref(value.value)) if is_variable else CommandLine((value.value,))
        text = value.value if isinstance(value, ast.Text) else ""
        parts = split(text.strip())
        if len(parts) == 1 and isinstance(parts[0], Hole):
            return CommandLine(whole=Ref(parts[0].path))
        return CommandLine(tuple(_template(argument) for argument in command.arguments(text)))

    def fixed(self, value: ast.Value) -> Any:
        """JSON with inputs filled in."""
        return values.json_value(value, self.made.report, self.fixed_leaf)

    def fixed_leaf(self, value: ast.Text | ast.Name) -> Any:
        if isinstance(value, ast.Name):
            return self.inputs[value.value[6:]] if value.value.startswith("input.") else value.value
        return self.filled(value)

    def goal(self, value: ast.Value) -> str | Template:
        """Text with the inputs filled in; variables of earlier tasks are filled in by the run."""
        text = value.value if isinstance(value, (ast.Text, ast.Name)) else ""
        parts: list[str | Ref] = []
        for part in split(str(text)):
            if isinstance(part, Hole) and not part.path.startswith("input."):
                parts.append(Ref(part.path))
                continue
            shown = part if isinstance(part, str) else str(self.inputs[part.path[6:]])
            if parts and isinstance(parts[-1], str):
                parts[-1] += shown
            else:
                parts.append(shown)
        texts = [part for part in parts if isinstance(part, str)]
        return "".join(texts) if len(texts) == len(parts) else Template(tuple(parts))

    def filled(self, value: ast.Value) -> str:
        """A text whose variables are inputs."""
        text = value.value if isinstance(value, (ast.Text, ast.Name)) else ""
        parts = split(str(text))
        return "".join(part if isinstance(part, str) else str(self.inputs[part.path[6:]]) for part in parts)

    # ---- conditions

    def conditions(self, nodes: list[ast.Condition]) -> Condition | None:
        items = tuple(self.condition(node) for node in nodes)
        return None if not items else items[0] if len(items) == 1 else All(items)

    def condition(self, node: ast.Condition) -> Condition:
        match node:
            case ast.Logic():
                return (All if node.op == "and" else AnyOf)(tuple(map(self.condition, node.items)))
            case ast.Negation():
                return Not(self.condition(node.item))
            case ast.Comparison():
                return Compare(node.op, self.operand(node.left), self.operand(node.right))  # type: ignore[arg-type]
            case ast.Call():
                arguments = tuple(self.argument(item) for item in node.args)
                return Atom(node.name, arguments)  # type: ignore[arg-type]
            case _:
                return Compare("==", self.operand(node), True)

    def argument(self, value: ast.Value) -> str | Template | Ref:
        leaf = self.leaf(value) if isinstance(value, (ast.Text, ast.Name)) else ""
        return leaf if isinstance(leaf, (str, Template, Ref)) else str(leaf)

    def operand(self, value: Any) -> Value:
        if isinstance(value, ast.Name) and value.value.lower() not in values.CONSTANTS:
            return Ref(f"metric.{value.value}" if value.value in self.scope.metrics else value.value)
        if isinstance(value, ast.Call):
            name = value.args[0]
            return Ref(f"{value.name}.{name.value if isinstance(name, (ast.Name, ast.Text)) else ''}")
        return self.value(value)


def _template(parts: tuple[Part, ...]) -> str | Ref | Template:
    """Text without variables is itself, one variable alone a Ref."""
    if not parts:
        return ""
    if len(parts) == 1:
        return parts[0] if isinstance(parts[0], str) else Ref(parts[0].path)
    return Template(tuple(part if isinstance(part, str) else Ref(part.path) for part in parts))


def _free(name: str, task: TaskPlan) -> str:
    """The id of a step that the compiler adds: its kind, with `_` behind it where a step has that name."""
    while name in task.taken:
        name += "_"
    return name


def _entries(choice: Choice | None) -> tuple[ast.Entry, ...]:
    return choice.options.entries if choice is not None and choice.options is not None else ()


def _is_text(value: ast.Value) -> bool:
    return isinstance(value, (ast.Text, ast.Name))
