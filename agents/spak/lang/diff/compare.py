"""`compare(old, new)`: what differs in meaning between two specs.

Layout, comments and the case of keywords are no difference. Tasks and steps are followed through renames and
moves, and what only follows from a rename (an edge's target, the reader of an exit code) is not told again.
`equal` holds exactly when the two have the same hash: where that differs and no thing does, the same things
stand in another order, and that is told as `reorder`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from spak.lang import ast
from spak.lang.catalog import Catalog
from spak.lang.diff import match
from spak.lang.diff.capability import capabilities, flags
from spak.lang.diff.model import Change, Difference
from spak.lang.diff.view import Part, StepView, TaskView, View, order, view
from spak.lang.parser import Parsed

ALIKE = 0.5
"""Texts of axioms that share so many words are one text that was edited."""

MAX_PAIRS = 10_000
"""Where there are more pairs of texts that could be one, none is looked for."""


def compare(old: ast.Spec | Parsed, new: ast.Spec | Parsed, catalog: Catalog | None = None) -> Difference:
    """The difference of two specs, as far as they parsed; a catalog lets aliases of tools count as one."""
    before, after = _spec(old), _spec(new)
    if before.hash == after.hash:
        return Difference(True, before.source.text != after.source.text)
    left, right = view(before), view(after)
    found = _Comparison(left, right)
    changes = found.run()
    delta = capabilities(left, right, found.pairs, catalog)
    flagged = flags(left, right, delta)
    return Difference(False, False, tuple(changes), delta, flagged, _changed(found.pairs))


def _spec(given: ast.Spec | Parsed) -> ast.Spec:
    return given.spec if isinstance(given, Parsed) else given


class _Comparison:
    def __init__(self, old: View, new: View) -> None:
        self.old = old
        self.new = new
        self.pairs = match.tasks(old, new)
        self.found: list[Change] = []

    def run(self) -> list[Change]:
        old, new = self.old, self.new
        self.head()
        self.parts(old.settings, new.settings, "")
        for kind in new.items:
            self.model(kind, old.items[kind], new.items[kind])
        self.tasks()
        if not self.found:
            self.add("reorder", "")
        return self.found

    def add(self, op: Any, path: str, before: Any = None, after: Any = None) -> None:
        self.found.append(Change(op, path, before, after))

    # ---- the agent

    def head(self) -> None:
        old, new = self.old, self.new
        if old.agent != new.agent:
            op = "add" if old.agent is None else "remove" if new.agent is None else "rename"
            self.add(op, "AGENT", old.agent, new.agent)
        if old.level != new.level:
            self.add(_op(old.level, new.level), "LEVEL", old.level, new.level)
        if self.pairs.get(old.start, old.start) != new.start:
            self.add(_op(old.start or None, new.start or None), "START", old.start or None, new.start or None)
        if old.models != new.models:
            self.add("change", "SYSTEM_MODEL", old.models, new.models)

    def parts(self, old: Mapping[str, Part], new: Mapping[str, Part], above: str) -> None:
        """Values by their paths."""
        for path in [*old, *(path for path in new if path not in old)]:
            before, after = old.get(path), new.get(path)
            if before is None or after is None or before.mark != after.mark:
                shown = before.show() if before else None
                self.add(_op(before, after), above + path, shown, after.show() if after else None)

    def model(self, kind: str, old: Sequence[Part], new: Sequence[Part]) -> None:
        """Axioms and the like: the same by their text, else the most alike in the same order."""
        path = f"SYSTEM_MODEL/{kind}"
        places: dict[str, list[int]] = {}
        for left in range(len(old) - 1, -1, -1):
            places.setdefault(repr(old[left].mark), []).append(left)
        same = {
            right: places[mark].pop() for right, part in enumerate(new) if places.get(mark := repr(part.mark))
        }
        kept = set(same.values())
        gone = [left for left in range(len(old)) if left not in kept]
        come = [right for right in range(len(new)) if right not in same]
        if len(gone) * len(come) <= MAX_PAIRS:
            for right in list(come):
                left = next((index for index in gone if _alike(old[index], new[right])), -1)
                if left >= 0:
                    self.add("change", f"{path}/{right + 1}", old[left].show(), new[right].show())
                    gone.remove(left)
                    come.remove(right)
        for left in gone:
            self.add("remove", f"{path}/{left + 1}", old[left].show())
        for right in come:
            self.add("add", f"{path}/{right + 1}", None, new[right].show())
        if list(same.values()) != sorted(kept):
            self.add("reorder", path, [part.show() for part in old], [part.show() for part in new])

    # ---- tasks

    def tasks(self) -> None:
        old, new, pairs = self.old, self.new, self.pairs
        for name, task in old.tasks.items():
            if name not in pairs:
                self.add("remove", f"tasks/{name}", _cut(old, task.node))
        known = set(pairs.values())
        for name, task in new.tasks.items():
            if name not in known:
                self.add("add", f"tasks/{name}", None, _cut(new, task.node))
        before = list(pairs.values())
        after = [name for name in new.tasks if name in known]
        moves = match.moved(before, after) if before != after else set()
        places, now = _places(before), _places(after)
        for name, other in pairs.items():
            if name != other:
                self.add("rename", f"tasks/{other}", name, other)
            if other in moves:
                self.add("move", f"tasks/{other}", places[other], now[other])
            self.task(old.tasks[name], new.tasks[other])

    def task(self, old: TaskView, new: TaskView) -> None:
        above, count = f"tasks/{new.name}/", len(self.found)
        steps = match.steps(old.steps, new.steps)
        checks = match.steps(old.checks, new.checks)
        renamed = _Renamed(_changed({**steps, **checks}), _changed(checks))
        self.parts(old.settings, new.settings, above)
        self.steps(old.steps, new.steps, steps, f"{above}steps/", renamed, in_order=True)
        self.steps(old.checks, new.checks, checks, f"{above}checks/", renamed, in_order=False)
        for trigger in [*old.edges, *(trigger for trigger in new.edges if trigger not in old.edges)]:
            was, now = old.edges.get(trigger), new.edges.get(trigger)
            if was is None or self.pairs.get(was, was) != now:
                self.add(_op(was, now), f"{above}NEXT/{trigger}", was, now)
        for kind in dict.fromkeys((*old.conditions, *new.conditions)):
            before, after = old.conditions.get(kind), new.conditions.get(kind)
            if before is None or after is None or renamed.mark(before.mark, True) != after.mark:
                shown = before.show() if before else None
                self.add(_op(before, after), above + kind, shown, after.show() if after else None)
        if len(self.found) == count and list(order(old)) != list(order(new)) and not renamed:
            self.add("reorder", above.rstrip("/"))

    def steps(
        self,
        old: Mapping[str, StepView],
        new: Mapping[str, StepView],
        pairs: Mapping[str, str],
        above: str,
        renamed: _Renamed,
        in_order: bool,
    ) -> None:
        for name, step in old.items():
            if name not in pairs:
                self.add("remove", above + name, _cut(self.old, step.node))
        known = set(pairs.values())
        for name, step in new.items():
            if name not in known:
                self.add("add", above + name, None, _cut(self.new, step.node))
        before, after = list(pairs.values()), [name for name in new if name in known]
        moves = match.moved(before, after) if in_order and before != after else set()
        places, now = _places(before), _places(after)
        for name, other in pairs.items():
            if name != other:
                self.add("rename", above + other, name, other)
            if other in moves:
                self.add("move", above + other, places[other], now[other])
            self.step(old[name], new[other], above + other, renamed)

    def step(self, old: StepView, new: StepView, path: str, renamed: _Renamed) -> None:
        if old.kind != new.kind:
            self.add("change", f"{path}/kind", old.kind, new.kind)
        for key in [*old.parts, *(key for key in new.parts if key not in old.parts)]:
            before, after = old.parts.get(key), new.parts.get(key)
            if before is None or after is None or renamed.mark(before.mark) != after.mark:
                shown = before.show() if before else None
                self.add(_op(before, after), f"{path}/{key}", shown, after.show() if after else None)


def _changed(pairs: Mapping[str, str]) -> dict[str, str]:
    return {name: other for name, other in pairs.items() if name != other}


def _op(before: Any, after: Any) -> Any:
    return "add" if before is None else "remove" if after is None else "change"


def _places(names: Sequence[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}


def _cut(made: View, node: ast.Task | ast.Step | ast.Check) -> str:
    """The thing as it is written."""
    source = made.spec.source
    start, end = source.offsets(node.start, node.end)
    return source.text[start:end]


def _alike(old: Part, new: Part) -> bool:
    left, right = ({*part.node.text.value.lower().split()} for part in (old, new))
    return bool(left and right) and 2 * len(left & right) >= ALIKE * (len(left) + len(right))


class _Renamed:
    """Marks as they are after steps were renamed: what reads them has the new names."""

    def __init__(self, names: Mapping[str, str], checks: Mapping[str, str]) -> None:
        self.names = names
        self.checks = checks
        known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        self.path = re.compile(rf"\b(exit_code|metric)\.({known})(?![\w-])") if names else None

    def __bool__(self) -> bool:
        return bool(self.names)

    def mark(self, mark: Any, condition: bool = False) -> Any:
        """`condition` says that a bare word may be the metric of a check."""
        if self.path is None:
            return mark
        if isinstance(mark, list):
            if mark[:1] == ["Call"] and mark[1] in ("exit_code", "metric"):
                return [*mark[:2], [self.argument(item) for item in mark[2]]]
            if condition and mark[:1] == ["Name"]:
                return ["Name", self.checks.get(mark[1], mark[1])]
            return [self.mark(item, condition) for item in mark]
        if not isinstance(mark, str) or "." not in mark:
            return mark
        return self.path.sub(lambda hit: f"{hit[1]}.{self.names[hit[2]]}", mark)

    def argument(self, mark: Any) -> Any:
        if isinstance(mark, list) and len(mark) == 2 and isinstance(mark[1], str):
            return [mark[0], self.names.get(mark[1], mark[1])]
        return mark
