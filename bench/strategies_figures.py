"""The table and the picture of strategies in docs/tuner.md, from what `make bench ARGS=strategies` found.

python -m bench.strategies_figures      writes docs/img/strategies.svg and the table between its marks
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.bench_strategies import BUDGET, HELD_OUT, RESULTS, ROOT, interval
from spak.proposers.tuner import DEFAULTS

PAGE, PICTURE = ROOT / "docs/tuner.md", ROOT / "docs/img/strategies.svg"
BEGIN, END = "<!-- strategies: begin -->", "<!-- strategies: end -->"
LEFT, WIDE, ROW, HEAD = 190, 170, 18, 46
"""Pixels: the names, a panel, a row, the head."""
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333; }
.head { font-weight: 600; } .small { font-size: 10px; fill: #777; } .ours { font-weight: 600; }
.grid { stroke: #ddd; } .wide { stroke: #9ab; stroke-width: 2; } .dot { fill: #357; } .best { fill: #c40; }
.bar { stroke: #357; stroke-width: 5; stroke-opacity: .45; }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd; } .small { fill: #999; } .grid { stroke: #444; } .wide { stroke: #567; }
  .dot { fill: #9cf; } .bar { stroke: #9cf; } .best { fill: #f96; }
}
"""

Found = Mapping[str, Mapping[str, Sequence[int | None]]]


def numbers(found: Sequence[int | None]) -> list[int]:
    """Evaluations in order, a search that found nothing as one more than the budget."""
    return sorted(BUDGET + 1 if item is None else item for item in found)


def order(spaces: Found) -> list[str]:
    """Labels, the quickest over all spaces first: by the mean of their ranks."""
    labels = list(next(iter(spaces.values())))
    ranks = dict.fromkeys(labels, 0)
    for found in spaces.values():
        by = sorted(labels, key=lambda label: (median(numbers(found[label])), sum(numbers(found[label]))))
        for place, label in enumerate(by):
            ranks[label] += place
    return sorted(labels, key=lambda label: ranks[label])


def table(spaces: Found) -> str:
    """Median and its interval for each strategy and space, and the searches that found nothing."""
    names = sorted(spaces, key=lambda name: (name in HELD_OUT, name))
    head = [f"{name}{' (held out)' if name in HELD_OUT else ''}" for name in names]
    lines = ["| strategy | " + " | ".join(head) + " |", "|---|" + "---|" * len(names)]
    for label in order(spaces):
        cells = []
        for name in names:
            found = spaces[name][label]
            low, high = interval(found)
            missed = sum(item is None for item in found)
            cells.append(
                f"{_shown(median(numbers(found)))} ({_shown(low)} to {_shown(high)})"
                + (f", {missed} not" if missed else "")
            )
        lines.append(f"| {_label(label)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(spaces: Found) -> str:
    """One panel for each space, a row for each strategy: quartiles, interval of the median, median."""
    names = sorted(spaces, key=lambda name: (name in HELD_OUT, name))
    labels = order(spaces)
    width, height = LEFT + len(names) * WIDE + 20, HEAD + len(labels) * ROW + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>Evaluations until within 5 % of the best, by strategy and space</title>",
        f"<style>{STYLE}</style>",
    ]
    for row, label in enumerate(labels):
        y = HEAD + row * ROW + 4
        kind = "" if label.startswith("kt: ") else ' class="ours"'
        parts.append(f'<text x="{LEFT - 12}" y="{y}" text-anchor="end"{kind}>{_plain(label)}</text>')
    for panel, name in enumerate(names):
        left = LEFT + panel * WIDE
        parts.append(f'<text class="head" x="{left}" y="16">{name}</text>')
        if name in HELD_OUT:
            parts.append(f'<text class="small" x="{left}" y="29">held out</text>')
        for tick in (0, 25, 50, 75, 100):
            x = _x(left, tick)
            bottom = HEAD + len(labels) * ROW - 6
            parts.append(f'<line class="grid" x1="{x}" y1="{HEAD - 10}" x2="{x}" y2="{bottom}"/>')
            parts.append(f'<text class="small" x="{x}" y="{bottom + 14}" text-anchor="middle">{tick}</text>')
        for row, label in enumerate(labels):
            parts += _marks(left, HEAD + row * ROW, spaces[name][label], label == DEFAULTS["strategy"])
    return "\n".join([*parts, "</svg>", ""])


def _marks(left: int, y: int, found: Sequence[int | None], best: bool) -> list[str]:
    ordered = numbers(found)
    quarter, rest = ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]
    low, high = interval(found)
    line = '<line class="{}" x1="{}" y1="{y}" x2="{}" y2="{y}"/>'
    return [
        line.format("wide", _x(left, quarter), _x(left, rest), y=y),
        line.format("bar", _x(left, low), _x(left, high), y=y),
        f'<circle class="{"best" if best else "dot"}" cx="{_x(left, median(ordered))}" cy="{y}" r="4"/>',
    ]


def _x(left: int, evaluations: float) -> float:
    return round(left + (WIDE - 30) * evaluations / (BUDGET + 1), 1)


def _shown(evaluations: float) -> str:
    return f"> {BUDGET}" if evaluations > BUDGET else f"{evaluations:g}"


def _plain(label: str) -> str:
    return label.removeprefix("kt: ") + (" (KT)" if label.startswith("kt: ") else "")


def _label(label: str) -> str:
    return f"`{label.removeprefix('kt: ')}`" + (" of Kernel Tuner" if label.startswith("kt: ") else "")


def page(text: str, spaces: Found) -> str:
    """The page with the table between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(spaces)}\n\n{END}{after}"


def results() -> dict[str, dict[str, Any]]:
    """What was found, by space and strategy."""
    return {name: found["strategies"] for name, found in json.loads(RESULTS.read_text())["spaces"].items()}


def main() -> None:
    """Write both."""
    found = results()
    PICTURE.write_text(picture(found), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
