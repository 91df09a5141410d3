"""Completion: what may stand at an offset, and the same choices for hovers.

Takes a View and an offset; gives Completions, each with what it means and the stretch it replaces. What is
offered comes from the tables that `check` reads (settings, catalog, grammar) and from the names of the spec,
so that nothing is offered that check would refuse. Sorting by what was typed is the editor's work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from spak.lang import settings
from spak.lang.checks.steps import LAST
from spak.lang.checks.transitions import ALWAYS, LOW
from spak.lang.features import describe, words
from spak.lang.features.place import Frame, Spot, spot
from spak.lang.features.view import View
from spak.lang.outline import ON_FAIL, TaskPlan
from spak.lang.parser.automaton import tables
from spak.lang.scope import MARK_PARTS, MARKS, PLAIN

Kind = Literal[
    "keyword", "setting", "field", "value", "task", "step", "check", "tool", "validator", "proposer",
    "backend", "launcher", "trigger", "variable", "function", "type",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Completion:
    """A choice. `insert` may hold `${1:places}` when `snippet`; it replaces `start` to `end`."""

    label: str
    kind: Kind
    detail: str
    documentation: str
    insert: str
    snippet: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice before it is asked for: what it means is only put together when someone reads it."""

    label: str
    kind: Kind
    detail: str
    about: Callable[[], str]
    insert: str = ""


def complete(view: View, offset: int) -> tuple[Completion, ...]:
    """The choices at an offset, in the order in which they are declared."""
    here = spot(view, offset)
    found: dict[str, Completion] = {}
    given = _given(view, here)
    for item in choices(view, here):
        if item.label not in found and not (item.kind in _ONCE and item.label in given):
            found[item.label] = Completion(
                item.label,
                item.kind,
                item.detail,
                item.about(),
                item.insert or item.label,
                bool(item.insert) and "$" in item.insert,
                here.word.start,
                here.word.end,
            )
    return tuple(found.values())


_ONCE: frozenset[Kind] = frozenset({"setting", "field", "tool", "trigger"})
"""Kinds that stand once in their block."""


def _given(view: View, here: Spot) -> set[str]:
    """The words that stand in the block of the spot already, not counting those in brackets of their own."""
    if here.wanted not in ("item", "trigger") and here.frame.block != "list":
        return set()
    words, raw = tables().words, view.raw
    found: set[str] = set()
    depth = 0
    for index in range(here.frame.open + 1, len(raw)):
        if raw.kinds[index] in words.openers:
            depth += 1
        elif raw.kinds[index] in words.closers:
            if not depth:
                break
            depth -= 1
        elif not depth and raw.starts[index] != here.word.start:
            found.add(view.text[raw.starts[index] : raw.ends[index]])
    return found


def choices(view: View, here: Spot) -> Iterator[Choice]:
    """What may stand at a spot."""
    chooser = _Chooser(view, here)
    match here.wanted:
        case "item":
            yield from chooser.items()
        case "value":
            yield from chooser.values()
        case "target":
            yield from chooser.tasks()
        case "trigger":
            yield from chooser.triggers()
        case "kind":
            yield from chooser.kinds()
        case "condition":
            yield from chooser.operands()
        case "joint":
            yield from chooser.keywords("AND", "OR")
            yield from chooser.items()
        case "type":
            yield from chooser.types()
        case "when":
            yield from chooser.when()
        case "static":
            yield from chooser.checks()
        case "variable":
            yield from chooser.variables(bare=False)
        case "text":
            yield from chooser.texts()
        case "word":
            yield from chooser.keywords(*here.words)
        case _:
            return


class _Chooser:
    def __init__(self, view: View, here: Spot) -> None:
        self.view = view
        self.here = here
        self.frame: Frame = here.frame
        self.catalog = view.catalog

    # ---- keys and keywords

    def items(self) -> Iterator[Choice]:
        frame = self.frame
        match frame.block:
            case "top":
                if self.view.spec.agent is None:
                    yield from self.keywords("AGENT", "TASK", "SYSTEM_MODEL", snippets=True)
                    yield from self.keys("agent")
            case "agent":
                started = () if self.view.outline.start is not None else ("START",)
                yield from self.keywords(*started, "TASK", "SYSTEM_MODEL", snippets=True)
                yield from self.keys("agent")
            case "task":
                yield from self.keys("task")
                yield from self.keywords("NEXT", "STEP", "EVALUATION", "SUCCESS", "INVARIANT", snippets=True)
            case "model":
                yield from self.keywords(*self.here.words)
                yield from self.keywords("AXIOM", "HEURISTIC", "PREDICTION", snippets=True)
            case "evaluation":
                yield from self.keywords("CHECK", snippets=True)
            case "settings":
                yield from self.keys(frame.table)
            case "step":
                yield from self.fields()
            case "options" | "map":
                yield from self.members(frame.schema)
            case "space":
                yield self.word("require", words.PARAMETERS["require"], "field", insert=True)
            case _:
                return

    def keywords(self, *names: str, snippets: bool = False) -> Iterator[Choice]:
        for name in names:
            entry = words.KEYWORDS.get(name)
            if entry is None:  # punctuation
                yield Choice(name, "keyword", "", lambda: "")
                continue
            label = self.cased(name)
            insert = entry.insert if snippets else ""
            insert = insert if insert.startswith(label) else label + insert[len(label) :] if insert else ""
            yield Choice(label, "keyword", entry.about, _later(describe.word, label, entry), insert)

    def cased(self, name: str) -> str:
        """A keyword as the text around writes it: words of steps are small, others follow their block."""
        if name in ("STEP", "EVALUATION", "CHECK", "SUCCESS", "INVARIANT", "AND", "OR", "NOT"):
            return name if name == "CHECK" and self.frame.block == "model" else name.lower()
        opener = self.frame.open
        if opener < 0:
            return name
        small = {"model": "system_model", "task": "task"}.get(self.frame.block, "")
        for back in (1, 2):
            start, end = self.view.raw.starts[opener - back], self.view.raw.ends[opener - back]
            if small and self.view.text[start:end] == small and self.frame.block == "model":
                return name.lower()
        return name

    def keys(self, place: str) -> Iterator[Choice]:
        for key, found in settings.PLACES[place].items():
            yield Choice(key, "setting", found.about, _later(describe.setting, found), _setting_insert(found))

    def fields(self) -> Iterator[Choice]:
        """The fields of a step: its tool's arguments, or those of a question."""
        family, _, rest = self.frame.owner.partition(".")
        if family == "llm":
            names = ("prompt", "role", "output_var") if rest == "plan" else tuple(words.FIELDS)
        else:
            yield from self.members(self.frame.schema)
            names = ("output_var", "on_fail", "poll")
        for name in names:
            yield self.word(name, words.FIELDS[name], "field", f"{name}: ")

    def members(self, schema: Mapping[str, Any]) -> Iterator[Choice]:
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        for key in sorted(properties, key=lambda key: key not in required):
            inner = properties[key]
            detail = describe.schema(inner).replace("`", "")
            about = _later(describe.member, key, inner, key in required)
            yield Choice(key, "field", detail, about, f"{key}: ")

    # ---- values

    def values(self) -> Iterator[Choice]:
        frame, key = self.frame, self.here.key
        if frame.block == "call":
            yield from self.arguments()
        elif key == "LEVEL":
            for level in "12345":
                about = words.KEYWORDS["LEVEL"]
                yield Choice(level, "value", "", _later(describe.word, "LEVEL", about))
        elif frame.block in ("top", "agent", "task", "settings"):
            place = (
                frame.table if frame.block == "settings" else ("task" if frame.block == "task" else "agent")
            )
            found = settings.find(place, key)
            if found is not None:
                yield from self.of_setting(found)
        elif frame.block == "list" and key.upper() == "TOOLS" and self.here.inside("task", "step"):
            yield from self.tools()
        elif frame.block == "space":
            for name in ("range", "log"):
                yield self.word(name, words.PARAMETERS[name], "function", insert=True)
        elif key == "on_fail" and frame.block == "step":
            for name in ON_FAIL:
                yield Choice(name, "value", "", _later(str, words.ON_FAIL[name]))
        elif key == "tool" and frame.owner in self.catalog.proposers:
            yield from self.tools()
        elif key != "output_var":
            yield from self.of_schema(self.schema(key))
            yield from self.variables(bare=True)

    def schema(self, key: str) -> Mapping[str, Any]:
        if self.frame.block == "list":
            return self.frame.schema
        found = self.frame.schema.get("properties", {}).get(key)
        return found if isinstance(found, Mapping) else {}

    def of_setting(self, found: settings.Setting) -> Iterator[Choice]:
        if found.table == "tools":
            return
        if found.key == "SANDBOX":
            for name in dict.fromkeys(
                (*settings.SANDBOXES, *(key.upper() for key in self.catalog.launchers))
            ):
                yield self.value(name, "launcher")
        elif found.table and found.kind in ("name", "tagged"):
            yield from self.entries(found.table)
            if found.table in ("validators", "proposers"):
                yield Choice("none", "value", "", _later(str, f"No {found.table[:-1]}."))
        else:
            yield from self.of_schema(found.schema)

    def of_schema(self, schema: Mapping[str, Any]) -> Iterator[Choice]:
        for item in schema.get("enum", ()):
            text = item if isinstance(item, str) else str(item).lower()
            plain = isinstance(item, str) and item.replace("_", "a").isalnum() and item.isascii()
            spelled = text if plain or not isinstance(item, str) else f'"{text}"'
            yield self.value(spelled, "value")
        if schema.get("type") == "boolean":
            yield self.value("true", "value")
            yield self.value("false", "value")

    def value(self, name: str, kind: Kind) -> Choice:
        about = words.CHOICES.get(name, "")
        return Choice(name, kind, about, _later(str, f"{describe.code(name)}: {about}" if about else ""))

    def entries(self, table: str) -> Iterator[Choice]:
        for name, entry in getattr(self.catalog, table).items():
            if table == "validators":
                yield Choice(name, "validator", entry.summary, _later(describe.validator, entry))
            else:
                kind: Kind = "proposer" if table == "proposers" else "backend"
                yield Choice(name, kind, entry.summary, _later(describe.named, kind, entry))

    def tools(self, prefix: str = "") -> Iterator[Choice]:
        for entry in self.catalog.tools.values():
            for name in (entry.name, *entry.aliases):
                yield Choice(prefix + name, "tool", entry.summary, _later(describe.tool, entry))

    def kinds(self) -> Iterator[Choice]:
        """The kinds of a step: tools first, those that TOOLS of the task lists before all others."""
        plan = self.plan()
        listed = plan.tools if plan is not None and "TOOLS" in plan.settings else {}
        found = list(self.tools("tool."))
        yield from sorted(found, key=lambda item: item.label.removeprefix("tool.") not in listed)
        for name, entry in words.STEPS.items():
            if name != "llm.plan" or self.frame.block == "task":
                yield self.word(name, entry, "function")

    def texts(self) -> Iterator[Choice]:
        """Inside a text: what it may be where its schema says so."""
        if self.here.key == "tool" and self.frame.owner in self.catalog.proposers:
            yield from self.tools()
            return
        for item in self.schema(self.here.key).get("enum", ()):
            if isinstance(item, str):
                yield self.value(item, "value")

    # ---- names of the spec

    def plan(self) -> TaskPlan | None:
        node = self.view.task_at(self.here.word.start)
        return self.view.outline.tasks.get(node.name) if node is not None else None

    def tasks(self) -> Iterator[Choice]:
        """The tasks by their heads: `START ->` without its target takes the next TASK for one."""
        keyword, raw, made = tables().words.keywords["task"], self.view.raw, self.view.outline
        for index, kind in enumerate(raw.kinds[:-3]):
            if kind != keyword or self.view.text[raw.starts[index + 2]] != "{":
                continue
            name = self.view.text[raw.starts[index + 1] : raw.ends[index + 1]]
            plan = made.tasks.get(name)
            detail = _goal(plan) if plan is not None else ""
            yield Choice(name, "task", detail, _later(describe.task, self.view, name))

    def triggers(self) -> Iterator[Choice]:
        plan = self.plan()
        entry = plan.validator_entry if plan is not None else None
        for name in dict.fromkeys((*(entry.triggers if entry is not None else ()), *ALWAYS, LOW)):
            about = words.TRIGGERS.get(name, "")
            yield Choice(name, "trigger", about, _later(describe.trigger, name), f"{name} -> ${{1:task}}")

    def when(self) -> Iterator[Choice]:
        given = {name for entry in self.catalog.validators.values() for name in entry.triggers}
        for name in (*ALWAYS, LOW, *sorted(given - set(ALWAYS))):
            yield Choice(name, "trigger", words.TRIGGERS.get(name, ""), _later(describe.trigger, name))

    def checks(self) -> Iterator[Choice]:
        for entry in self.catalog.checks.values():
            yield Choice(entry.name, "check", entry.summary, _later(describe.named, "check", entry))

    def variables(self, bare: bool) -> Iterator[Choice]:
        """Variables that have a value here; as a bare value only those that a bare word can mean."""
        made, scope, plan = self.view.outline, self.view.scope, self.plan()
        inputs = [f"input.{name}" for name in made.inputs]
        fixed = self.frame.table == "proposers"  # filled in before the run
        goal = self.here.key == "GOAL"  # filled in when the task is entered
        index = 0 if goal else self.index(plan)
        for name in inputs if fixed else [*self.paths(plan, index), *inputs]:
            if (bare and not scope.is_variable(name)) or (goal and name == "goal"):
                continue
            if plan is None or fixed or scope.problem(name, plan, index) is None:
                yield Choice(name, "variable", "", _later(describe.variable, self.view, name))

    def paths(self, plan: TaskPlan | None, index: int) -> Iterator[str]:
        """Every variable of the spec but its inputs."""
        made, scope = self.view.outline, self.view.scope
        yield from scope.setters
        yield from PLAIN
        yield from _numbered("axiom", made.axioms)
        yield from _numbered("heuristic", made.heuristics)
        yield from _numbered("prediction", made.predictions)
        for step in (plan.steps if plan is not None else [])[:index]:
            if step.tool is not None:
                yield f"exit_code.{step.node.name}"
        yield from (f"metric.{name}" for name in sorted(scope.metrics))
        if any(task.rule or _measures(task) for task in made.tasks.values()):
            yield from (f"{mark}.{part}" for mark in MARKS for part in MARK_PARTS)

    def index(self, plan: TaskPlan | None) -> int:
        """The step that the spot is in; behind all of them where it is in none."""
        for index, step in enumerate(plan.steps if plan is not None else ()):
            start, end = self.view.outline.report.source.offsets(step.node.start, step.node.end)
            if start <= self.here.word.start <= end:
                return index
        return LAST

    def operands(self) -> Iterator[Choice]:
        """What a condition may begin with or compare."""
        for name, entry in words.FUNCTIONS.items():
            yield self.word(name, entry, "function", insert=True)
        yield from self.keywords("NOT")
        plan = self.plan()
        for check in plan.checks if plan is not None else ():
            name = check.node.name
            owner = plan.name if plan is not None else ""
            yield Choice(name, "check", "", _later(describe.step, self.view, owner, name))
        yield from self.variables(bare=True)
        yield self.value("true", "value")
        yield self.value("false", "value")

    def arguments(self) -> Iterator[Choice]:
        plan = self.plan()
        if plan is not None and self.frame.owner == "exit_code":
            for step in plan.steps:
                if step.kind == "tool" or step.tool is not None:
                    about = _later(describe.step, self.view, plan.name, step.node.name)
                    yield Choice(step.node.name, "step", step.node.kind, about)
        elif self.frame.owner == "metric":
            for name in sorted(self.view.scope.metrics):
                yield Choice(name, "check", "", _later(describe.variable, self.view, f"metric.{name}"))
        elif self.frame.owner.startswith("file_"):
            yield from self.variables(bare=True)

    def types(self) -> Iterator[Choice]:
        for name, about in words.TYPES.items():
            insert = 'enum("${1:a}", "${2:b}")' if name == "enum" else ""
            yield Choice(name, "type", about, _later(str, about), insert)

    def word(self, name: str, entry: words.Word, kind: Kind, insert: str | bool = "") -> Choice:
        written = entry.insert if insert is True else insert or ""
        return Choice(name, kind, entry.about, _later(describe.word, name, entry), written)


def _later(function: Callable[..., str], *given: Any) -> Callable[[], str]:
    return lambda: function(*given)


def _numbered(name: str, texts: Iterable[object]) -> list[str]:
    return [f"{name}.{number}" for number, _ in enumerate(texts, start=1)]


def _measures(plan: TaskPlan) -> bool:
    entry = plan.validator_entry
    return entry is not None and bool(entry.metric)


def _goal(plan: TaskPlan) -> str:
    value = getattr(plan.settings.get("GOAL"), "value", None)
    text = str(getattr(value, "value", ""))
    return " ".join(text.split())[:80]


def _setting_insert(found: settings.Setting) -> str:
    """A key with the brackets or quotes of its value."""
    match found.kind:
        case "map" | "inputs" | "space":
            return f"{found.key} {{ $0 }}"
        case "names":
            return f"{found.key} [$0]"
        case _:
            mark = ": " if found.key.islower() else " "
            quoted = found.schema.get("type") == "string" and '"' in found.example
            return found.key + mark + ('"$0"' if quoted else "")
