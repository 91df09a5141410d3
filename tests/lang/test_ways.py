"""Ways that lose a judge, against an independent answer: all sets of judges that runs can end with."""

from __future__ import annotations

from random import Random

import pytest

from spak.lang import parse
from spak.lang.diff.view import view
from spak.lang.diff.ways import lost

NAMES = "abcd"


def drawn(draw: Random) -> dict[str, dict[str, str]]:
    """Edges of each task; a task with edges has one for success, so that a run can go on."""
    edges: dict[str, dict[str, str]] = {}
    for name in NAMES:
        edges[name] = {}
        if draw.random() < 0.7:
            edges[name]["success"] = draw.choice(NAMES)
            if draw.random() < 0.5:
                edges[name]["fail"] = draw.choice(NAMES)
    return edges


def text_of(edges: dict[str, dict[str, str]], judging: set[str]) -> str:
    tasks = []
    for name, out in edges.items():
        ways = ", ".join(f"{trigger} -> {to}" for trigger, to in out.items())
        judge = "success: ok == 1" if name in judging else ""
        tasks.append(f'TASK {name} {{ GOAL "x" {judge} {f"NEXT {{ {ways} }}" if ways else ""} }}')
    return "AGENT A LEVEL 1 { START -> a " + " ".join(tasks) + " }"


def ends(edges: dict[str, dict[str, str]], judging: set[str]) -> set[frozenset[str]]:
    """The judges that runs from `a` have passed when they end with success."""
    found, seen, rest = set(), set(), [("a", frozenset[str]())]
    while rest:
        name, passed = rest.pop()
        passed = passed | ({name} & judging)
        if (name, passed) in seen:
            continue
        seen.add((name, passed))
        if not edges[name]:
            found.add(passed)
        rest += [(to, passed) for to in edges[name].values()]
    return found


@pytest.mark.findings("A3")
def test_where_nothing_is_reported_no_run_ends_with_fewer_judges() -> None:
    draw, reported, silent = Random(87), 0, 0
    pairs = {name: name for name in NAMES}
    for _ in range(1500):
        old, judging = drawn(draw), {name for name in NAMES if draw.random() < 0.5}
        new = {name: dict(out) for name, out in old.items()}
        for _ in range(draw.randrange(1, 3)):
            changed = draw.choice(NAMES)
            new[changed] = drawn(draw)[changed]
        ways = lost(*(view(parse(text_of(one, judging)).spec) for one in (old, new)), pairs)
        assert ways is not None
        if list(ways):
            reported += 1
            continue
        before = ends(old, judging)
        for one in ends(new, judging):
            if before:
                silent += 1
                assert any(other <= one for other in before), (old, new, judging)
    assert reported > 100 and silent > 100
