"""What a spec has of each kind of thing that it may do or is held to: facts by path and name. Pure.

The table of what loosens (capability.py) compares them. Defaults count as said, so that leaving a limit out
is compared with the limit that then holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from spak.lang import settings
from spak.lang.catalog import Catalog
from spak.lang.diff.view import Part, StepView, TaskView, View

RULES = ("metric", "better", "margin_percent", "evidence", "max_pairs")
"""Keys of RULE that say when a measurement counts; the others are budgets."""
SPENT_BY_PROPOSERS = ("tokens", "block")
"""Options of a PROPOSER that limit what it uses up."""
READ_ONLY = "read-only workspace"


class Fact(NamedTuple):
    """What one spec has of a kind: where, called what, with which value."""

    path: str
    name: str
    value: Any


Held = Callable[[View, Catalog | None], Iterator[Fact]]
"""The facts of one kind."""


def config(*keys: str, default: Any = None, case: Callable[[str], Any] | None = None) -> Held:
    """Settings of CONFIG that are said or have a default, in one case of letters."""

    def held(made: View, catalog: Catalog | None) -> Iterator[Fact]:
        for key in keys:
            if (value := _shown(made.settings, f"CONFIG/{key}", default)) is not None:
                yield Fact("", key, case(str(value)) if case is not None else value)

    return held


modes = config("MODE", "AUTO_STEPS")
approvals = config("APPROVALS", default=settings.APPROVALS[0], case=str.lower)
backend = config("BACKEND")
history = config("HISTORY", default=0)


def sandbox(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """SANDBOX, and the steps that see the workspace read-only."""
    yield from config("SANDBOX", default=settings.SANDBOXES[0], case=str.upper)(made, catalog)
    for name, task in made.tasks.items():
        for key, step in task.steps.items():
            if _shown(step.parts, "writable") is False:
                yield Fact(f"tasks/{name}/steps/{key}", READ_ONLY, True)


def level(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """LEVEL."""
    if made.level is not None:
        yield Fact("", "LEVEL", made.level)


def policy(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """POLICY."""
    if "POLICY" in made.settings:
        yield Fact("", "POLICY", _shown(made.settings, "POLICY"))


def export(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """EXPORT."""
    if "EXPORT" in made.settings:
        yield Fact("", "EXPORT", _shown(made.settings, "EXPORT"))


def axioms(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """Axioms."""
    yield from (Fact("", part.node.text.value, part.show()) for part in made.items["axiom"])


def network(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """Hosts, and what of tasks reaches them: tools that take an address, `network:` where it is not false."""
    hosts = _shown(made.settings, "CONFIG/HOSTS", [])
    yield from (Fact("", str(host).lower(), True) for host in (hosts if isinstance(hosts, list) else [hosts]))
    for name, task in made.tasks.items():
        found = [tool for tool in sorted(_tools_of(task, catalog)) if _reaches(tool, catalog)]
        found += [path for path in task.settings if _is_last(path, "network") and _on(task.settings, path)]
        both = (*task.steps.values(), *task.checks.values())
        found += [f"{step.name}/network" for step in both if _on(step.parts, "network")]
        yield from (Fact(f"tasks/{name}", where, True) for where in found)


def tools(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """Tools of each task and of all: `plan` where a plan may choose one."""
    everything: dict[str, str] = {}
    for name, task in made.tasks.items():
        for tool, who in sorted(_tools_of(task, catalog).items()):
            yield Fact(f"tasks/{name}", tool, who)
            everything[tool] = min(who, everything.get(tool, who))
    yield from (Fact("", tool, who) for tool, who in sorted(everything.items()))


def budgets(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """Limits, with their defaults."""
    for row in settings.PLACES["budget"].values():
        yield Fact("", row.key, _shown(made.settings, f"CONFIG/BUDGET/{row.key}", row.default))
    yield from (Fact("", *one) for one in _spent(made.settings, "CONFIG/"))
    retries = _shown(made.settings, "CONFIG/RETRIES", settings.PLACES["config"]["RETRIES"].default)
    for name, task in made.tasks.items():
        yield from (Fact(f"tasks/{name}", *one) for one in _limits(task, retries))
        for key, step in task.steps.items():
            yield from (Fact(f"tasks/{name}/steps/{key}", *one) for one in _limits_of_step(step))


def _limits(task: TaskView, retries: Any) -> Iterator[tuple[str, Any]]:
    yield "RETRIES", _shown(task.settings, "RETRIES", retries)
    yield from ((key, value) for key, value in rule(task) if key not in RULES)
    yield from _spent(task.settings, "")


def _limits_of_step(step: StepView) -> Iterator[tuple[str, Any]]:
    yield "timeout_s", _shown(step.parts, "timeout_s", 0)
    if isinstance(given := _shown(step.parts, "poll"), dict):
        for row in settings.PLACES["poll"].values():
            yield f"poll {row.key}", given.get(row.key, row.default)


def _spent(parts: Mapping[str, Part], place: str) -> Iterator[tuple[str, Any]]:
    for key in SPENT_BY_PROPOSERS:
        if (value := _shown(parts, f"{place}PROPOSER/{key}")) is not None:
            yield f"PROPOSER {key}", value


def rule(task: TaskView) -> Iterator[tuple[str, Any]]:
    """What RULE and BUDGET of a task say; where it has a VALIDATOR also the defaults of a search."""
    for row in settings.PLACES["rule"].values():
        part = task.settings.get(f"RULE/{row.key}") or task.settings.get(f"BUDGET/{row.key}")
        if part is not None:
            yield row.key, part.show()
        elif "VALIDATOR" in task.settings and row.key in ("patience", "evaluations"):
            yield row.key, row.default


def proposers(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """PROPOSER of the agent and of tasks."""
    yield from config("PROPOSER")(made, catalog)
    for name, task in made.tasks.items():
        if "PROPOSER" in task.settings:
            yield Fact(f"tasks/{name}", "PROPOSER", _shown(task.settings, "PROPOSER"))


def validators(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """VALIDATOR of tasks with its options."""
    for name, task in made.tasks.items():
        if (validator := _shown(task.settings, "VALIDATOR")) is not None:
            paths = [path for path in task.settings if path.startswith("VALIDATOR/")]
            options = {path.removeprefix("VALIDATOR/"): task.settings[path].show() for path in paths}
            yield Fact(f"tasks/{name}", "VALIDATOR", {"name": validator, "options": options})


def judgements(made: View, catalog: Catalog | None) -> Iterator[Fact]:
    """Rules of measurement, conditions, checks."""
    for name, task in made.tasks.items():
        found = [(key, value) for key, value in rule(task) if key in RULES]
        found += [(kind, part.show()) for kind, part in task.conditions.items()]
        found += [(f"check {check.name}", check.kind) for check in task.checks.values()]
        yield from (Fact(f"tasks/{name}", *one) for one in found)


def _tools_of(task: TaskView, catalog: Catalog | None) -> dict[str, str]:
    """The tools that a task may use, by name: `plan` where TOOLS lets a plan choose it, else `step`."""
    listed = _shown(task.settings, "TOOLS")
    chosen = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    steps = (*task.steps.values(), *task.checks.values())
    fixed = [step.kind.removeprefix("tool.") for step in steps if step.kind.startswith("tool.")]
    found: dict[str, str] = {}
    for who, names in (("plan", chosen), ("step", fixed)):
        for name in names:
            entry = catalog.tool(name) if catalog is not None else None
            found.setdefault(entry.name if entry is not None else name, who)
    return found


def _reaches(tool: str, catalog: Catalog | None) -> bool:
    entry = catalog.tool(tool) if catalog is not None else None
    known = entry.schema.get("properties", {}) if entry is not None else {}
    return tool.startswith("http") or "url" in known or "host" in known


def _shown(parts: Mapping[str, Part], path: str, default: Any = None) -> Any:
    part = parts.get(path)
    return part.show() if part is not None else default


def _on(parts: Mapping[str, Part], path: str) -> bool:
    return _shown(parts, path) not in (False, None)


def _is_last(path: str, key: str) -> bool:
    return path.rpartition("/")[2] == key
