"""The selected task as a form: settings, conditions, steps, checks, and the agent's memory and budgets.

Takes a parsed text and a task's name; gives JSON-ready sections of fields, made from the table of settings,
the schemas of the catalog and the words of the language. Each field has what the text says now, what it may
hold, what it means, and the operation that changes it (`spak.lang.edit`); the page adds the value and sends
it as an edit like any other. A field that is not in the text has the place where its line would be, so that
the page can ask for completions there. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spak.lang import ast, settings
from spak.lang.catalog import Catalog, NamedEntry, ToolEntry, ValidatorEntry
from spak.lang.features import words
from spak.lang.outline import META, ON_FAIL
from spak.lang.settings import Setting
from spakweb.face.editor.services import Seen, see
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.team_files import TeamFiles

Field = dict[str, Any]
MAX_FIELDS = 400
"""Fields of one step or block; more are edited as text."""
CONDITIONS = {"success": ast.Success, "invariant": ast.Invariant}
OWN = ("TOOLS", "VALIDATOR", "PROPOSER", "RETRIES", "OUTPUT")
"""Settings of a task with a field of their own, in this order; GOAL and edges are the page's."""
BLOCKS = ("SPACE", "RULE", "BUDGET")
AGENT = ("MEMORY", "RETRIES")


def panel(text: object, task: object, team_files: TeamFiles | None = None) -> dict[str, Any]:
    """The form of a task; `task` is None in it where the text does not parse or has no such task itself."""
    seen = see(text, team_files)
    tasks = [node for node in seen.view.spec.tasks() if node.name == task]
    if not seen.view.parsed.ok or len(tasks) != 1:
        return {"task": None, "kinds": [], "sections": [], "steps": [], "checks": [], "agent": []}
    return _Panel(seen, tasks[0]).made()


def answer(request: Mapping[str, Any], team_files: TeamFiles | None = None) -> dict[str, Any]:
    """The form of `{"text", "task"}`."""
    return panel(request.get("text"), request.get("task"), team_files)


def analysed(request: Mapping[str, Any], team_files: TeamFiles | None = None) -> dict[str, Any]:
    """What `analyse` answers, and with it the form of `task`, or of the first one where that is empty."""
    text, task = request.get("text"), request.get("task")
    seen = see(text, team_files)
    if not isinstance(task, str):
        return seen.analysis
    return {**seen.analysis, "panel": panel(text, task or first(seen), team_files)}


def first(seen: Seen) -> str:
    """The task that the page selects by itself: the one that the run starts at."""
    names = [node.name for node in seen.view.spec.tasks()]
    start = seen.view.outline.start
    return start.target if start is not None and start.target in names else next(iter(names), "")


def kinds(known: Catalog) -> list[dict[str, str]]:
    """What a step may be, with what each does."""
    tools = [{"value": f"tool.{entry.name}", "about": entry.summary} for entry in known.tools.values()]
    return [*tools, *({"value": name, "about": word.about} for name, word in words.STEPS.items())]


class _Panel:
    def __init__(self, seen: Seen, node: ast.Task) -> None:
        self.seen = seen
        self.node = node
        self.catalog = catalog()
        self.source = seen.view.source
        self.entries = _by_key(node.items)

    def made(self) -> dict[str, Any]:
        return {
            "task": self.node.name,
            "kinds": kinds(self.catalog),
            "sections": [
                {"title": "Tools and validation", "fields": list(self.settings())},
                {"title": "Conditions", "fields": [self.condition(kind) for kind in CONDITIONS]},
                *self.blocks(),
            ],
            "steps": [self.step(item) for item in self.node.items if isinstance(item, ast.Step)],
            "checks": [
                self.step(check)
                for item in self.node.items
                if isinstance(item, ast.Evaluation)
                for check in item.items
            ],
            "agent": list(self.agent()),
        }

    # ---- settings

    def settings(self) -> Iterator[Field]:
        for key in OWN:
            row = settings.PLACES["task"][key]
            entry = self.entries.get(key.lower())
            yield self.setting(row, entry, key)
            if row.kind == "tagged":
                yield from self.options(row, entry)

    def setting(self, row: Setting, entry: ast.Entry | None, key: str, task: bool = True) -> Field:
        op = {"key": key, **({"task": self.node.name} if task else {})}
        found = {
            "name": f"{'task' if task else 'agent'}.{key}",
            "label": row.key,
            "about": row.about,
            "example": row.example,
            "set": {"op": "set", **op},
            "clear": {"op": "clear", **op},
            "default": "" if row.default in (None, "", ()) else str(row.default),
        }
        table: Mapping[str, Any] = (
            getattr(self.catalog, row.table) if row.kind in ("name", "names", "tagged") else {}
        )
        if row.kind in ("names", "tagged", "name"):
            choices = [{"value": name, "about": item.summary} for name, item in table.items()]
            value = _names(entry.value) if entry is not None else []
            return found | {
                "widget": "names" if row.kind == "names" else "choice",
                "value": value if row.kind == "names" else next(iter(value), ""),
                "choices": choices,
                "present": entry is not None,
            }
        return found | self.value(entry, row.schema)

    def options(self, row: Setting, entry: ast.Entry | None) -> Iterator[Field]:
        """The options of the validator or proposer that the task has."""
        value = entry.value if entry is not None else None
        name = next(iter(_names(value)), "") if value is not None else ""
        table: Mapping[str, ValidatorEntry | NamedEntry] = getattr(self.catalog, row.table)
        chosen = table.get(name)
        if chosen is None:
            return
        body = value.body if isinstance(value, ast.Tagged) else None
        given = _by_key(body.entries if body is not None else ())
        for key, schema, required in _members(chosen.schema, given):
            path = f"{row.key}.{key}"
            yield {
                "name": f"task.{path}",
                "label": key,
                "of": name,
                "about": str(schema.get("description", "")),
                "required": required,
                "default": _shown(schema.get("default")),
                "set": {"op": "set", "task": self.node.name, "key": path},
                "clear": {"op": "clear", "task": self.node.name, "key": path},
                **self.value(given.get(key.lower()), schema),
            }

    def blocks(self) -> Iterator[dict[str, Any]]:
        """RULE, BUDGET and SPACE of the task: blocks of settings, and of parameters."""
        for key in BLOCKS:
            row = settings.PLACES["task"][key]
            entry = self.entries.get(key.lower())
            given = _by_key(_inside(entry))
            if row.kind == "map":
                fields = [
                    self.setting(inner, given.get(inner.key.lower()), f"{key}.{inner.key}")
                    for inner in settings.PLACES[row.table].values()
                ]
            else:
                fields = [self.parameter(key, item) for item in list(given.values())[:MAX_FIELDS]]
            yield {
                "title": {"RULE": "Rule", "BUDGET": "Budget of the task", "SPACE": "Search space"}[key],
                "about": row.about,
                "fields": fields,
                "adds": {"op": "set", "task": self.node.name, "key": key} if row.kind == "space" else None,
            }

    def parameter(self, key: str, entry: ast.Entry) -> Field:
        path = f"{key}.{entry.key}"
        known = words.PARAMETERS.get(entry.key)
        return {
            "name": f"task.{path}",
            "label": entry.key,
            "about": known.about if known is not None else "A list, range(first, last) or log(a, b).",
            "set": {"op": "set", "task": self.node.name, "key": path},
            "clear": {"op": "clear", "task": self.node.name, "key": path},
            **self.value(entry, {}),
        }

    def agent(self) -> Iterator[Field]:
        """What the whole agent has, so that it need not be looked for in the text."""
        owner = self.seen.view.spec.agent
        items: Iterable[Any] = owner.items if owner is not None else self.seen.view.spec.items
        config = _by_key(_inside(_by_key(items).get("config")))
        for key in AGENT:
            row = settings.PLACES["config"][key]
            yield self.setting(row, config.get(key.lower()), key, task=False)
        budget = _by_key(_inside(config.get("budget")))
        for row in settings.PLACES["budget"].values():
            yield self.setting(row, budget.get(row.key.lower()), f"BUDGET.{row.key}", task=False)

    # ---- conditions

    def condition(self, kind: str) -> Field:
        word = words.KEYWORDS[kind.upper()]
        op = {"op": "set_condition", "task": self.node.name, "kind": kind}
        found = {
            "name": f"condition.{kind}",
            "label": kind,
            "about": word.about,
            "example": word.example,
            "widget": "condition",
            "set": op,
            "clear": {**op, "condition": ""},
            "choices": [],
            "default": "",
        }
        items = self.node.items
        places = [index for index, item in enumerate(items) if isinstance(item, CONDITIONS[kind])]
        if not places:
            end = self.source.offsets(self.node.start, self.node.end)[1] - 1
            place = {**self.seen.range(end, end), "before": f"\n{kind}: ", "after": "\n"}
            return found | {"value": "", "present": False, "place": place}
        if len(places) > 1:
            note = f"This task has {kind} more than once: edit it in the text."
            return found | {"widget": "note", "value": note, "present": True}
        last = places[0]
        while last + 1 < len(items) and isinstance(items[last + 1], ast.BareCondition):
            last += 1
        start, end = self.source.offsets(items[places[0]].start + 2, items[last].end)
        place = {**self.seen.range(start, end), "before": "", "after": ""}
        return found | {"value": self.seen.text[start:end], "present": True, "place": place}

    # ---- steps

    def step(self, node: ast.Step | ast.Check) -> dict[str, Any]:
        given = {} if node.body is None else {entry.key: entry for entry in node.body.entries}
        family, _, rest = node.kind.partition(".")
        tool = self.catalog.tool(rest) if family == "tool" else None
        word = words.STEPS.get(node.kind)
        members = list(_members(tool.schema, given, tool) if tool is not None else ())
        known = {key for key, *_ in members}
        fields = [
            self.field(node, key, schema, required, given.get(key)) for key, schema, required in members
        ]
        own = tuple(words.FIELDS) if tool is None else META[:3]
        for key in dict.fromkeys((*own, *given)):
            if key in known or len(fields) > MAX_FIELDS:
                continue
            about = words.FIELDS.get(key)
            schema: dict[str, Any] = {"description": about.about} if about is not None else {}
            if key == "on_fail":
                schema["enum"] = list(ON_FAIL)
            elif key != "poll" and about is not None:
                schema["type"] = "string"
            fields.append(self.field(node, key, schema, False, given.get(key)))
        return {
            "name": node.name,
            "kind": node.kind,
            "about": tool.summary if tool is not None else word.about if word is not None else "",
            "fields": fields,
        }

    def field(
        self,
        node: ast.Step | ast.Check,
        key: str,
        schema: Mapping[str, Any],
        required: bool,
        entry: ast.Entry | None,
    ) -> Field:
        op = {"task": self.node.name, "step": node.name, "key": key}
        found = {
            "name": f"step.{node.name}.{key}",
            "label": key,
            "about": str(schema.get("description", "")),
            "required": required,
            "default": _shown(schema.get("default")),
            "set": {"op": "set_field", **op},
            "clear": {"op": "clear_field", **op},
            **self.value(entry, schema, line=key == "cmd", bare=key == "output_var"),
        }
        if entry is None and node.body is not None:
            end = self.source.offsets(node.body.start, node.body.end)[1] - 1
            found["place"] = {**self.seen.range(end, end), "before": f" {key}: ", "after": " "}
        return found

    # ---- values

    def value(
        self, entry: ast.Entry | None, schema: Mapping[str, Any], line: bool = False, bare: bool = False
    ) -> Field:
        """The widget of a value, and what it holds; what no widget can show is in the spec's own writing.
        A `line` may be one text where the schema has a list; a `bare` value is a word without quotes."""
        widget = "text" if line else _widget(schema)
        found: Field = {"widget": widget, "value": "", "choices": [], "present": entry is not None}
        if widget == "choice":
            options = ["true", "false"] if schema.get("type") == "boolean" else schema["enum"]
            found["choices"] = [{"value": str(item), "about": _meaning(str(item))} for item in options]
            found["bool"] = schema.get("type") == "boolean"
        if entry is None:
            return found
        start, end = self.source.offsets(entry.value.start, (entry.default or entry.value).end)
        source = self.seen.text[start:end]
        place = {**self.seen.range(start, end), "before": "", "after": ""}
        plain = _plain(entry.value, found, bare)
        if plain is None or entry.default is not None:
            return found | {"widget": "source", "instead": widget, "value": source, "place": place}
        return found | {"value": plain, "place": place}


def _widget(schema: Mapping[str, Any]) -> str:
    if "enum" in schema or schema.get("type") == "boolean":
        return "choice"
    match schema.get("type"):
        case "string":
            return "text"
        case "integer" | "number":
            return "number"
        case "array" if isinstance(schema.get("items"), Mapping) and schema["items"].get("type") == "string":
            return "lines"
        case _:
            return "source"


def _plain(value: ast.Value, field: Field, bare: bool) -> str | None:
    """What a widget shows of a value; None where it cannot hold it."""
    choices = {item["value"].lower(): item["value"] for item in field["choices"]}
    match field["widget"], value:
        case "text", ast.Text():
            return value.value
        case "text", ast.Name() if bare:
            return value.value
        case "number", ast.Number():
            return str(value.value)
        case "choice", ast.Name() | ast.Text():
            return choices.get(value.value.lower())
        case "lines", ast.ListValue():
            texts = [item.value for item in value.items if isinstance(item, ast.Text)]
            whole = len(texts) == len(value.items) and not any("\n" in item or not item for item in texts)
            return "\n".join(texts) if whole else None
        case _:
            return None


def _members(
    schema: Mapping[str, Any], given: Mapping[str, ast.Entry], tool: ToolEntry | None = None
) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """The members of an object's schema: required ones first, then those that are given, then the rest.
    A member that is given by another of its names keeps that name."""
    required = set(schema.get("required", ()))
    properties = schema.get("properties", {})
    other = {} if tool is None else {own: name for name, own in tool.also.items() if name in given}
    rows = [(other.get(key, key), inner, key in required) for key, inner in properties.items()]
    present = {key.lower() for key in given}
    yield from sorted(rows, key=lambda row: (not row[2], row[0].lower() not in present))[:MAX_FIELDS]


def _by_key(items: Iterable[Any]) -> dict[str, ast.Entry]:
    """The first entry of each key, whose case does not matter."""
    found: dict[str, ast.Entry] = {}
    for item in items:
        if isinstance(item, ast.Entry):
            found.setdefault(item.key.lower(), item)
    return found


def _inside(entry: ast.Entry | None) -> tuple[ast.Entry, ...]:
    return entry.value.entries if entry is not None and isinstance(entry.value, ast.MapValue) else ()


def _names(value: ast.Value) -> list[str]:
    items = value.items if isinstance(value, ast.ListValue) else (value,)
    found = [
        item.name if isinstance(item, ast.Tagged) else item.value
        for item in items
        if isinstance(item, (ast.Tagged, ast.Name, ast.Text))
    ]
    return [name for name in found if name.lower() not in ("none", "null")]


def _meaning(word: str) -> str:
    return words.CHOICES.get(word, "") or words.ON_FAIL.get(word, "")


def _shown(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case _:
            return str(value)
