"""How each task of a run came out, and in how many recorded runs a patch lets it come out otherwise.

`Outcomes` takes the commits of a run in order; it holds by task how it was left for the last time. `flips`
takes runs as they were and as the replay found them under the patch, and counts by task of the spec:

    same, flips   where the replay decided how the task comes out; never entered is an outcome too
    unknown       where the replay stopped at a place that still leads to the task

Tasks that were renamed are one. Whether an outcome is better is not judged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from spak.lang import parse
from spak.lang.diff import compare
from spak.program import Program
from spak.records import Kind, Record

RUNS = 10
"""Runs that a way names; its count is whole."""
WAYS = 5
"""Ways of one task that are kept, the most frequent first."""


class Outcome(NamedTuple):
    """How a task was left for the last time; all empty where it was never entered."""

    signal: str = ""
    to: str = ""
    """The task that its edge led to; empty where the run ended in it."""
    code: str = ""
    """Why the run ended in it, where it did not succeed."""


NEVER = Outcome()


@dataclass(slots=True)
class Outcomes:
    """Feed it every commit of a run."""

    found: dict[str, Outcome] = field(default_factory=dict)
    _inside: str = ""

    def take(self, commits: Iterable[Record]) -> None:
        """Read further commits, in their order."""
        for record in commits:
            if record.kind == Kind.ROUTE:
                self._route(record)
            elif record.kind == Kind.END:
                codes = record.body.get("codes") or ("",)
                left = self.found.get(record.task, NEVER) if record.task == self._inside else NEVER
                self.found[record.task] = left._replace(code=str(codes[0]))

    def _route(self, record: Record) -> None:
        to = record.body.get("to", "")
        if not to or to.endswith("/"):
            self.found[record.task] = Outcome(str(record.body.get("signal", "")), to[:-1])
        else:  # to a step of the same task, which is not left yet
            self.found.pop(record.task, None)
        self._inside = record.task


def settled(program: Program, found: Mapping[str, Outcome], stopped: str = "") -> dict[str, Outcome | None]:
    """The outcome of each task of a program; None where a run that is not known beyond the task `stopped`
    can come to it again along the edges."""
    waiting, reached = [stopped] if stopped else [], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += program.tasks[name].edges.values()
    return {name: None if name in reached else found.get(name, NEVER) for name in program.tasks}


class Was(Protocol):
    """A recorded run, as `rehearse` gives it."""

    @property
    def run(self) -> str:
        """The id of the run."""

    @property
    def genesis(self) -> Mapping[str, Any]:
        """The body of its first record."""

    @property
    def tasks(self) -> Mapping[str, Outcome]:
        """How each task ended, by its name."""


class Now(Protocol):
    """The same run under the patch."""

    @property
    def problem(self) -> str:
        """Why the run could not be rehearsed; empty where it was."""

    @property
    def tasks(self) -> Mapping[str, Outcome | None]:
        """How each task ended, by its name; None where that is not known."""


def flips(found: Sequence[tuple[Was, Now]], base: str, patch: str) -> list[dict[str, Any]]:
    """By task of both texts, those with most flips first, else in the order of the patch, removed ones last:
    `task`, `was` (its name in the base where that is another), `change` (`added`, `removed` or empty),
    `same`, `flips`, `unknown` in runs, and `ways`: `before` and `after` (Outcomes), `count`, `runs`.

    Runs with a problem count for nothing.
    """
    old, new = _tasks(base), _tasks(patch)
    renamed = _renames(base, patch)
    names = dict.fromkeys((*new, *(name for name in old if renamed.get(name, name) not in new)))
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    ways: dict[str, dict[tuple[Outcome, Outcome], list[str]]] = {name: defaultdict(list) for name in names}
    known: dict[str, Mapping[str, str]] = {}
    for was, now in found:
        if now.problem:
            continue
        text = str(was.genesis["rules"]["spec"])
        if text not in known:
            known[text] = {**_renames(text, base), **_renames(text, patch)}
        before = _named(was.tasks, known[text])
        for name in names:
            then, after = before.get(name, NEVER), now.tasks.get(name, NEVER)
            if after is None:
                counts[name]["unknown"] += 1
            elif then == after:
                counts[name]["same"] += 1
            else:
                counts[name]["flips"] += 1
                ways[name][then, after].append(was.run)
    earlier = {after: before for before, after in renamed.items()}
    rows = []
    for name in names:
        change = "removed" if name not in new else "" if earlier.get(name, name) in old else "added"
        most = sorted(ways[name].items(), key=lambda item: -len(item[1]))[:WAYS]
        rows.append(
            {
                "task": name,
                "was": earlier.get(name, ""),
                "change": change,
                **{word: counts[name][word] for word in ("same", "flips", "unknown")},
                "ways": [
                    {"before": list(then), "after": list(after), "count": len(runs), "runs": runs[:RUNS]}
                    for (then, after), runs in most
                ],
            }
        )
    return sorted(rows, key=lambda row: -row["flips"])


def _tasks(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(task.name for task in parse(text).spec.tasks()))


def _renames(old: str, new: str) -> Mapping[str, str]:
    return {} if old == new else compare(parse(old), parse(new)).renames


def _named(tasks: Mapping[str, Outcome], names: Mapping[str, str]) -> dict[str, Outcome]:
    """The outcomes with tasks as the patch names them."""
    return {
        names.get(name, name): found._replace(to=names.get(found.to, found.to))
        for name, found in tasks.items()
    }
