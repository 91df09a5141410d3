"""Finding what an operation names, or refusing it with the name that may have been meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from spak.errors import EditRefused
from spak.lang import ast
from spak.lang.edit.surface import Surface
from spak.lang.near import did_you_mean
from spak.lang.parser import parse

T = TypeVar("T")


def only(found: list[T], what: str, names: Iterable[str] = (), name: str = "") -> T:
    """The one that was found. Raises: EditRefused `edit.unknown`, `edit.ambiguous`."""
    if not found:
        raise EditRefused("edit.unknown", f"there is no {what}", did_you_mean(name, names) if name else "")
    if len(found) > 1:
        raise EditRefused("edit.ambiguous", f"there is more than one {what}", "rename or remove one by hand")
    return found[0]


def task(surface: Surface, name: str) -> ast.Task:
    """The task of a name. Raises: EditRefused `edit.unknown`."""
    tasks = list(surface.spec.tasks())
    found = [item for item in tasks if item.name == name]
    return only(found, f"task '{name}'", (item.name for item in tasks), name)


def edges(node: ast.Task) -> list[tuple[ast.Next, int, ast.Edge]]:
    """Every edge with its block and its place there."""
    return [
        (item, index, edge)
        for item in node.items
        if isinstance(item, ast.Next)
        for index, edge in enumerate(item.items)
    ]


def edge(node: ast.Task, trigger: str) -> tuple[ast.Next, int, ast.Edge]:
    """The edge of a trigger, with its block and place in it. Raises: EditRefused `edit.unknown`."""
    known = edges(node)
    found = [item for item in known if item[2].trigger == trigger]
    what = f"edge for '{trigger}' in task '{node.name}'"
    return only(found, what, (item[2].trigger for item in known), trigger)


def steps(node: ast.Task) -> list[ast.Step]:
    """The steps of a task in order."""
    return [item for item in node.items if isinstance(item, ast.Step)]


def checks(node: ast.Task) -> list[tuple[ast.Evaluation, int, ast.Check]]:
    """The checks of a task, each with its block and place in it."""
    return [
        (item, index, check)
        for item in node.items
        if isinstance(item, ast.Evaluation)
        for index, check in enumerate(item.items)
    ]


def step(node: ast.Task, name: str) -> ast.Step | ast.Check:
    """A step, or a check of the evaluation."""
    known: list[ast.Step | ast.Check] = [*steps(node), *(check for *_, check in checks(node))]
    found = [item for item in known if item.name == name]
    return only(found, f"step '{name}' in task '{node.name}'", (item.name for item in known), name)


def start(surface: Surface) -> ast.Start | None:
    """The START of the spec, if it has one."""
    return next((item for item in surface.whole().items if isinstance(item, ast.Start)), None)


def place(names: list[str], after: str | None, what: str) -> int:
    """The index after a name; the end without one, the front for an empty one."""
    if after is None:
        return len(names)
    if after == "":
        return 0
    if after not in names:
        raise EditRefused("edit.unknown", f"there is no {what} '{after}'", did_you_mean(after, names))
    return names.index(after) + 1


def snippet(source: str, wanted: type[T], what: str) -> T:
    """The one item that a source holds. Raises: EditRefused `edit.value`."""
    parsed = parse(source)
    items = parsed.spec.items
    if not parsed.ok or len(items) != 1 or not isinstance(items[0], wanted):
        reason = next((item.message for item in parsed.diagnostics), "")
        raise EditRefused("edit.value", f"the source is not one {what}", reason)
    return items[0]
