"""A patch by parts of the spec: each task that it touches, and the spec itself, with changes and edits of the
text. Pure.

A part has the digest of all that changes in it, so that "viewed" falls when that part changes and no other.
Parts that widen or make privileged changes come first.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spak import canon
from spak.lang.diff import Capability, Change
from spak.merge import Opcode, opcodes
from spakweb.work.reviews.reading import Reading, TaskLines
from spakweb.work.specs import show

CLIP = 400
SHOWN_LINES = 40
"""Lines of one edit that its part shows; the text below has all."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of lines. `number` counts from 1 over the whole text."""

    number: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    old_line: int
    new_line: int

    @property
    def hidden(self) -> int:
        """How many lines the page leaves out."""
        return max(0, len(self.old) - SHOWN_LINES) + max(0, len(self.new) - SHOWN_LINES)

    @property
    def shown(self) -> list[tuple[str, str, int]]:
        """The lines on the page: `removed` or `added`, the text, and its line number in the new text."""
        old = [("removed", line, 0) for line in self.old[:SHOWN_LINES]]
        return old + [("added", line, self.new_line + n) for n, line in enumerate(self.new[:SHOWN_LINES])]


@dataclass(slots=True)
class Part:
    """What a patch changes in one task, or outside of all tasks."""

    name: str
    """`tasks/NAME`, or `` for what belongs to no task."""
    changes: list[dict[str, Any]] = field(default_factory=list)
    capabilities: list[Capability] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    comments: list[Any] = field(default_factory=list)
    windows: dict[str, Any] = field(default_factory=dict)
    """What a page shows of its lists (folding.py)."""
    viewed: bool = False
    digest: str = ""

    @property
    def title(self) -> str:
        """The heading of the part."""
        return self.name.removeprefix("tasks/") or "The spec itself"

    @property
    def widens(self) -> bool:
        """Whether it permits something that was not permitted."""
        return any(one.widens for one in self.capabilities)

    @property
    def unsure(self) -> bool:
        """Whether it is not known of a capability if it widens."""
        return any(one.widens is None for one in self.capabilities)

    @property
    def privileged(self) -> bool:
        """Whether a change in it is privileged."""
        return any(one["privileged"] for one in self.changes)

    @property
    def formatting(self) -> bool:
        """Whether only the text differs, and nothing that it means."""
        return not self.changes and not self.capabilities

    @property
    def layout(self) -> bool:
        """Whether its lines differ in blanks alone."""
        old = [word for one in self.edits for line in one.old for word in line.split()]
        new = [word for one in self.edits for line in one.new for word in line.split()]
        return self.formatting and old == new

    @property
    def rank(self) -> tuple[bool, ...]:
        """The order on the page: what widens comes first, formatting last."""
        return not self.widens, not self.unsure, not self.privileged, self.formatting


def edits_of(old: str, new: str) -> list[Edit]:
    """The stretches of lines that differ, in order."""
    one, two, found = stretches(old, new)
    return [
        Edit(number, tuple(map(_end, one[a:b])), tuple(map(_end, two[c:d])), a + 1, c + 1)
        for number, (_, a, b, c, d) in enumerate(found, 1)
    ]


def stretches(old: str, new: str) -> tuple[list[str], list[str], list[Opcode]]:
    """The lines of both texts with their ends, and where they differ. Only LF ends a line, as in editors."""
    one, two = (_lines(text) for text in (old, new))
    return one, two, [item for item in opcodes(one, two) if item[0] != "equal"]


def _lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _end(line: str) -> str:
    return line.rstrip("\n")


def parts_of(reading: Reading, edits: list[Edit]) -> list[Part]:
    """The parts of a patch in their order on the page, with the edits of each."""
    found: dict[str, Part] = {}

    def part(name: str) -> Part:
        return found.setdefault(name, Part(name))

    for change in reading.difference.changes:
        part(of_path(change.path)).changes.append(_change(change, reading))
    for capability in reading.difference.capabilities:
        part(of_path(capability.path)).capabilities.append(capability)
    before, after = Tasks(reading.old_tasks, reading.difference.renames), Tasks(reading.new_tasks)
    for edit in edits:
        name = after.at(edit.new_line) if edit.new else ""
        part(name or before.at(edit.old_line)).edits.append(edit)
    for one in found.values():
        one.capabilities.sort(key=lambda item: (item.widens is False, item.widens is None))
        one.changes.sort(key=lambda item: not item["privileged"])
        one.digest = canon.content_hash(
            [
                [[str(item["path"]), item["before"], item["after"]] for item in one.changes],
                [[list(edit.old), list(edit.new)] for edit in one.edits],
            ]
        )
    return sorted(found.values(), key=lambda item: item.rank)


def loosened_by(reading: Reading) -> list[dict[str, Any]]:
    """What a patch loosens, or may loosen, and its other privileged changes: those that a person ticks before
    they approve it. What widens comes first."""
    hidden = {
        "pill": "look",
        "path": "the spec",
        "what": "cannot be read as a whole",
        "before": "",
        "after": "",
    }
    found = [] if reading.readable else [hidden]
    found += [
        {
            "pill": "widens" if one.widens else "look",
            "path": one.path or "the spec",
            "what": one.why,
            "before": "",
            "after": "",
        }
        for one in reading.difference.capabilities
        if one.widens is not False
    ]
    found.sort(key=lambda one: one["pill"] == "look")
    changes = (_change(one, reading) for one in reading.difference.changes)
    return found + [
        {
            "pill": "privileged",
            "what": one["word"],
            **{name: one[name] for name in ("path", "before", "after")},
        }
        for one in changes
        if one["privileged"]
    ]


def digest_of(loosened: list[dict[str, Any]]) -> str:
    """What a tick of these changes says; empty where there are none."""
    return canon.content_hash(loosened) if loosened else ""


def paths_of(parts: Iterable[Part]) -> set[str]:
    """What a comment may be about."""
    found = set()
    for part in parts:
        found |= {part.name, *(item["path"] for item in part.changes)}
    return found - {""}


def of_path(path: str) -> str:
    """The part that a path of the list of changes belongs to."""
    words = path.split("/")
    return "/".join(words[:2]) if words[0] == "tasks" and len(words) > 1 else ""


def _change(item: Change, reading: Reading) -> dict[str, Any]:
    return {
        "op": item.op,
        "word": show.WORDS[item.op],
        "path": item.path or "the spec",
        "before": shown_value(item.before),
        "after": shown_value(item.after),
        "privileged": item.path in reading.marked,
    }


def shown_value(value: Any) -> str:
    """A value of a list of changes as text, clipped."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= CLIP else text[: CLIP - 1] + "…"


class Tasks:
    """Which part a line belongs to; `renames` gives new names of tasks by old ones."""

    def __init__(self, lines: TaskLines, renames: Mapping[str, str] | None = None) -> None:
        self.starts = [first for first, _, _ in lines]
        self.spans = [(last, f"tasks/{(renames or {}).get(name, name)}") for _, last, name in lines]

    def at(self, line: int) -> str:
        """The task of a line, from 1; empty where it is outside of all tasks."""
        place = bisect_right(self.starts, line) - 1
        if place < 0:
            return ""
        last, name = self.spans[place]
        return name if line <= last else ""
