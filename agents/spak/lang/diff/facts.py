"""What a spec has of each kind of thing that it may do or is held to: facts by path and name. Pure.

The table of what loosens (capability.py) compares them. Defaults count as said, so that leaving a limit out
is compared with the limit that then holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from spak.lang import settings
from spak.lang.catalog import Catalog
from spak.lang.diff.view import StepView, TaskView, View

RULES = ("metric", "better", "margin_percent", "evidence", "max_pairs")
"""Keys of RULE that say when a measurement counts; the others are budgets."""


class Fact(NamedTuple):
    """What one spec has of a kind: where, called what, with which value."""

    path: str
    name: str
    value: Any


def _setting(made: View, key: str, default: Any = None) -> Any:
    part = made.settings.get(f"CONFIG/{key}")
    return part.show() if part is not None else default


def level(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """LEVEL."""
    if made.level is not None:
        yield Fact("", "LEVEL", made.level)


def modes(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """MODE and AUTO_STEPS."""
    for key in ("MODE", "AUTO_STEPS"):
        if (value := _setting(made, key)) is not None:
            yield Fact("", key, value)


def approvals(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """APPROVALS."""
    yield Fact("", "APPROVALS", str(_setting(made, "APPROVALS", settings.APPROVALS[0])).lower())


def sandbox(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """SANDBOX."""
    yield Fact("", "SANDBOX", str(_setting(made, "SANDBOX", settings.SANDBOXES[0])).upper())


def network(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """Hosts, and what reaches them."""
    hosts = _setting(made, "HOSTS", ())
    for host in hosts if isinstance(hosts, (list, tuple)) else (hosts,):
        yield Fact("", str(host).lower(), True)
    for name, task in made.tasks.items():
        for where in _networked(task, catalog):
            yield Fact(f"tasks/{name}", where, True)


def tools(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """Tools of each task and of all: `plan` where a plan may choose one."""
    everything: dict[str, str] = {}
    for name, task in made.tasks.items():
        for tool, who in sorted(_tools_of(task, catalog).items()):
            yield Fact(f"tasks/{name}", tool, who)
            everything[tool] = min(who, everything.get(tool, who))
    for tool, who in sorted(everything.items()):
        yield Fact("", tool, who)


def budgets(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """Limits, with their defaults."""
    for row in settings.PLACES["budget"].values():
        yield Fact("", row.key, _setting(made, f"BUDGET/{row.key}", row.default))
    retries = _setting(made, "RETRIES", settings.PLACES["config"]["RETRIES"].default)
    for key in SPENT_BY_PROPOSERS:
        if (value := _setting(made, f"PROPOSER/{key}")) is not None:
            yield Fact("", f"PROPOSER {key}", value)
    for name, task in made.tasks.items():
        for key, value in _limits(task, retries):
            yield Fact(f"tasks/{name}", key, value)


SPENT_BY_PROPOSERS = ("tokens", "block")
"""Options of a PROPOSER that limit what it uses up."""


def _limits(task: TaskView, retries: Any) -> Iterator[tuple[str, Any]]:
    part = task.settings.get("RETRIES")
    yield "RETRIES", part.show() if part is not None else retries
    yield from ((key, value) for key, value in rule(task) if key not in RULES)
    for key in SPENT_BY_PROPOSERS:
        part = task.settings.get(f"PROPOSER/{key}")
        if part is not None:
            yield f"PROPOSER {key}", part.show()
    for step in task.steps.values():
        poll = step.parts.get("poll")
        given = poll.show() if poll is not None else None
        if isinstance(given, dict):
            for row in settings.PLACES["poll"].values():
                yield f"{step.name} poll {row.key}", given.get(row.key, row.default)


def rule(task: TaskView) -> Iterator[tuple[str, Any]]:
    """What RULE and BUDGET of a task say; where it has a VALIDATOR also the defaults of a search."""
    for row in settings.PLACES["rule"].values():
        part = task.settings.get(f"RULE/{row.key}") or task.settings.get(f"BUDGET/{row.key}")
        if part is not None:
            yield row.key, part.show()
        elif "VALIDATOR" in task.settings and row.key in ("patience", "evaluations"):
            yield row.key, row.default


def backend(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """BACKEND."""
    if (value := _setting(made, "BACKEND")) is not None:
        yield Fact("", "BACKEND", value)


def proposers(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """PROPOSER of the agent and of tasks."""
    if (value := _setting(made, "PROPOSER")) is not None:
        yield Fact("", "PROPOSER", value)
    for name, task in made.tasks.items():
        if "PROPOSER" in task.settings:
            yield Fact(f"tasks/{name}", "PROPOSER", task.settings["PROPOSER"].show())


def validators(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """VALIDATOR of tasks with its options."""
    for name, task in made.tasks.items():
        validator = task.settings.get("VALIDATOR")
        if validator is not None and validator.show() is not None:
            options = {
                path.removeprefix("VALIDATOR/"): part.show()
                for path, part in task.settings.items()
                if path.startswith("VALIDATOR/")
            }
            yield Fact(f"tasks/{name}", "VALIDATOR", {"name": validator.show(), "options": options})


def judgements(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """Rules of measurement, conditions, checks."""
    for name, task in made.tasks.items():
        for key, value in rule(task):
            if key in RULES:
                yield Fact(f"tasks/{name}", key, value)
        for kind, part in task.conditions.items():
            yield Fact(f"tasks/{name}", kind, part.show())
        for check in task.checks.values():
            yield Fact(f"tasks/{name}", f"check {check.name}", check.kind)


def axioms(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """Axioms."""
    for part in made.items["axiom"]:
        yield Fact("", part.node.text.value, part.show())


def policy(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """POLICY."""
    if "POLICY" in made.settings:
        yield Fact("", "POLICY", made.settings["POLICY"].show())


def _tools_of(task: TaskView, catalog: Catalog | None) -> dict[str, str]:
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
    for tool in sorted(_tools_of(task, catalog)):
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
