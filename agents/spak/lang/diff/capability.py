"""The capability delta: what an agent may do, or is held to, that differs between two specs.

Takes two Views and the pairs of their tasks; gives Capabilities and, for a reviewer, Flags. It says for each
whether the new spec is allowed more (a tool, a weaker sandbox, a larger budget) or held to less (a validator,
an axiom, a condition gone), and does not judge whether that is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spak.lang import ast, settings, values
from spak.lang.catalog import Catalog
from spak.lang.diff.model import Capability, Flag
from spak.lang.diff.view import StepView, TaskView, View
from spak.lang.report import Report

UNLIMITED = ("steps", "elapsed_s", "tokens", "cost")
"""Budgets of which 0 means no limit."""

LESS_IS_MORE = ("window", "margin_percent", "evidence")
"""Knobs that allow more, or ask for less proof, when they go down."""

RULES = ("metric", "better", "margin_percent", "evidence", "max_pairs")
"""Keys of RULE that say when a measurement counts; the others are budgets."""

Known = dict[tuple[str, str, str], Any]
"""By kind, path and name: the value."""


def capabilities(
    old: View, new: View, pairs: Mapping[str, str], catalog: Catalog | None
) -> tuple[Capability, ...]:
    """What was gained, lost or changed, in the order of kinds."""
    before, after = _of(old, pairs, catalog), _of(new, {}, catalog)
    found = []
    kept = set(pairs.values())
    for key in [*before, *(key for key in after if key not in before)]:
        if before.get(key) == after.get(key) and (key in before) == (key in after):
            continue
        kind, path, name = key
        was, now = before.get(key), after.get(key)
        change: Any = "gained" if key not in before else "lost" if key not in after else "changed"
        whole = path.startswith("tasks/") and path.removeprefix("tasks/") not in kept
        if kind == "budget" and change != "changed":
            continue  # a default that came or went with its task or its validator
        widens = _widens(kind, name, change, was, now, whole)
        found.append(Capability(kind, change, path, name, was, now, widens))
    return tuple(sorted(found, key=lambda item: KINDS.index(item.kind)))


KINDS = (
    *("level", "mode", "sandbox", "network", "tool", "budget", "backend", "proposer"),
    *("validator", "judgement", "axiom", "policy"),
)


def flags(old: View, new: View, delta: tuple[Capability, ...]) -> tuple[Flag, ...]:
    """What widens, and what breaks a command that started the old spec."""
    found = [Flag("widens", item.path, _words(item)) for item in delta if item.widens]
    return (*found, *(Flag("breaking", f"INPUTS/{name}", why) for name, why in _broken_inputs(old, new)))


def _words(item: Capability) -> str:
    if item.change == "changed":
        return f"{item.kind} {item.name}: {_short(item.before)} -> {_short(item.after)}"
    return f"{item.kind} {item.name} {item.change}"


def _short(value: Any) -> str:
    shown = "none" if value is None else str(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."


# ---- what a spec can do --------------------------------------------------------------------------------


def _of(made: View, pairs: Mapping[str, str], catalog: Catalog | None) -> Known:
    found: Known = {}
    if made.level is not None:
        found["level", "", "LEVEL"] = made.level
    config = {path.removeprefix("CONFIG/"): part for path, part in made.settings.items()}
    for key, kind in (
        ("MODE", "mode"),
        ("AUTO_STEPS", "mode"),
        ("BACKEND", "backend"),
        ("PROPOSER", "proposer"),
    ):
        if key in config:
            found[kind, "", key] = config[key].show()
    sandbox = config["SANDBOX"].show() if "SANDBOX" in config else settings.SANDBOXES[0]
    found["sandbox", "", "SANDBOX"] = str(sandbox).upper()
    for row in settings.PLACES["budget"].values():
        part = config.get(f"BUDGET/{row.key}")
        found["budget", "", row.key] = part.show() if part is not None else row.default
    hosts = config["HOSTS"].show() if "HOSTS" in config else ()
    for host in hosts if isinstance(hosts, (list, tuple)) else (hosts,):
        found["network", "", str(host).lower()] = True
    if "POLICY" in made.settings:
        found["policy", "", "POLICY"] = made.settings["POLICY"].show()
    for part in made.items["axiom"]:
        found["axiom", "", part.node.text.value] = part.show()
    retries = (
        config["RETRIES"].show() if "RETRIES" in config else settings.PLACES["config"]["RETRIES"].default
    )
    everything: dict[str, str] = {}
    for name, task in made.tasks.items():
        path = f"tasks/{pairs.get(name, name)}"
        tools = _tools(task, catalog)
        for tool, who in sorted(tools.items()):
            found["tool", path, tool] = who
            everything[tool] = min(who, everything.get(tool, who))
        found |= {(kind, path, key): value for kind, key, value in _of_task(task, retries)}
        for where in _networked(task, catalog):
            found["network", path, where] = True
    for tool, who in sorted(everything.items()):
        found["tool", "", tool] = who
    return found


def _of_task(task: TaskView, retries: Any) -> Iterator[tuple[str, str, Any]]:
    """Kind, name and value of what a task has."""
    validator = task.settings.get("VALIDATOR")
    if validator is not None and validator.show() is not None:
        options = {
            path.removeprefix("VALIDATOR/"): part.show()
            for path, part in task.settings.items()
            if path.startswith("VALIDATOR/")
        }
        yield "validator", "VALIDATOR", {"name": validator.show(), "options": options}
    if "PROPOSER" in task.settings:
        yield "proposer", "PROPOSER", task.settings["PROPOSER"].show()
    yield "budget", "RETRIES", task.settings["RETRIES"].show() if "RETRIES" in task.settings else retries
    for row in settings.PLACES["rule"].values():
        part = task.settings.get(f"RULE/{row.key}") or task.settings.get(f"BUDGET/{row.key}")
        if part is not None or (validator is not None and row.key in ("patience", "evaluations")):
            kind = "judgement" if row.key in RULES else "budget"
            yield kind, row.key, part.show() if part is not None else row.default
    for kind, part in task.conditions.items():
        yield "judgement", kind, part.show()
    for name, check in task.checks.items():
        yield "judgement", f"check {name}", check.kind


def _tools(task: TaskView, catalog: Catalog | None) -> dict[str, str]:
    """The tools that a task may use, by name: `plan` where TOOLS lets a plan choose it, else `step`."""
    listed = task.settings.get("TOOLS")
    shown = listed.show() if listed is not None else ()
    chosen = [name for name in shown if isinstance(name, str)] if isinstance(shown, list) else []
    steps = (*task.steps.values(), *task.checks.values())
    fixed = [step.kind.removeprefix("tool.") for step in steps if step.kind.startswith("tool.")]
    found: dict[str, str] = {}
    for who, names in (("plan", chosen), ("step", fixed)):
        for name in names:
            entry = catalog.tool(name) if catalog is not None else None
            found.setdefault(entry.name if entry is not None else name, who)
    return found


def _networked(task: TaskView, catalog: Catalog | None) -> Iterator[str]:
    """What of a task reaches other hosts: tools that take an address, `network:` where it is not false."""
    for tool in sorted(_tools(task, catalog)):
        entry = catalog.tool(tool) if catalog is not None else None
        known = entry.schema.get("properties", {}) if entry is not None else {}
        if tool.startswith("http") or "url" in known or "host" in known:
            yield tool
    for path, part in task.settings.items():
        if path.rpartition("/")[2] == "network" and part.show() not in (False, None):
            yield path
    steps: tuple[StepView, ...] = (*task.steps.values(), *task.checks.values())
    for step in steps:
        option = step.parts.get("network")
        if option is not None and option.show() not in (False, None):
            yield f"{step.name}/network"


# ---- more or less --------------------------------------------------------------------------------------


def _widens(kind: str, name: str, change: str, was: Any, now: Any, whole: bool) -> bool | None:
    """`whole` says that the task itself came or went: then what it is held to is no loss."""
    match kind:
        case "tool":
            return change == "gained" or (change == "changed" and now == "plan")
        case "network":
            return change == "gained"
        case "level":
            return _rank(now) > _rank(was)
        case "mode" if name == "MODE":
            return _place(settings.MODES, now) > _place(settings.MODES, was)
        case "sandbox":
            return _place(settings.SANDBOXES, now) < _place(settings.SANDBOXES, was)
        case "budget" | "mode":
            return _more(name, was, now, change, whole)
        case "judgement" if name in LESS_IS_MORE:
            return None if change != "changed" else _more(name, was, now, change, whole)
        case "backend" | "proposer":
            return None
    if change == "changed":
        return None
    return change == "lost" and not whole


def _more(name: str, was: Any, now: Any, change: str, whole: bool) -> bool | None:
    if whole:
        return False
    if change != "changed" or not all(isinstance(value, (int, float)) for value in (was, now)):
        return None
    if name in UNLIMITED:
        was, now = (float("inf") if value == 0 else value for value in (was, now))
    return bool(now < was if name in LESS_IS_MORE else now > was)


def _rank(value: Any) -> float:
    return value if isinstance(value, (int, float)) else 0


def _place(names: tuple[str, ...], value: Any) -> int:
    """The place in a scale; a name outside of it (a launcher of a plug-in) counts as its first."""
    lower = [name.lower() for name in names]
    return lower.index(str(value).lower()) if str(value).lower() in lower else -1


def _broken_inputs(old: View, new: View) -> Iterator[tuple[str, str]]:
    before, after = _inputs(old), _inputs(new)
    for name, was in before.items():
        now = after.get(name)
        if now is None:
            yield name, "the input is gone"
        elif now.type != was.type:
            yield name, f"the input wants {now.type}, not {was.type}"
        elif now.required and not was.required:
            yield name, "the input has no default any more"
        elif set(was.choices) - set(now.choices):
            yield name, "the input takes fewer choices"
    for name, now in after.items():
        if name not in before and now.required:
            yield name, "a new input without a default"


def _inputs(made: View) -> dict[str, values.Input]:
    agent = made.spec.agent
    for item in (*made.spec.items, *(agent.items if agent is not None else ())):
        if isinstance(item, ast.Entry) and item.key.upper() == "INPUTS":
            return values.inputs(item.value, Report(made.spec.source))
    return {}
