"""What is drawn of specs: the graph as safe SVG, two texts side by side, differences in words. Pure.

The SVG of `spak.lang.graph` escapes every text itself; here is the only place that trusts it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from spak.lang import Diagnostic, Parsed, parse
from spak.lang.ast import Spec
from spak.lang.diff import Change, Difference, compare
from spak.lang.graph import graph_difference, graph_of, lay_out, to_svg
from spak.merge import opcodes
from spakweb.store.specs.facts import catalog

AROUND = 3
"""Unchanged lines that are shown around a change."""
MOST_ROWS = 5_000
"""Lines side by side, lines of a text and changes in words that a page shows."""
MOST_LINES = 20_000
MOST_CHANGES = 1_000
WORDS = {
    "add": "Added",
    "remove": "Removed",
    "change": "Changed",
    "rename": "Renamed",
    "move": "Moved",
    "reorder": "Reordered",
}


def graph(spec: Spec, prefix: str = "g") -> SafeString | None:
    """The drawing; None of a text without a task."""
    found = graph_of(spec)
    return mark_safe(to_svg(lay_out(found), prefix=prefix, style=False)) if found.nodes else None


_LEAD_IN = re.compile(r"[^.]*: *$")
"""What leads from a sentence to a command: `Run it:`."""


def intro(text: str) -> str:
    """What a spec does: the first paragraph of the comment that it begins with, without command lines."""
    lines: list[str] = []
    for line in text.splitlines():
        said = line.lstrip("/# ").strip()
        if not line.startswith(("//", "#")) or (lines and not said):
            break
        before, command, _ = said.partition("spak run ")
        lines.append(_LEAD_IN.sub("", before) if command else said)
        if command:
            break
    return " ".join(line for line in lines if line)


def problems(found: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Findings as lists show them."""
    return [
        {
            "severity": str(item.severity),
            "line": item.line,
            "file": item.file,
            "message": item.message,
            "hint": item.hint,
            "code": item.code,
        }
        for item in found
    ]


def lines_of(text: str) -> list[str]:
    """Lines as editors number them: only LF ends one."""
    return text.removesuffix("\n").split("\n") if text else []


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a side-by-side table; numbers are 0 where a side has no line."""

    kind: str
    left_number: int = 0
    left: str = ""
    right_number: int = 0
    right: str = ""
    count: int = 0
    """Of kind `gap`: how many equal lines are not shown; of kind `cut`: how many rows."""


def side_by_side(old: str, new: str, around: int = AROUND) -> list[Row]:
    """Rows of kinds same, added, removed, changed and gap."""
    one, two = lines_of(old), lines_of(new)
    rows: list[Row] = []
    found = opcodes(one, two)
    for place, (kind, a, b, c, d) in enumerate(found):
        if kind == "equal":
            before = around if place else 0
            after = around if place + 1 < len(found) else 0
            rows += _equal(one, a, b, c, before, after)
            continue
        for step in range(max(b - a, d - c)):
            left, right = a + step < b, c + step < d
            rows.append(
                Row(
                    "changed" if left and right else "removed" if left else "added",
                    a + step + 1 if left else 0,
                    one[a + step] if left else "",
                    c + step + 1 if right else 0,
                    two[c + step] if right else "",
                )
            )
    return rows


def table(old: str, new: str) -> list[Row]:
    """The same, of bounded length: texts of a hundred thousand lines would be a page of 60 MB."""
    rows = side_by_side(old, new)
    left = len(rows) - MOST_ROWS
    return rows if left <= 0 else [*rows[:MOST_ROWS], Row("cut", count=left)]


def _equal(lines: list[str], a: int, b: int, c: int, before: int, after: int) -> Iterator[Row]:
    hidden = b - a - before - after
    for place in range(a, b):
        if hidden > 1 and a + before <= place < b - after:
            if place == a + before:
                yield Row("gap", count=hidden)
            continue
        yield Row("same", place + 1, lines[place], c + place - a + 1, lines[place])


def difference(old: str, new: str, whole: Callable[[str], Parsed] = parse) -> dict[str, Any]:
    """All that the page of a comparison shows; `whole` puts the imports into a text, so that what it says
    and draws has them. The lines are those of the texts themselves."""
    before, after = whole(old), whole(new)
    found: Difference = compare(before, after, catalog())
    joined = graph_difference(before.spec, after.spec, found.renames)
    return {
        "difference": found,
        "changes": [_change(item) for item in found.changes[:MOST_CHANGES]],
        "more_changes": max(0, len(found.changes) - MOST_CHANGES),
        "capabilities": found.capabilities,
        "breaking": [item for item in found.flags if item.flag == "breaking"],
        "rows": table(old, new),
        "svg": mark_safe(to_svg(lay_out(joined), prefix="d", style=False)) if joined.nodes else None,
    }


def _change(item: Change) -> dict[str, Any]:
    return {
        "op": item.op,
        "word": WORDS[item.op],
        "path": item.path or "the spec",
        "before": _value(item.before),
        "after": _value(item.after),
    }


def _value(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else text[:399] + "…"
