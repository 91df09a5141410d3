"""The Pareto front of a campaign for pages: `drawing` as SVG, `rows` as a table that says the same. Pure.

Takes the points of spak.evolve.campaigns.front. Up is more passes than the base, left is less used; the base
is the square where both lines meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from spakweb.ground.text import plural
from spakweb.work.reviews.spending import MINUS, NOT_KNOWN, TITLES

WIDTH, HEIGHT, EDGE = 560.0, 240.0, 24.0
Point = Mapping[str, Any]


def rows(points: Sequence[Point], mine: int = 0) -> list[dict[str, Any]]:
    """A row for each candidate; `mine` is the number of the one that the page is about."""
    return [
        {
            "number": one["number"],
            "mine": one["number"] == mine,
            "verdict": one["verdict"] or "being judged",
            "pairs": one["pairs"],
            "passed": " to ".join(f"{100 * share:.0f} %" for share in one["passed"]),
            "gain": _signed(100 * one["gain"], lambda value: f"{value:.1f}"),
            "more": [_signed(one["more"][name], worded) for name, (_, worded) in TITLES.items()],
            "front": one["front"],
        }
        for one in points
        if one["number"]
    ]


def drawing(points: Sequence[Point], mine: int = 0) -> SafeString:
    """The points whose figure is known, the front as a line; empty where there is no candidate among them."""
    by = points[0]["by"] if points else ""
    known = [one for one in points if one["more"][by] is not None]
    if len(known) < 2:
        return SafeString("")
    across, up = _scale([one["more"][by] for one in known]), _scale([one["gain"] for one in known])

    def place(one: Point) -> tuple[float, float]:
        x = EDGE + (WIDTH - 2 * EDGE) * across(one["more"][by])
        return x, HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * up(one["gain"])

    x0, y0 = place(known[0])
    front = sorted(place(one) for one in known if one["front"])
    parts = [
        f'<path class="zero" d="M0 {y0:.1f}H{WIDTH:.0f}M{x0:.1f} 0V{HEIGHT:.0f}"/>',
        f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in front)}"/>',
        f'<rect class="base" x="{x0 - 5:.1f}" y="{y0 - 5:.1f}" width="10" height="10"/>',
    ]
    for one in known[1:]:
        (x, y), own = place(one), one["number"] == mine
        kind = "best" if one["front"] else "other"
        parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
        parts += [f'<circle class="mine" cx="{x:.1f}" cy="{y:.1f}" r="9"/>'] if own else []
        side, away = ("end", -12) if x > WIDTH - 60 else ("start", 12)
        parts.append(
            f'<text x="{x + away:.1f}" y="{y - 6:.1f}" text-anchor="{side}">{int(one["number"])}</text>'
        )
    best = ", ".join(str(int(one["number"])) for one in known if one["front"] and one["number"])
    words = (
        f"{plural(len(known) - 1, 'candidate')} against the base; on the front: {best or 'the base alone'}"
    )
    return mark_safe(  # numbers alone
        f'<svg class="front" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{words}">'
        f"{''.join(parts)}</svg>"
    )


def _scale(values: Sequence[float]) -> Any:
    """Where a value is between the least and the most, from 0 to 1; the base, which is 0, is among them."""
    low, high = min(values), max(values)
    return lambda value: (value - low) / (high - low) if high > low else 0.5


def _signed(value: float | None, worded: Any) -> str:
    if value is None:
        return NOT_KNOWN
    text = str(worded(abs(value)))
    return text if text == str(worded(0.0)) else f"{'+' if value > 0 else MINUS}{text}"
