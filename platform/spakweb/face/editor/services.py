"""What the editor asks of a text: findings with their fixes, outline, folds and graph in one answer; edits,
completion, hover, definition, references, rename and format.

Takes texts and plain data of a request; gives JSON-ready dicts whose offsets are UTF-16 units of the text
that was sent. Nothing is stored or run; files that a text names come from TeamFiles, if one is given. A text
is held to MAX_BYTES, its graph to MAX_TASKS; the last few stay parsed, as a person asks about one often.

Raises: EditRefused and SpecError of `spak.lang.edit`, Refused for what is too large or no request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any

from spak.errors import EditRefused, SpecError
from spak.kernel.foresee import foresee
from spak.lang import Diagnostic, Severity, parse
from spak.lang.ast import Text
from spak.lang.checks.policy import check_law
from spak.lang.diagnostics import in_order
from spak.lang.edit import Op, apply_all, operation, ops, ops_from_json
from spak.lang.features import (
    Symbol,
    View,
    complete,
    definition,
    folds,
    hover,
    prepare_rename,
    references,
    rename,
    symbols,
)
from spak.lang.format import format_text
from spak.lang.graph import Graph, graph_of, lay_out, to_json, to_svg
from spak.lang.imports import resolve, settings_of
from spak.lang.limits import MAX_BYTES
from spak.policy.law import Law
from spakweb.face.docs.places import section_url
from spakweb.face.editor.units import Units
from spakweb.ground.errors import Refused
from spakweb.ground.teams.law import law_of
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.team_files import TeamFiles

MAX_TASKS = 2_000
MAX_OUTLINE = 10_000
"""Symbols in one answer."""
MAX_COMPLETIONS = 500
KEPT = 500_000
"""Characters of texts that stay parsed, in all: some 30 MB."""


class Seen:
    """A parsed text, and what was made of it so far."""

    def __init__(self, text: str, team_files: TeamFiles | None = None, law: Law | None = None) -> None:
        self.team_files = team_files
        self.law = law_of() if law is None else law
        self.text = text
        self.units = Units(text)
        parsed = parse(text) if team_files is None else team_files.parse(text)
        self.whole = resolve(parsed, _nothing) if team_files is None else team_files.resolve(parsed)
        self.view = View(parsed, catalog(), None if team_files is None else lambda _: self.whole.parsed)
        found = check_law(self.whole, self.law)
        denied = foresee(self.view.outline, self.whole, self.law)
        self.diagnostics = in_order([*self.view.diagnostics, *found, *denied])
        self._analysis: dict[str, Any] | None = None

    def range(self, start: int, end: int) -> dict[str, int]:
        """A range in the browser's units."""
        return {"from": self.units.to_browser(start), "to": self.units.to_browser(end)}

    def changes(self, found: Iterable[tuple[int, int, str]]) -> list[dict[str, Any]]:
        """Replacements as a CodeMirror transaction takes them."""
        return [{**self.range(start, end), "insert": new} for start, end, new in sorted(found)]

    @property
    def analysis(self) -> dict[str, Any]:
        """Diagnostics, outline and graph of the text, made once."""
        if self._analysis is None:
            self._analysis = _analysis(self)
        return self._analysis


def _nothing(path: str) -> bytes | None:
    """The files beside a text that stands alone."""
    return None


def see(text: object, team_files: TeamFiles | None = None) -> Seen:
    """The text, parsed. Raises: Refused when it is none, or too large."""
    if not isinstance(text, str):
        raise Refused("web.request", "The request has no text.")
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        size = len(text.encode("utf-8", "replace"))
        raise Refused(
            "web.text_size",
            f"The spec is {size / 1024 / 1024:.1f} MB; a spec has at most {MAX_BYTES // 1024} KB.",
            "Move tasks into files of their own and IMPORT them.",
            413,
        )
    stamp = team_files.stamp(text) if team_files is not None else None
    law = law_of(team_files.team if team_files is not None else None)
    key = (text, (stamp, *law.team.values()))
    with _lock:
        found = _kept.pop(key, None) or Seen(text, team_files if stamp is not None else None, law)
        _kept[key] = found
        while len(_kept) > 1 and sum(len(kept) for kept, _ in _kept) > KEPT:
            _kept.popitem(last=False)
    return found


_kept: OrderedDict[tuple[str, Hashable], Seen] = OrderedDict()
_lock = Lock()


# ---- analyse -------------------------------------------------------------------------------------------


def analyse(text: object, team_files: TeamFiles | None = None) -> dict[str, Any]:
    """All that the page shows of a text."""
    return see(text, team_files).analysis


def _analysis(seen: Seen) -> dict[str, Any]:
    view = seen.view
    tasks = sum(1 for _ in view.spec.tasks())
    found = seen.diagnostics
    answer: dict[str, Any] = {
        "parsed": view.parsed.ok,
        "ok": not any(item.severity == Severity.ERROR for item in found),
        "bytes": len(seen.text.encode("utf-8", "replace")),
        "diagnostics": [_diagnostic(seen, item) for item in found],
        "outline": _outline(seen),
        "folds": [seen.range(fold.start, fold.end) for fold in folds(view)],
        "triggers": triggers(),
        "graph": None,
        "svg": "",
        "note": "",
    }
    if tasks > MAX_TASKS:
        answer["note"] = f"{tasks:,} tasks; the graph is drawn up to {MAX_TASKS:,}"
        return answer
    answer["graph"], answer["svg"] = _drawing(graph_of(view.whole.spec))
    return answer


@lru_cache(maxsize=8)
def _drawing(graph: Graph) -> tuple[dict[str, Any], str]:
    """A graph laid out: most of what is typed leaves it as it is."""
    layout = lay_out(graph)
    return to_json(layout), to_svg(layout, style=False, interactive=True)


def _diagnostic(seen: Seen, found: Diagnostic) -> dict[str, Any]:
    fixes: list[dict[str, Any]] = []
    if found.fix and not found.file:
        fixes.append({"title": _title(seen, found), "changes": seen.changes(found.fix)})
    elif not found.file and seen.view.parsed.ok and (op := operation(found, seen.view.parsed)):
        try:
            patches = apply_all(seen.view.parsed, [op]).patches
        except (EditRefused, SpecError):
            patches = ()
        if patches:
            fixes.append({"title": words(op), "changes": seen.changes(patches)})
    start, end, line, message = found.start, found.end, found.line, found.message
    if found.file:
        start, end = _import_of(seen, found.file)
        line, message = seen.text.count("\n", 0, start) + 1, f"{found.file}:{found.line}: {message}"
    return {
        **seen.range(start, end),
        "line": line,
        "column": found.column,
        "severity": str(found.severity),
        "code": found.code,
        "message": message,
        "hint": found.hint,
        "fixes": fixes,
    }


def _import_of(seen: Seen, file: str) -> tuple[int, int]:
    """The IMPORT that brought a file, or the first one, which brought what imports it."""
    entries = list(settings_of(seen.view.spec, "IMPORT"))
    named = [item for item in entries if isinstance(item.value, Text) and item.value.value == file]
    for item in (*named, *entries):
        return seen.view.source.offsets(item.start, item.end)
    return 0, 0


def _title(seen: Seen, found: Diagnostic) -> str:
    """What a fix does: the operation that does the same in words, or the change of the text itself."""
    if seen.view.parsed.ok and (op := operation(found, seen.view.parsed)):
        return words(op)
    fix = found.fix or ()
    if len(fix) != 1:
        return f"Make {len(fix)} changes"
    start, end, new = fix[0]
    if not new:
        return f"Remove {_brief(seen.text[start:end])}"
    old = f" {_brief(seen.text[start:end])} by" if end > start else ""
    return f"{'Replace' if old else 'Insert'}{old} {_brief(new)}"


def _brief(text: str) -> str:
    text = " ".join(text.split())
    return f"'{text}'" if len(text) <= 40 else f"'{text[:37]}...'"


def words(op: Op) -> str:
    """What an operation does, as the label of a button."""
    match op:
        case ops.CreateMissingTask():
            return f"Create task {op.name}"
        case ops.RetargetEdge():
            return f"Lead {op.trigger} to {op.target}"
        case ops.SetStart():
            return f"Start at {op.task}"
        case ops.SetLevel():
            return f"Set LEVEL {op.level}"
        case ops.RenameTrigger():
            return f"Change {op.trigger} to {op.new}"
        case ops.RemoveEdge():
            return f"Remove the edge {op.trigger}"
        case ops.Set():
            return (
                f"Set {op.key} to {_brief(str(op.value))}"
                if isinstance(op.value, (str, int))
                else f"Set {op.key}"
            )
        case _:
            return "Fix"


def _outline(seen: Seen) -> list[dict[str, Any]]:
    left = MAX_OUTLINE

    def of(items: Iterable[Symbol]) -> list[dict[str, Any]]:
        nonlocal left
        found = []
        for item in items:
            if left <= 0:
                break
            left -= 1
            found.append(
                {
                    "name": item.name,
                    "kind": item.kind,
                    "detail": item.detail,
                    **seen.range(item.start, item.end),
                    "at": seen.units.to_browser(item.name_start),
                    "children": of(item.children),
                }
            )
        return found

    return of(symbols(seen.view))


@lru_cache(maxsize=1)
def triggers() -> list[str]:
    """The words that an edge may begin with, of all tools, validators and the kernel."""
    from spak.lang.settings import TRIGGERS

    found = dict.fromkeys(TRIGGERS)
    for entry in catalog().validators.values():
        found |= dict.fromkeys(entry.triggers)
    return list(found)


# ---- edit ----------------------------------------------------------------------------------------------


def edit(text: object, operations: object, team_files: TeamFiles | None = None) -> dict[str, Any]:
    """The changes that operations make, and the analysis of the text after them."""
    seen = see(text, team_files)
    many = ops_from_json(operations)
    done = apply_all(seen.view.parsed, many)
    after = see(done.text, team_files)
    return {
        "changes": seen.changes(done.patches),
        "said": ", ".join(describe(op) for op in many),
        "analysis": after.analysis,
    }


def describe(op: Op) -> str:
    """What an operation did, for the message that tells of it."""
    match op:
        case ops.AddTask() | ops.CreateMissingTask():
            return f"task {op.name} added"
        case ops.RemoveTask():
            return f"task {op.name} removed"
        case ops.RenameTask():
            return f"task {op.name} is now {op.new}"
        case ops.AddEdge():
            return f"{op.task}: {op.trigger} leads to {op.target}"
        case ops.RemoveEdge():
            return f"{op.task}: edge {op.trigger} removed"
        case ops.RetargetEdge():
            return f"{op.task}: {op.trigger} leads to {op.target}"
        case ops.RenameTrigger():
            return f"{op.task}: {op.trigger} is now {op.new}"
        case ops.SetStart():
            return f"the run starts at {op.task}"
        case ops.Set() | ops.Clear():
            return f"{op.key} {'set' if isinstance(op, ops.Set) else 'cleared'}"
        case ops.SetField() | ops.ClearField():
            return f"{op.step}: {op.key} {'set' if isinstance(op, ops.SetField) else 'cleared'}"
        case ops.SetCondition():
            return f"{op.task}: {op.kind} {'set' if op.condition else 'cleared'}"
        case ops.AddStep():
            return f"{'check' if op.evaluation else 'step'} {op.name} added"
        case ops.RemoveStep():
            return f"step {op.step} removed"
        case ops.MoveStep():
            return f"step {op.step} moved"
        case ops.RenameStep():
            return f"step {op.step} is now {op.new}"
        case ops.SetKind():
            return f"step {op.step} is now {op.kind}"
        case ops.Rewrite():
            return f"{f'task {op.task}' if op.task else 'the spec'} written anew"
        case _:
            return "done"


def format_(text: object, team_files: TeamFiles | None = None) -> dict[str, Any]:
    """The changes that lay a text out. Raises: SpecError when it does not parse."""
    seen = see(text, team_files)
    made = format_text(seen.view.parsed)
    if not made.ok:
        first = next(item for item in made.diagnostics if item.severity == Severity.ERROR)
        raise SpecError("lang.invalid", f"line {first.line}: {first.message}", "fix it, then format")
    return {"changes": seen.changes(_lines_changed(seen.text, made.text))}


def _lines_changed(old: str, new: str) -> list[tuple[int, int, str]]:
    """Replacements of lines, without what both texts begin and end with: the cursor stays where it can."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    middle = before[head : len(before) - tail], after[head : len(after) - tail]
    if middle[0] == middle[1]:
        return []
    start = sum(map(len, before[:head]))
    if len(middle[0]) != len(middle[1]):
        return [(start, start + sum(map(len, middle[0])), "".join(middle[1]))]
    found = []
    for left, right in zip(*middle, strict=True):
        if left != right:
            found.append((start, start + len(left), right))
        start += len(left)
    return found


# ---- at a place ----------------------------------------------------------------------------------------


def complete_(text: object, unit: object, team_files: TeamFiles | None = None) -> dict[str, Any]:
    """The choices at a place."""
    seen, offset = _at(text, unit, team_files)
    found = complete(seen.view, offset)[:MAX_COMPLETIONS]
    return {
        "items": [
            {
                "label": item.label,
                "kind": item.kind,
                "detail": item.detail,
                "about": item.documentation,
                "insert": item.insert,
                "snippet": item.snippet,
                **seen.range(item.start, item.end),
            }
            for item in found
        ]
    }


def hover_(text: object, unit: object, team_files: TeamFiles | None = None) -> dict[str, Any]:
    """What is known of the word at a place: Markdown, of which the page shows the text, and the address of
    its section of the documentation."""
    seen, offset = _at(text, unit, team_files)
    found = hover(seen.view, offset)
    if found is None:
        return {"text": ""}
    about = section_url(found.section)
    return {"text": found.markdown, "docs": about, **seen.range(found.start, found.end)}


def definition_(text: object, unit: object, team_files: TeamFiles | None = None) -> dict[str, Any]:
    """Where the name at a place is given; what an import gives has a file."""
    seen, offset = _at(text, unit, team_files)
    return {
        "places": [
            {**seen.range(place.start, place.end), "file": place.file}
            for place in definition(seen.view, offset)
        ]
    }


def references_(text: object, unit: object, team_files: TeamFiles | None = None) -> dict[str, Any]:
    """Every place that names what is at an offset."""
    seen, offset = _at(text, unit, team_files)
    return {"places": [seen.range(place.start, place.end) for place in references(seen.view, offset)]}


def rename_(text: object, unit: object, new: object, team_files: TeamFiles | None = None) -> dict[str, Any]:
    """The changes that rename what stands at a place; without a new name, what it is called now."""
    seen, offset = _at(text, unit, team_files)
    place = prepare_rename(seen.view, offset)
    if place is None:
        raise EditRefused("edit.arguments", "there is no name here that this spec gives")
    if new is None:
        return {"name": seen.text[place.start : place.end], **seen.range(place.start, place.end)}
    if not isinstance(new, str):
        raise Refused("web.request", "The new name is not text.")
    found = rename(seen.view, offset, new)
    if found.problem:
        raise EditRefused("edit.arguments", found.problem)
    return {"changes": seen.changes(found.edits)}


def _at(text: object, unit: object, team_files: TeamFiles | None = None) -> tuple[Seen, int]:
    if type(unit) is not int:
        raise Refused("web.request", "The request names no place.")
    seen = see(text, team_files)
    return seen, min(seen.units.from_browser(unit), len(seen.view.text))


def answer(what: str, given: Mapping[str, Any], team_files: TeamFiles | None = None) -> dict[str, Any]:
    """The answer to a request of that name. Raises: Refused when there is none such."""
    text, at = given.get("text"), given.get("at")
    match what:
        case "analyse":
            return analyse(text, team_files)
        case "edit":
            return edit(text, given.get("ops"), team_files)
        case "format":
            return format_(text, team_files)
        case "complete":
            return complete_(text, at, team_files)
        case "hover":
            return hover_(text, at, team_files)
        case "definition":
            return definition_(text, at, team_files)
        case "references":
            return references_(text, at, team_files)
        case "rename":
            return rename_(text, at, given.get("new"), team_files)
        case _:
            raise Refused("web.request", "There is no such question.", "", 404)
