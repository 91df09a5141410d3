"""Two changes of one text, merged by task: `merge(base, mine, theirs)`, pure.

A task that only one side changed is taken from it; one that both changed alike is taken once; one that both
changed differently is merged by its own lines, and where they overlap it is a conflict of that task. What
is between tasks is merged by lines, as one part with the name "". `decided` is the text once each
conflict has a choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spak.lang import parse
from spak.merge import merge as by_lines

MARK = re.compile(r"\x01([^\x01\n]*)\x01\n?")


@dataclass(frozen=True, slots=True)
class Conflict:
    """A part that both changed; a side is empty where it has removed the part."""

    part: str
    base: str
    mine: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge: the tasks that it could merge, and its conflicts."""

    skeleton: str
    """What is between tasks, with a mark for each of them."""
    tasks: Mapping[str, str]
    conflicts: tuple[Conflict, ...]

    @property
    def clean(self) -> bool:
        """Whether there is no conflict."""
        return not self.conflicts

    def decided(self, choices: Mapping[str, str]) -> str:
        """The whole text; `choices` gives the text of each part in conflict. Raises: KeyError."""
        tasks = dict(self.tasks)
        for conflict in self.conflicts:
            tasks[conflict.part] = choices[conflict.part]
        skeleton = tasks.pop("", self.skeleton)
        return MARK.sub(lambda found: _line(tasks.get(found[1], "")), skeleton)


def merge(base: str, mine: str, theirs: str) -> Merged:
    """Merge two changes of `base`, by tasks; by lines where one text cannot be cut into tasks."""
    texts = (base, mine, theirs)
    if any("\x01" in text for text in texts):
        return _whole(*texts)
    cut = [_cut(text) for text in texts]
    if any(found is None for found in cut):
        return _whole(*texts)
    (old, was), (one, left), (two, right) = (found for found in cut if found is not None)
    tasks: dict[str, str] = {}
    conflicts = []
    for name in dict.fromkeys((*was, *left, *right)):
        sides = was.get(name, ""), left.get(name, ""), right.get(name, "")
        joined = _joined(*sides)
        if joined is None:
            conflicts.append(Conflict(name, *sides))
        else:
            tasks[name] = joined
    around = by_lines(old, one, two)
    found = MARK.findall(around.text)
    if not around.clean and (together := _both_added(old, one, two)) is not None:
        skeleton = together
    elif around.clean and len(found) == len(set(found)):
        skeleton = around.text
    else:
        return _whole(*texts)
    left_out = [item for item in conflicts if f"\x01{item.part}\x01" not in skeleton]
    for item in left_out:  # one side removed what the other changed: it comes back if it is chosen
        at = skeleton.rfind("}")
        at = skeleton.rfind("\n", 0, at) + 1 if at >= 0 else len(skeleton)
        skeleton = f"{skeleton[:at]}\x01{item.part}\x01\n{skeleton[at:]}"
    return Merged(skeleton, tasks, tuple(conflicts))


def _whole(base: str, mine: str, theirs: str) -> Merged:
    """Merge by lines alone, where tasks cannot be distinguished."""
    joined = by_lines(base, mine, theirs)
    if joined.clean:
        return Merged(joined.text, {}, ())
    return Merged("", {}, (Conflict("", base, mine, theirs),))


def _joined(base: str, mine: str, theirs: str) -> str | None:
    if mine == theirs or theirs == base:
        return mine
    if mine == base:
        return theirs
    if not base or not mine or not theirs:
        return None
    found = by_lines(base, mine, theirs)
    return found.text if found.clean else None


def _both_added(old: str, one: str, two: str) -> str | None:
    """The skeleton where the overlapping changes are tasks that each side added: theirs, then mine."""
    parts = by_lines(old, one, two).parts
    lines: list[str] = []
    for part in parts:
        if not part.conflict:
            lines += part.lines
            continue
        added = [line for line in (*part.base, *part.mine, *part.theirs) if line.strip()]
        if not all(MARK.fullmatch(line) for line in added):
            return None
        kept = [line for line in part.theirs if line in part.mine or line not in part.base]
        kept += [line for line in part.mine if line not in part.base and line not in part.theirs]
        lines += kept
    return "".join(lines)


def _cut(text: str) -> tuple[str, dict[str, str]] | None:
    """The text with a mark in the place of each task, and the tasks by name; None where two have one name
    or it does not parse."""
    parsed = parse(text)
    if not parsed.ok:
        return None
    spans = {}
    for task in parsed.spec.tasks():
        start, end = parsed.spec.source.offsets(task.start, task.end)
        if task.name in spans or not task.name:
            return None
        spans[task.name] = (start, end)
    skeleton, tasks, at = [], {}, 0
    for name, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        if start < at:
            return None
        first = text.rfind("\n", 0, start) + 1
        if text[first:start].strip():
            return None  # something precedes it on its line
        last = text.find("\n", end)
        last = len(text) if last < 0 else last + 1
        if text[end:last].strip():
            return None
        skeleton += [text[at:first], f"\x01{name}\x01\n"]
        tasks[name] = text[first:last]
        at = last
    return "".join([*skeleton, text[at:]]), tasks


def _line(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
