"""The graph of a spec: a node for each task and for each target that is not there, an edge for each trigger.

Takes a Spec, also one that did not parse whole, and needs no catalog: what is drawn is what is written.
Judging it is the business of `check`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from spak.lang.ast import Edge as WrittenEdge
from spak.lang.ast import (
    Entry,
    Evaluation,
    ListValue,
    MapValue,
    Name,
    Next,
    Spec,
    Start,
    Step,
    Tagged,
    Task,
    Text,
)

Kind = Literal["steps", "plan", "missing"]
"""A task with steps written out, one that leaves a choice to a proposer, and a target without a TASK."""
Change = Literal["", "same", "added", "removed", "changed", "moved"]
"""In a difference of two graphs; empty in the graph of one spec."""


class State(StrEnum):
    """What a task of a run is doing."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    DONE = "done"
    ALLOWED = "allowed"
    """Done, though its last attempt failed, which it was allowed to."""
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Node:
    """A task of the graph; `change` says how it differs from an older spec, where there is one."""

    name: str
    kind: Kind = "steps"
    start: bool = False
    terminal: bool = False
    goal: str = ""
    steps: int = 0
    checks: int = 0
    tools: tuple[str, ...] = ()
    validator: str = ""
    proposer: str = ""
    line: int = 0
    """Where its name stands; of a missing task, where it is first named."""
    file: str = ""
    """The imported file that the line is of; empty for the spec itself. Edges are where their source is."""
    change: Change = ""
    was: str = ""
    """Its old name, in a difference where it was renamed."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge of NEXT."""

    source: str
    target: str
    trigger: str
    line: int = 0
    change: Change = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """The tasks and edges of a spec."""

    name: str
    nodes: tuple[Node, ...]
    """In order of declaration, missing ones last; names are unique."""
    edges: tuple[Edge, ...]

    @property
    def start(self) -> Node | None:
        """The task at which a run starts."""
        return next((node for node in self.nodes if node.start), None)


def graph_of(spec: Spec) -> Graph:
    """The graph of a spec. Of two tasks with one name the first counts, as it does for `check`."""
    tasks: dict[str, Task] = {}
    for task in spec.tasks():
        if task.name:
            tasks.setdefault(task.name, task)
    edges: dict[tuple[str, str, str], Edge] = {}
    named: dict[str, int] = {}
    files: dict[str, str] = {}
    start, at = _start(spec, tasks)
    if start:
        named[start] = at
    for task in tasks.values():
        for edge in edges_of(task):
            line, file = _place(spec, edge.start)
            edges.setdefault(
                (task.name, edge.trigger, edge.target), Edge(task.name, edge.target, edge.trigger, line)
            )
            if edge.target not in named:
                named[edge.target], files[edge.target] = line, file
    nodes = [_node(spec, task, task.name == start) for task in tasks.values()]
    nodes += [
        Node(name, "missing", start=name == start, line=line, file=files.get(name, ""))
        for name, line in named.items()
        if name not in tasks
    ]
    name = spec.agent.name if spec.agent is not None else next(iter(tasks), "")
    return Graph(name, tuple(nodes), tuple(edges.values()))


def edges_of(task: Task) -> Iterator[WrittenEdge]:
    """The edges of a task that are whole."""
    for item in task.items:
        if isinstance(item, Next):
            yield from (edge for edge in item.items if edge.trigger and edge.target)


def _place(spec: Spec, token: int) -> tuple[int, str]:
    """The line of a token in the file that it came from, and that file."""
    source = spec.source
    offset = source.tokens.starts[token]
    origin = source.origin(offset)
    if origin is None or not origin.file:
        return source.line(token), ""
    return origin.lines.line(offset - origin.start + origin.at), origin.file


def _start(spec: Spec, tasks: dict[str, Task]) -> tuple[str, int]:
    """Where a run begins, and the line that says so: START, else the first task."""
    for item in (*spec.items, *(spec.agent.items if spec.agent is not None else ())):
        if isinstance(item, Start) and item.target:
            return item.target, _place(spec, item.end - 1)[0]
    first = next(iter(tasks.values()), None)
    if first is None or (spec.agent is not None and not spec.source.problems):
        return "", 0
    return first.name, _place(spec, first.start)[0]


def _node(spec: Spec, task: Task, start: bool) -> Node:
    settings: dict[str, Entry] = {}
    kinds: list[str] = []
    steps = checks = 0
    for item in task.items:
        if isinstance(item, Step):
            steps += 1
            kinds.append(item.kind)
        elif isinstance(item, Evaluation):
            checks += len(item.items)
            kinds += [check.kind for check in item.items]
        elif isinstance(item, Entry):
            settings.setdefault(item.key.upper(), item)
    tools = _tools(settings.get("TOOLS"))
    plans = "llm.plan" in kinds or (not steps and bool(tools))
    tools |= dict.fromkeys(kind.partition(".")[2] for kind in kinds if kind.startswith("tool."))
    line, file = _place(spec, task.start + 1)
    goal = settings["GOAL"].value if "GOAL" in settings else None
    return Node(
        task.name,
        "plan" if plans else "steps",
        start=start,
        terminal=next(edges_of(task), None) is None,
        goal=goal.value if isinstance(goal, Text) else "",
        steps=steps,
        checks=checks,
        tools=tuple(tool for tool in tools if tool),
        validator=_word(settings.get("VALIDATOR")),
        proposer=_word(settings.get("PROPOSER")),
        line=line,
        file=file,
    )


def _tools(entry: Entry | None) -> dict[str, None]:
    if entry is None or isinstance(entry.value, MapValue):
        return {}
    items = entry.value.items if isinstance(entry.value, ListValue) else (entry.value,)
    return {item.value: None for item in items if isinstance(item, (Name, Text))}


def _word(entry: Entry | None) -> str:
    """The name in `VALIDATOR name`, `VALIDATOR name { options }`; empty for none."""
    value = entry.value if entry is not None else None
    word = value.name if isinstance(value, Tagged) else value.value if isinstance(value, (Name, Text)) else ""
    return "" if word.lower() in ("none", "null") else word
