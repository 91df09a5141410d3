"""The task graph: layout alone, and the whole way from a spec's tree to SVG, by size and shape.

Shapes: `work` is a chain of tasks with a loop, a skip or a way back at most of them, as specs have; `random`
has its edges anywhere. CPU time, best of five.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import partial
from typing import Any

from bench.bench_lang import _best
from spak.lang import parse
from spak.lang.graph import Graph, graph_difference, graph_of, lay_out, to_svg

Edges = Iterable[tuple[int, str, int]]


def text(count: int, edges: Edges) -> str:
    """A spec with those edges."""
    routes: dict[int, list[str]] = {}
    for source, trigger, target in edges:
        routes.setdefault(source, []).append(f"{trigger} -> task_{target}")
    tasks = [
        f"  TASK task_{number} {{ TOOLS [run] NEXT {{ {', '.join(routes.get(number, ()))} }} }}\n"
        for number in range(count)
    ]
    return f"AGENT Bench LEVEL 5 {{\n  START -> task_0\n{''.join(tasks)}}}\n"


def work(count: int) -> Edges:
    draw = random.Random(count)
    for number in range(count - 1):
        yield number, "success", number + 1
        if draw.random() < 0.6:
            yield number, "fail", max(0, min(count - 1, number + draw.choice((-5, -2, -1, 0, 2, 3))))


def scattered(count: int) -> Edges:
    draw = random.Random(count)
    for number in range(count * 8 // 5):
        yield draw.randrange(count), f"t{number}", draw.randrange(count)


def graph(count: int, edges: Edges) -> Graph:
    made = graph_of(parse(text(count, edges)).spec)
    if len(made.nodes) != count:
        raise AssertionError(len(made.nodes))
    return made


def rows() -> list[dict[str, Any]]:
    """Milliseconds of CPU."""
    found = []
    for count, aim in ((100, "< 30"), (1000, "< 300"), (2000, "")):
        for name, edges in (("work", work), ("random", scattered)):
            made = graph(count, edges(count))
            spent = _best(partial(lay_out, made)) * 1000
            found.append(_row(f"layout of {count} tasks, {name}", spent, aim))
    spec = parse(text(1000, work(1000))).spec
    found.append(_row("1000 tasks to SVG", _best(lambda: to_svg(lay_out(graph_of(spec)))) * 1000, ""))
    found.append(_row("difference of 1000 tasks", _best(lambda: graph_difference(spec, spec)) * 1000, ""))
    return found


def _row(name: str, spent: float, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": round(spent, 1), "floor": None, "unit": "ms", "aim": aim}


if __name__ == "__main__":
    for row in rows():
        print(row)
