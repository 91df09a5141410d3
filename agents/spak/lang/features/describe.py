"""What a name means, in Markdown: settings from their table, tools and validators from the catalog, tasks and
variables from the spec itself.

Takes a View and a name; gives the text that a hover shows and that stands beside a completion. Text of a
catalog or a spec is put into code or plain sentences; what Markdown would read in it is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from spak.lang import ast
from spak.lang.catalog import NamedEntry, ToolEntry, ValidatorEntry
from spak.lang.features import words
from spak.lang.features.view import View
from spak.lang.outline import TaskPlan
from spak.lang.settings import Setting

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|!~])")
_LONGEST = 300
_TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a map",
}
_PLACES = {
    "agent": "an AGENT",
    "config": "CONFIG",
    "budget": "BUDGET of CONFIG",
    "task": "a TASK",
    "rule": "RULE",
    "task budget": "BUDGET of a TASK",
    "poll": "poll of a tool step",
}


def escaped(text: str) -> str:
    """A text that Markdown shows as it is, cut where it is long."""
    text = " ".join(text.split())
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return _MARKS.sub(r"\\\1", text)


def code(text: str) -> str:
    """A text as code on one line."""
    text = " ".join(text.split())
    fence = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{fence}{space}{text[:_LONGEST]}{space}{fence}"


def block(text: str) -> str:
    """An example in the language."""
    return f"```spak\n{text}\n```"


def word(name: str, entry: words.Word) -> str:
    """A keyword, a function, a field of a step."""
    example = f"\n\n{block(entry.example)}" if entry.example else ""
    return f"**{name}**\n\n{entry.about}{example}"


def setting(found: Setting) -> str:
    """A setting in Markdown: what it says, its default, since when."""
    default = found.default
    says = "" if default in (None, "", ()) else f" Default: {code(str(default))}."
    since = f" Since {found.since}."
    where = _PLACES.get(found.where, found.where)
    fits = schema(found.schema)
    about = f"**{found.key}** in {where}: {escaped(found.about)}.{says}{since}"
    return "\n\n".join(part for part in (about, fits and f"Takes {fits}.", block(found.example)) if part)


def tool(entry: ToolEntry) -> str:
    """A tool in Markdown: what it does, its traits, its arguments."""
    traits = [
        "writes to the workspace" if entry.writes else "reads only",
        "in the sandbox" if entry.sandboxed else "outside of the sandbox",
        f"on a non-zero exit: {entry.on_fail}",
    ]
    also = f" Also called {', '.join(map(code, entry.aliases))}." if entry.aliases else ""
    return _entry("tool", entry, f"{'; '.join(traits).capitalize()}.{also}")


def validator(entry: ValidatorEntry) -> str:
    """A validator in Markdown: what it checks and the triggers that it gives."""
    gives = f"Gives {', '.join(map(code, entry.triggers))}."
    metric = f" Measures {code(entry.metric)}." if entry.metric else ""
    device = f" Wants a {code(entry.device)} device." if entry.device else ""
    return _entry("validator", entry, gives + metric + device)


def named(what: str, entry: NamedEntry) -> str:
    """A proposer, backend or launcher in Markdown."""
    return _entry(what, entry, "")


def _entry(what: str, entry: ToolEntry | ValidatorEntry | NamedEntry, traits: str) -> str:
    summary = escaped(entry.summary)
    summary = summary if summary.endswith(".") else f"{summary}."
    parts = [f"**{entry.name}** ({what}): {summary}", traits, "\n".join(_members(entry.schema))]
    return "\n\n".join(part for part in parts if part)


def _members(found: Mapping[str, Any]) -> Iterator[str]:
    required = found.get("required", ())
    properties = found.get("properties", {})
    for key in sorted(properties, key=lambda key: key not in required):
        says = escaped(str(properties[key].get("description", "")))
        needed = " *required*" if key in required else ""
        fits = schema(properties[key])
        about = ". ".join(part for part in (fits, says) if part)
        yield f"- {code(key)}{needed}{': ' if about else ''}{about}"


def member(key: str, found: Mapping[str, Any], required: bool) -> str:
    """A field of a step or an option, from its schema."""
    says = escaped(str(found.get("description", "")))
    fits = schema(found)
    default = f" Default: {code(str(found['default']))}." if "default" in found else ""
    needed = " (required)" if required else ""
    return f"**{key}**{needed}{': ' if fits else ''}{fits}.{default}" + (f"\n\n{says}" if says else "")


def schema(found: Mapping[str, Any]) -> str:
    """What a schema lets pass, in a few words."""
    if "enum" in found:
        return "one of " + ", ".join(code(str(item)) for item in found["enum"])
    if "anyOf" in found:
        return " or ".join(filter(None, (schema(item) for item in found["anyOf"])))
    kind = found.get("type", "")
    kinds = kind if isinstance(kind, (list, tuple)) else [kind] if kind else []
    text = " or ".join(_TYPES.get(item, str(item)) for item in kinds)
    if kind == "array" and found.get("items"):
        inner = schema(found["items"])
        text = f"a list, each {inner}" if inner else text
    least, most = found.get("minimum"), found.get("maximum")
    if least is not None and most is not None:
        return f"{text} from {least} to {most}"
    if least is not None:
        return f"{text}, at least {least}"
    return f"{text}, at most {most}" if most is not None else text


def trigger(name: str) -> str:
    """A trigger in Markdown."""
    about = words.TRIGGERS.get(name, "A trigger of its validator.")
    return f"**{name}** (trigger): {about}"


def task(view: View, name: str) -> str:
    """A task of this spec: goal, tools, what judges it, where its triggers lead."""
    plan = view.outline.tasks.get(name)
    if plan is None:
        return f"There is no task {code(name)} yet."
    parts = [f"**TASK** {code(name)}"]
    goal = plan.settings.get("GOAL")
    if goal is not None and isinstance(goal.value, ast.Text):
        parts.append(escaped(goal.value.value))
    parts += _of_task(plan)
    return "\n\n".join(parts)


def _of_task(plan: TaskPlan) -> Iterator[str]:
    if plan.steps:
        yield "Steps: " + ", ".join(code(f"{step.node.name}: {step.node.kind}") for step in plan.steps)
    if plan.all_tools:
        yield "Tools: " + ", ".join(map(code, plan.all_tools))
    if plan.validator is not None:
        yield f"Validator: {code(plan.validator.name)}"
    edges = [code(f"{trigger} -> {edge.target}") for trigger, edge in plan.edges.items()]
    yield "Leads: " + ", ".join(edges) if edges else "No outgoing edge: the run ends here."


def variable(view: View, path: str) -> str:
    """A variable by its path, with where it is set."""
    head, dot, rest = path.partition(".")
    made = view.outline
    about = words.VARIABLES.get(head, "")
    title = f"{code(path)} (variable)"
    if head == "input" and rest in made.inputs:
        found = made.inputs[rest]
        default = "required" if found.required else f"default {code(str(found.default))}"
        choices = f" of {', '.join(code(str(item)) for item in found.choices)}" if found.choices else ""
        return f"{code(path)} (input): {found.type}{choices}, {default}."
    texts = {
        "axiom": made.axioms,
        "heuristic": [text for text, _ in made.heuristics],
        "prediction": made.predictions,
    }
    if head in texts and rest.isdigit() and 1 <= int(rest) <= len(texts[head]):
        return f"{code(path)}: {escaped(texts[head][int(rest) - 1])}"
    setters = view.scope.setters.get(path, ()) if not dot else ()
    if setters:
        places = [f"{view.scope.setter(owner, index, '`')} of task {code(owner)}" for owner, index in setters]
        return f"{title}: the output of {', '.join(places)}."
    return f"{title}: {about}" if about else title


def step(view: View, owner: str, name: str) -> str:
    """A step or a check of a task."""
    plan = view.outline.tasks.get(owner)
    for found in (*plan.steps, *plan.checks) if plan is not None else ():
        if found.node.name == name:
            what = "check" if found.evaluation else "step"
            summary = f"\n\n{escaped(found.tool.summary)}" if found.tool is not None else ""
            output = f" Sets {code(found.output_var)}." if found.output_var else ""
            return f"{code(name)} ({what} of {code(owner)}): {code(found.node.kind)}.{output}{summary}"
    return ""
