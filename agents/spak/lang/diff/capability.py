"""The table of what loosens a spec, and the capability delta that follows from it.

`TABLE` has a row for each kind of thing that an agent may do, or is held to. A row finds what differs between
two specs, says for each whether the new one is allowed more or held to less (`widens`, None where that can
not be told), and has a sentence for a reviewer. The gate of the outer loop and reviews read this table and no
other. Takes two Views and the pairs of their tasks; gives Capabilities and Flags; decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from spak.lang import ast, settings, values
from spak.lang.catalog import Catalog
from spak.lang.diff import facts, judges, match, ways
from spak.lang.diff.model import Capability, Flag
from spak.lang.diff.view import StepView, TaskView, View, source_of
from spak.lang.report import Report
from spak.lang.template import holes

NO_LIMIT_AT_0 = {
    "timeout_s",
    *(row.key for row in settings.PLACES["budget"].values() if row.schema.get("minimum") == 0),
}
"""Limits of which 0 means none."""

LESS_IS_MORE = ("window", "margin_percent", "evidence", "every_s")
"""Knobs that allow more, or ask for less proof, when they go down."""


class Met(NamedTuple):
    """A fact in both specs, or in one. `whole` says that its task came or went with it."""

    name: str
    change: Literal["gained", "lost", "changed"]
    was: Any
    now: Any
    whole: bool


@dataclass(frozen=True, slots=True)
class Sides:
    """Both specs, the new names of tasks by old ones, and what is known of tools."""

    old: View
    new: View
    pairs: Mapping[str, str]
    catalog: Catalog | None
    _steps: dict[tuple[str, bool], Mapping[str, str]] = field(default_factory=dict)

    def steps(self, old: TaskView, new: TaskView, checks: bool = False) -> Mapping[str, str]:
        """New names by old ones of the steps, or checks, of a task."""
        key = (new.name, checks)
        if key not in self._steps:
            both = (old.checks, new.checks) if checks else (old.steps, new.steps)
            self._steps[key] = match.steps(*both)
        return self._steps[key]

    def now(self, place: tuple[str, str, str]) -> tuple[str, str, str] | None:
        """Where a ground of the old spec (judges.py) is in the new one; None without its task."""
        task, kind, name = place
        if not task:
            return place
        if task not in self.pairs:
            return None
        old, new = self.old.tasks[task], self.new.tasks[self.pairs[task]]
        names = self.steps(old, new, kind == "checks") if kind else {}
        return new.name, kind, names.get(name, name)

    def tasks(self) -> Iterator[tuple[TaskView, TaskView, str]]:
        """The tasks that both have, and their path."""
        for name, other in self.pairs.items():
            yield self.old.tasks[name], self.new.tasks[other], f"tasks/{other}"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table. `says` is the sentence about what loosens, with the fields of a Capability; `kind`
    is that of its Capabilities."""

    kind: str
    says: str
    found: Callable[[Sides], Iterable[Capability]]


def capabilities(
    old: View, new: View, pairs: Mapping[str, str], catalog: Catalog | None
) -> tuple[Capability, ...]:
    """What was gained, lost or changed, in the order of the table."""
    sides = Sides(old, new, pairs, catalog)
    return tuple(replace(item, why=_sentence(row, item)) for row in TABLE for item in row.found(sides))


def flags(old: View, new: View, delta: tuple[Capability, ...]) -> tuple[Flag, ...]:
    """What widens, and what breaks a command that started the old spec."""
    found = [Flag("widens", item.path, item.why) for item in delta if item.widens]
    return (*found, *(Flag("breaking", f"INPUTS/{name}", why) for name, why in _broken_inputs(old, new)))


def _sentence(row: Row, item: Capability) -> str:
    if item.widens is False:
        return f"{item.kind} {item.name} {item.change}"
    _, task, *more = item.path.split("/") if item.path.startswith("tasks/") else ("", "")
    step = f" of step {more[1]}" if len(more) > 1 and item.kind in ("budget", "sandbox") else ""
    where = f"{step} in {task}" if task else ""
    before, after = _short(item.before), _short(item.after)
    change = f" ({before} -> {after})" if item.change == "changed" else ""
    return row.says.format(name=_short(item.name), where=where, change=change, before=before, after=after)


def _short(value: Any) -> str:
    shown = "none" if value is None else str(value)
    return shown if len(shown) <= 120 else shown[:117] + "..."


# ---- rows that compare facts ---------------------------------------------------------------------------


def _by_facts(
    kind: str,
    held: facts.Held,
    widens: Callable[[Met], bool | None],
) -> Callable[[Sides], Iterator[Capability]]:
    """Compare what each spec has of a kind, fact by fact."""

    def found(sides: Sides) -> Iterator[Capability]:
        names = {f"tasks/{name}": f"tasks/{other}" for name, other in sides.pairs.items()}
        for name, other in sides.pairs.items():
            for step, now in sides.steps(sides.old.tasks[name], sides.new.tasks[other]).items():
                names[f"tasks/{name}/steps/{step}"] = f"tasks/{other}/steps/{now}"
        before = {
            (names.get(one.path, one.path), one.name): one.value for one in held(sides.old, sides.catalog)
        }
        after = {(one.path, one.name): one.value for one in held(sides.new, sides.catalog)}
        kept = {"", *names.values()}
        for key in [*before, *(key for key in after if key not in before)]:
            was, value = before.get(key), after.get(key)
            if was == value and (key in before) == (key in after):
                continue
            change: Any = "gained" if key not in before else "lost" if key not in after else "changed"
            if kind == "budget" and change != "changed":
                continue  # a default that came or went with its task or its validator
            path, name = key
            met = Met(name, change, was, value, path not in kept)
            yield Capability(kind, change, path, name, was, value, widens(met))

    return found


# ---- more or less --------------------------------------------------------------------------------------


def _gained(met: Met) -> bool:
    return met.change == "gained"


def _lost(met: Met) -> bool | None:
    """What a spec is held to: gone is less, unless its task went (then `way` tells), another is not known."""
    return None if met.change == "changed" else met.change == "lost" and not met.whole


def _unknown(met: Met) -> None:
    return None


def _planned(met: Met) -> bool:
    """A tool that may be called now, or whose arguments a plan may choose now."""
    return met.change == "gained" or (met.change == "changed" and met.now == "plan")


def _higher(met: Met) -> bool:
    """Without a LEVEL nothing bounds the mode."""
    return met.change == "lost" or _rank(met.now) > _rank(met.was)


def _mode(met: Met) -> bool | None:
    """Without a MODE the caller's holds, which may be any."""
    if met.name == "MODE":
        if met.change == "lost":
            return None if _place(settings.MODES, met.was) < len(settings.MODES) - 1 else False
        return _place(settings.MODES, met.now) > _place(settings.MODES, met.was)
    return _more(met)


def _asks(met: Met) -> bool:
    return bool(met.now == "ask")


def _more_seen(met: Met) -> bool:
    return int(met.now or 0) > int(met.was or 0)


def _weaker(met: Met) -> bool | None:
    if met.name == facts.READ_ONLY:
        return _lost(met)
    return _place(settings.SANDBOXES, met.now) < _place(settings.SANDBOXES, met.was)


def _judges_less(met: Met) -> bool | None:
    if met.name in LESS_IS_MORE:
        return _more(met) if met.change == "changed" else None
    if met.name in ("success", "invariant") and met.change == "changed":
        return None
    return _lost(met)


def _more(met: Met) -> bool | None:
    """A limit that went up, or is none any more."""
    was, now = met.was, met.now
    if met.whole:
        return False
    if met.change != "changed" or not all(isinstance(value, (int, float)) for value in (was, now)):
        return None
    if met.name in NO_LIMIT_AT_0:
        was, now = (float("inf") if value == 0 else value for value in (was, now))
    return bool(now < was if met.name.rpartition(" ")[2] in LESS_IS_MORE else now > was)


def _rank(value: Any) -> float:
    return value if isinstance(value, (int, float)) else 0


def _place(names: tuple[str, ...], value: Any) -> int:
    """The place in a scale; a name outside of it (a launcher of a plug-in) counts as its first."""
    lower = [name.lower() for name in names]
    return lower.index(str(value).lower()) if str(value).lower() in lower else -1


# ---- rows that compare tasks ---------------------------------------------------------------------------


def _limits_found(sides: Sides) -> Iterator[Capability]:
    """Limits; the patience of a search may rise as long as its evaluations, which are what it may spend, do
    not."""
    found = [*_by_facts("budget", facts.budgets, _more)(sides)]
    spent = {item.path for item in found if item.name == "evaluations" and item.widens is not False}
    spent |= {path for old, new, path in sides.tasks() if "evaluations" not in dict(facts.rule(new))}
    for item in found:
        bounded = item.name == "patience" and item.path not in spent
        yield replace(item, widens=False) if bounded else item


def _ways(sides: Sides) -> Iterator[Capability]:
    """Ways from START to an end that lose a judge, a condition or a deciding step."""
    found = ways.lost(sides.old, sides.new, sides.pairs)
    if found is None:
        yield Capability("way", "changed", "", "NEXT", widens=None)
        return
    for item in found:
        after = f"{item.task} ends with {item.trigger}" if item.task else "START"
        where = f"goes on to {item.to}" if item.to else "ends"
        path = f"tasks/{item.task}/NEXT/{item.trigger}" if item.task else "START"
        named = ", ".join(item.without)
        yield Capability("way", "lost", path, f"after {after} a run {where}", named, None, True)


def _steps(sides: Sides) -> Iterator[Capability]:
    """Steps whose exit decides their task, and steps that a judgement rests on."""
    read = judges.evidence(sides.old)
    evidence = judges.rests_on(sides.old, read)
    for old, new, path in sides.tasks():
        kept = sides.steps(old, new)
        decided, decide = set(judges.deciding(old)), set(judges.deciding(new))
        does = judges.contents(old, sides.catalog)
        remaining = {does[name] for name in kept}
        place, last = {name: index for index, name in enumerate(new.steps)}, -1
        wrote = {kept.get(name) for name, step in old.steps.items() if judges.writes(step, sides.catalog)}
        came = [name for name, step in new.steps.items() if judges.writes(step, sides.catalog)]
        last_new = max((place[name] for name in came if name not in wrote), default=-1)
        for name, step in old.steps.items():
            other = kept.get(name)
            widens: bool | None = False
            if name not in decided and (old.name, name) not in evidence:
                pass
            elif other is None:
                widens = does[name] not in remaining
            elif name in decided and other not in decide:
                widens = None if judges.judged(new) else True
            elif place[other] < last:
                widens = True
            elif place[other] < last_new and (old.name, name) in read:
                widens = None
            if widens is not False:
                yield Capability("step", "lost", f"{path}/steps/{other or name}", name, widens=widens)
            if other is not None and judges.writes(step, sides.catalog):
                last = max(last, place[other])


def _grounds(kind: str) -> Callable[[Sides], Iterator[Capability]]:
    """What judgements go by: questions (`prompt`), or all else. What is new counts where it sets a variable
    that was read already."""
    asks = kind == "prompt"

    def found(sides: Sides) -> Iterator[Capability]:
        after, known = judges.grounds(sides.new, sides.catalog), set()
        read = {(sides.pairs.get(task), variable) for task, variable in judges.readings(sides.old)}
        for place, was in judges.grounds(sides.old, sides.catalog).items():
            other = sides.now(place)
            if other is None:
                continue  # its task went, and `way` tells
            known.add(other)
            now = after.get(other)
            if was.asks == asks and (asks if now is None else now.does != was.does):
                change: Any = "lost" if now is None else "changed"
                yield Capability(kind, change, _path(other), place[2], widens=True if asks else None)
        for place, came in after.items():
            if place not in known and came.asks == asks and came.read & read:
                yield Capability(kind, "gained", _path(place), place[2], widens=None)

    return found


def _path(place: tuple[str, str, str]) -> str:
    task, kind, name = place
    return "/".join(part for part in ("tasks" if task else "", task, kind, name) if part)


def _protected(sides: Sides) -> Iterator[Capability]:
    """Paths that patches may not change; a patch step that is new is held to what others of the spec were."""
    before = {
        (owner, name): _kept(step)
        for owner, task in sides.old.tasks.items()
        for name, step in task.steps.items()
        if _patches(step, sides.catalog)
    }
    usual = [path for kept in before.values() for path in kept]
    came = {other: name for name, other in sides.pairs.items()}
    for name, task in sides.new.tasks.items():
        old = sides.old.tasks.get(came.get(name, ""))
        was = {other: step for step, other in sides.steps(old, task).items()} if old is not None else {}
        for key, step in task.steps.items():
            if not _patches(step, sides.catalog):
                known = old.steps.get(was.get(key, "")) if old is not None else None
                yield from _writes_at(f"tasks/{name}/steps/{key}", step, known, usual, sides.catalog)
                continue
            wanted = before.get((came.get(name, ""), was.get(key, "")), usual)
            path = f"tasks/{name}/steps/{key}"
            for one in _uncovered(wanted, _kept(step)):
                yield Capability("protect", "lost", path, one, widens=True)
            for one in _uncovered(_kept(step), wanted):
                yield Capability("protect", "gained", path, one, widens=False)


def _writes_at(
    path: str, step: StepView, known: StepView | None, usual: list[str], catalog: Catalog | None
) -> Iterator[Capability]:
    """A path that patches may not change and that the step now writes; one that is put together may be it."""
    at = step.parts.get("path")
    if not usual or at is None or not judges.writes(step, catalog):
        return
    if (
        known is not None
        and known.kind == step.kind
        and "path" in known.parts
        and known.parts["path"].mark == at.mark
    ):
        return
    is_plain = isinstance(at.node, ast.Text) and not holes(at.node.value) and ".." not in at.node.value
    name = at.node.value if is_plain else source_of(at.node)
    if not is_plain or not _uncovered([name], usual):
        yield Capability("protect", "lost", path, name, widens=True if is_plain else None)


def _patches(step: StepView, catalog: Catalog | None) -> bool:
    """Whether it calls a tool that takes paths to protect."""
    tool = step.kind.removeprefix("tool.")
    entry = catalog.tool(tool) if catalog is not None else None
    return "protect" in entry.schema.get("properties", {}) if entry is not None else tool == "apply_patch"


def _kept(step: StepView) -> list[str]:
    part = step.parts.get("protect")
    node = part.node if part is not None else ()
    items = node.items if isinstance(node, ast.ListValue) else (node,) if part is not None else ()
    return [item.value if isinstance(item, ast.Text) else source_of(item) for item in items]


def _uncovered(wanted: Iterable[str], given: Iterable[str]) -> list[str]:
    """Paths that lie in none of the given ones."""
    folders = [_parts(one) for one in given]
    return [
        one for one in dict.fromkeys(wanted) if not any(_parts(one)[: len(two)] == two for two in folders)
    ]


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


# ---- the table -----------------------------------------------------------------------------------------


def _row(kind: str, says: str, held: facts.Held, widens: Callable[[Met], bool | None]) -> Row:
    return Row(kind, says, _by_facts(kind, held, widens))


TABLE: tuple[Row, ...] = (
    Row("way", "{name} without {before}", _ways),
    Row("step", "step {name} no longer decides{where}", _steps),
    Row("prompt", "the question {name}, whose answer a condition reads, is another", _grounds("prompt")),
    Row("evidence", "a judgement goes by {name}{where}, which is another", _grounds("evidence")),
    _row("judgement", "{name}{where} judges less{change}", facts.judgements, _judges_less),
    _row("validator", "VALIDATOR{where} judges less{change}", facts.validators, _lost),
    Row("protect", "the spec may change {name}{where}, which was protected", _protected),
    _row("axiom", "the axiom is gone: {name}", facts.axioms, _lost),
    _row("policy", "POLICY{change} forbids less", facts.policy, _lost),
    _row("level", "LEVEL rises{change}", facts.level, _higher),
    _row("mode", "{name}{change} stops less often", facts.modes, _mode),
    _row("approvals", "what was denied may be approved by a person", facts.approvals, _asks),
    _row("export", "it is offered as a tool to clients of the platform's MCP server", facts.export, _gained),
    _row("sandbox", "the sandbox is weaker{where}{change}", facts.sandbox, _weaker),
    _row("history", "jobs see more commits of the repository{change}", facts.history, _more_seen),
    _row("network", "requests may reach {name}{where}", facts.network, _gained),
    _row("tool", "the tool {name} may be called{where}{change}", facts.tools, _planned),
    Row("budget", "the limit {name}{where} is higher{change}", _limits_found),
    _row("backend", "another model answers{change}", facts.backend, _unknown),
    _row("proposer", "another proposer plans{where}{change}", facts.proposers, _unknown),
)
"""Of each kind what counts: gone, asked less, weaker, higher or none; what is only another is not known."""


# ---- inputs --------------------------------------------------------------------------------------------


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
