"""Pictures of a run's candidates, as SVG: the metric over the run, and the parameters of each.

Takes the table of candidates (spak.runner.history); gives markup in which every text that is not its own is
escaped. Colours are those of the page around it, by the classes `improved`, `measured`, `static` and `fail`.
What a picture shows stands in the table of candidates too. No script; nothing is measured.
"""

# ruff: noqa: E501  markup reads best as one line

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Any

from spak.runner.history import Attempted

WIDTH, HEIGHT = 880, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 24, 44
MOST_LINES = 400
"""Candidates of the parallel coordinates: the best of those that were measured."""
MOST_AXES = 12
NAMES, APART, SIGN = 176, 44, 7.5
"""Of the parallel coordinates: room for names, between two lines, and of a letter."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where values stand between two ends: on a log scale where all are above 0, else on a plain one."""

    low: float
    high: float
    is_log: bool

    @classmethod
    def of(cls, values: Sequence[float]) -> Scale:
        """The scale on which all of them have room."""
        is_log = min(values) > 0
        low, high = ((log10(end) if is_log else end) for end in (min(values), max(values)))
        room = 0.05 if is_log else (high - low) * 0.05 or 1.0
        return cls(low - room, high + room, is_log)

    def share(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        return ((log10(value) if self.is_log else value) - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values between the ends."""
        if self.is_log:
            powers = range(floor(self.low), ceil(self.high) + 1)
            found = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
            few = found if len(powers) <= 4 else [10.0**power for power in powers]
            return [tick for tick in few if self.low <= log10(tick) <= self.high]
        step = 10.0 ** floor(log10(self.high - self.low))
        step = step if (self.high - self.low) / step >= 4 else step / 5
        return [number * step for number in range(ceil(self.low / step), floor(self.high / step) + 1)]


def plot(rows: Sequence[Attempted], first: float | None) -> str:
    """The metric over candidates: each as a mark, the best so far as a line, the baseline and the roofline
    dashed."""
    measured = [row for row in rows if row.shown is not None]
    if not measured:
        return "<p class=soft>No candidate has a measured metric.</p>"
    unit, bound = measured[-1].unit, measured[-1].bound_shown
    values = [row.shown for row in measured if row.shown is not None]
    scale = Scale.of([*values, *(value for value in (first, bound) if value is not None)])

    def x(number: int) -> float:
        return LEFT + (number - 0.5) / len(rows) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return TOP + (1 - scale.share(value)) * (HEIGHT - TOP - BOTTOM)

    summary = f"{len(rows)} candidates, from {max(values):.3f} to {min(values):.3f} {unit}"
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(summary)}">']
    parts.extend(_axis(scale, y, unit))
    for word, value, offset in (("baseline", first, -5), ("roofline", bound, 14)):
        if value is not None:
            parts.append(
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" '
                'stroke="currentColor" stroke-dasharray="5 4" opacity=".6"/>'
                f'<text x="{LEFT + 6}" y="{y(value) + offset:.1f}">{word} {value:.3f} {escape(unit)}</text>'
            )
    parts.append(_best_line(rows, x, y))
    for index, row in enumerate(rows, start=1):
        parts.append(_point(index, row, x, y))
    step = 5 * max(1, len(rows) // 100)
    for number in range(step, len(rows) + 1, step):
        parts.append(f'<text x="{x(number):.1f}" y="{HEIGHT - 24}" text-anchor="middle">{number}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">candidate</text></svg>')
    parts.append(
        '<p class=soft><span class="improved">● improved</span>, <span class="measured">○ measured</span>, '
        '<span class="fail">× failed</span>; the line is the best so far; '
        f"{'milliseconds' if unit == 'ms' else escape(unit) or 'the metric'}"
        f"{', log scale' if scale.is_log else ''}{_why_uneven(rows)}</p>"
    )
    return "\n".join(parts)


def _why_uneven(rows: Sequence[Attempted]) -> str:
    """Why the line of the best goes up and down, where it does."""
    best = [row.shown for row in rows if row.outcome == "improved" and row.shown is not None]
    if best in (sorted(best), sorted(best, reverse=True)):
        return ""
    return (
        ". The line need not be even: a candidate becomes the best where it wins in pairs, measured in turn with "
        "the best before it; figures of different moments differ with the load of the machine"
    )


def parallel(rows: Sequence[Attempted], best: Attempted | None = None) -> str:
    """Parallel coordinates: a line of values for each parameter that differs and one for the metric, one below
    the other, and a path down through them for each measured candidate; empty where there is nothing to
    compare. The best is drawn above the others."""
    measured = [row for row in rows if row.shown is not None and row.params]
    drawn = sorted(measured, key=lambda row: _distance(row, best))[:MOST_LINES]
    axes = _axes(drawn)
    if len(drawn) < 2 or not axes:
        return ""
    unit = drawn[0].unit or "metric"
    scale = Scale.of([row.shown for row in drawn if row.shown is not None])
    wide, last = WIDTH - NAMES - LEFT, TOP + len(axes) * APART

    def at(values: Sequence[Any], value: Any) -> float:
        return NAMES + values.index(value) / (len(values) - 1) * wide

    def along(value: float) -> float:
        return NAMES + scale.share(value) * wide

    best_words = "" if best is None else "; the best has " + _words(best)
    summary = f"{len(drawn)} candidates by {', '.join(axes)}{best_words}"
    size = f"0 0 {WIDTH} {last + RIGHT}"
    parts = [f'<svg class="parallel" viewBox="{size}" role="img" aria-label="{escape(summary)}">']
    for row in reversed(drawn):
        points = [
            (at(values, _plain(row.params.get(name))), TOP + place * APART)
            for place, (name, values) in enumerate(axes.items())
        ]
        points.append((along(row.shown or 0.0), last))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        is_best = best is not None and row.seq == best.seq
        look = (
            'class="improved" stroke-width="3"'
            if is_best
            else 'class="measured" stroke-width="1.2" opacity=".35"'
        )
        title = f"<title>{row.number}: {_value(row)} {escape(_words(row))}</title>"
        parts.append(f'<g {look}>{title}<polyline points="{path}" fill="none" stroke="currentColor"/></g>')
    for place, (name, values) in enumerate(axes.items()):
        parts.append(
            _values_line(TOP + place * APART, name, [(at(values, value), value) for value in values])
        )
    parts.append(_values_line(last, unit, [(along(tick), tick) for tick in scale.ticks()]))
    parts.append("</svg>")
    legend = [
        f"{len(drawn)} of {len(measured)} candidates, those nearest to the best"
        if len(drawn) < len(measured)
        else ""
    ]
    legend.append("the thick line is the best so far" if best is not None else "")
    parts.append(f"<p class=soft>{'; '.join(filter(None, legend))}</p>")
    return "\n".join(parts)


def _distance(row: Attempted, best: Attempted | None) -> float:
    """How far a value is from that of the best, whether more or less is better."""
    return abs((row.shown or 0.0) - ((best.shown or 0.0) if best is not None else 0.0))


def _axes(rows: Sequence[Attempted]) -> dict[str, list[Any]]:
    """The values of each parameter that differs: numbers by size, others as they are written."""
    found: dict[str, set[Any]] = {}
    for row in rows:
        for name in row.params:
            found.setdefault(name, set())
    for row in rows:
        for name, values in found.items():
            values.add(_plain(row.params.get(name)))
    axes = {name: sorted(values, key=_order) for name, values in found.items() if len(values) > 1}
    return dict(list(axes.items())[:MOST_AXES])


def _plain(value: Any) -> Any:
    """A value as an axis holds it: numbers stay, all else is text."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)


def _text(value: Any) -> str:
    return "none" if value is None else str(value)


def _order(value: Any) -> tuple[bool, float, str]:
    return (False, value, "") if isinstance(value, int | float) else (True, 0.0, value)


def _values_line(y: float, name: str, values: Sequence[tuple[float, Any]]) -> str:
    """A parameter's name, and its values where they are on its line: the first, the last, and those between
    that have room."""
    parts = [
        f'<line x1="{NAMES}" x2="{WIDTH - LEFT}" y1="{y}" y2="{y}" stroke="currentColor" opacity=".4"/>'
        f'<text x="0" y="{y + 4}">{escape(_cut(name, 20))}</text>'
    ]
    free, ends = 0.0, values[-1][0] if values else 0.0
    for x, value in values:
        text = f"{value:g}" if isinstance(value, float) else str(value)
        text = _cut(text)
        half = len(text) * SIGN / 2
        if x == ends or (x - half >= free and (x == values[0][0] or x + half < ends - half - SIGN)):
            free = x + half + SIGN
            parts.append(f'<text x="{x:.1f}" y="{y - 7}" text-anchor="middle">{escape(text)}</text>')
    return "".join(parts)


def _cut(text: str, most: int = 16) -> str:
    """Its first and its last letters, where it is too long."""
    return text if len(text) <= most else f"{text[: most // 3]}…{text[-(most - most // 3 - 1) :]}"


def _words(row: Attempted) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.params.items())


def _value(row: Attempted) -> str:
    return "" if row.shown is None else f"{row.shown:.3f} {escape(row.unit)}".rstrip()


def _axis(scale: Scale, y: Any, unit: str) -> list[str]:
    return [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" '
        'stroke="currentColor" opacity=".15"/>'
        f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g} {escape(unit)}</text>'
        for tick in scale.ticks()
    ]


def _best_line(rows: Sequence[Attempted], x: Any, y: Any) -> str:
    points, best = [], None
    for index, row in enumerate(rows, start=1):
        if row.outcome == "improved" and row.shown is not None:
            if best is not None:
                points.append(f"{x(index):.1f},{y(best):.1f}")
            best = row.shown
        if best is not None:
            points.append(f"{x(index):.1f},{y(best):.1f}")
    return (
        f'<polyline class="improved" points="{" ".join(points)}" fill="none" stroke="currentColor" stroke-width="2"/>'
        if points
        else ""
    )


def _point(index: int, row: Attempted, x: Any, y: Any) -> str:
    title = f"<title>{index}: {escape(row.outcome)} {_value(row)} {escape(_words(row))}</title>"
    across = x(index)
    if row.shown is None or row.outcome == "fail":
        down = HEIGHT - BOTTOM - 6
        return (
            f'<g class="fail" stroke="currentColor" stroke-width="1.5">{title}'
            f'<path d="M{across - 4:.1f} {down - 4}l8 8m0 -8l-8 8"/></g>'
        )
    fill = "currentColor" if row.outcome == "improved" else "var(--paper)"
    return (
        f'<g class="{escape(row.outcome)}">{title}<circle cx="{across:.1f}" cy="{y(row.shown):.1f}" r="4.5" '
        f'fill="{fill}" stroke="currentColor" stroke-width="1.5"/></g>'
    )
