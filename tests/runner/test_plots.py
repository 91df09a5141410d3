"""Pictures of candidates: any numbers, any names, and what nobody could draw."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.records import Record
from spak.runner.history import Attempted, History, best_of
from spak.runner.views.plots import MOST_LINES, Scale, parallel, plot

SVG = "{http://www.w3.org/2000/svg}"


def row(number: int, value: float | None, outcome: str = "measured", **params: Any) -> Attempted:
    return Attempted("tune", number, "write", {}, params, outcome, value=value, per_unit=1, seq=number)


def drawing(markup: str) -> ElementTree.Element:
    """The SVG of a picture; raises where it is not well formed."""
    svg, end = markup.index("<svg"), markup.index("</svg>") + len("</svg>")
    return ElementTree.fromstring(
        markup[svg:end].replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    )


def numbers(markup: str) -> list[float]:
    """Every coordinate of its lines, paths and marks."""
    found: list[float] = []
    for item in drawing(markup).iter():
        for name in ("x1", "x2", "y1", "y2", "cx", "cy", "x", "y"):
            found += [float(item.attrib[name])] if name in item.attrib else []
        for point in item.attrib.get("points", "").split():
            found += map(float, point.split(","))
    return found


VALUES = st.none() | st.floats(-1e12, 1e12) | st.integers(-(10**12), 10**12).map(float) | st.just(0.0)


@given(st.lists(VALUES, min_size=1, max_size=12), VALUES)
def test_any_numbers_are_drawn_within_the_picture(values: list[float | None], first: float | None) -> None:
    rows = [
        row(at, value, "fail" if value is None else "measured", A=at % 3, B=str(value))
        for at, value in enumerate(values, 1)
    ]
    for markup in (plot(rows, first), parallel(rows, best_of(rows))):
        if "<svg" in markup:
            assert all(math.isfinite(number) and -1 <= number <= 900 for number in numbers(markup))


@pytest.mark.parametrize(
    ("values", "uneven"),
    [([3.0, 2.0, 1.0], False), ([1.0, 2.0], False), ([3.0], False), ([28.0, 30.0, 27.0], True)],
    ids=["falls", "rises", "one", "both"],
)
def test_a_line_of_the_best_that_goes_up_and_down_is_explained(values: list[float], uneven: bool) -> None:
    rows = [row(at, value, "improved") for at, value in enumerate(values, 1)]
    assert ("wins in pairs" in plot([*rows, row(9, 99.0)], None)) == uneven


def test_names_and_values_are_text() -> None:
    hostile = '<script>"&'
    rows = [row(1, 2.0, "improved", **{hostile: hostile}), row(2, 1.0, "improved", **{hostile: "b"})]
    for item in rows:
        item.unit = hostile
    for markup in (plot(rows, 3.0), parallel(rows, best_of(rows))):
        assert "<script>" not in markup
        assert any("<script>" in "".join(item.itertext()) for item in drawing(markup).iter())


def test_an_axis_stands_for_each_parameter_that_differs_and_the_best_is_above_all() -> None:
    rows = [
        row(1, 9.0, "improved", TILE=8, FLAGS="-O2", SAME=1),
        row(2, 3.0, "improved", TILE=16, FLAGS="-O3", SAME=1),
        row(3, 5.0, "measured", TILE=4, FLAGS="-O2", SAME=1),
        row(4, None, "fail", TILE=2, FLAGS="-O2", SAME=1),
    ]
    svg = drawing(parallel(rows, best_of(rows)))
    texts = ["".join(item.itertext()) for item in svg.iter(f"{SVG}text")]
    assert "TILE" in texts and "FLAGS" in texts and "SAME" not in texts
    assert [text for text in texts if text in ("4", "8", "16")] == ["4", "8", "16"]
    lines = svg.findall(f"{SVG}g")
    assert [line.attrib["class"] for line in lines] == ["measured", "measured", "improved"]
    assert lines[-1][0].text == "2: 3.000 ms TILE=16, FLAGS=-O3, SAME=1"
    assert "TILE=16" in svg.attrib["aria-label"]


def test_the_values_of_a_line_have_room() -> None:
    rows = [row(at, float(at), FLAGS=f"-O3 -march=part-{at:02}", TILE=at) for at in range(1, 41)]
    lines: dict[str, list[tuple[float, int]]] = {}
    for text in drawing(parallel(rows)).iter(f"{SVG}text"):
        if text.attrib["x"] != "0":
            lines.setdefault(text.attrib["y"], []).append((float(text.attrib["x"]), len(text.text or "")))
    assert len(lines) == 3  # two parameters and the metric
    for found in lines.values():
        assert len(found) > 2
        for (left, first), (right, second) in pairwise(sorted(found)):
            assert right - left > 6 * (first + second) / 2


@pytest.mark.parametrize(
    "rows", [[], [row(1, 2.0, A=1)], [row(1, 2.0), row(2, 3.0)], [row(1, 2.0, A=1), row(2, 3.0, A=1)]]
)
def test_where_nothing_differs_there_is_no_picture(rows: list[Attempted]) -> None:
    assert parallel(rows) == ""


def test_of_very_many_the_nearest_to_the_best_are_drawn() -> None:
    rows = [row(at, float(at), "improved" if at == 900 else "measured", A=at) for at in range(1, 901)]
    markup = parallel(rows, best_of(rows))
    drawn = [int(str(line[0].text).partition(":")[0]) for line in drawing(markup).findall(f"{SVG}g")]
    assert (len(drawn), min(drawn), drawn[-1]) == (MOST_LINES, 900 - MOST_LINES + 1, 900)
    assert f"{MOST_LINES} of 900 candidates" in markup


def test_ticks_are_between_the_ends_and_few() -> None:
    for low, high in ((1e-9, 1e9), (3.0, 3.0), (-5.0, 7.0), (0.0, 0.0), (999.0, 1001.0)):
        scale = Scale.of([low, high])
        assert 0 <= len(scale.ticks()) <= 24
        assert all(0 <= scale.share(tick) <= 1 for tick in scale.ticks())


def test_the_roofline_and_the_source_are_read_off_the_measurement() -> None:
    from spak.program import MetricRule

    history = History(rules={"tune": MetricRule("time_ns", "lower", 95, 100, 1, 1)})
    body = {
        "status": "measured",
        "metrics": {"time_ns": 4_000_000, "bound_ns": 1_000_000},
        "subject": {"source": {"$blob": "ab"}},
    }
    plan = {"candidates": [{"tool": "write", "args": {}, "params": {"A": 1}}]}
    route = {"to": "/", "signal": "metric_improved", "best": 4_000_000}
    for record in (
        Record("plan", "proposal", plan, task="tune", seq=1),
        Record("select", "commit", {"i": 0}, task="tune", seq=2),
        Record("act", "proposal", body, task="tune", seq=3),
        Record("route", "commit", route, task="tune", seq=4),
    ):
        history.feed(record)
    (found,) = history.rows
    assert (found.shown, found.bound_shown, found.source, found.measured) == (4.0, 1.0, "ab", 3)
    assert "roofline 1.000 ms" in plot(history.rows, None)
