"""The timeline of a run as SVG: a row for each step, a bar for each attempt, idle time folded.

Takes the run's permits and what answered them, newest `MOST`; gives safe SVG without style or script, whose
bars link to records, and a table that says the same. Waiting for a person counts as idle, so that an hour of
it leaves room for seconds of work; what a backend took for its answer is work.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from spak.costs import cost_of
from spak.records import Authority, Kind, decode
from spakweb.store.ledger.projection import count
from spakweb.store.runs import words
from spakweb.store.runs.models import Run, RunRecord

MOST = 1_000
"""Attempts that are drawn; the table of steps counts the same ones."""
WIDTH, LEFT, ROW, TOP = 700, 180, 26, 26
FOLD_MS = 1_500
FOLDED = 22
"""Idle time longer than this is drawn this wide."""
APART = 64
"""Pixels between two idle times that are written out; of those between, hovering tells."""
SCALE, TICK, LETTER = 24, 64, 7
"""Height of the scale below the rows, the least pixels between two of its places, and those of a letter."""
ALLOWED = "allowed"
STEPS = tuple(
    [digit * 10**power for power in range(4) for digit in (1, 2, 5)]
    + [1000 * seconds for seconds in (10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 86400)]
)
"""Milliseconds between two places of the scale."""


@dataclass(slots=True)
class Bar:
    """One attempt of a step."""

    seq: int
    task: str
    step: str
    start: int
    end: int
    state: str = "running"
    ask: bool = False
    worked: int = 0
    """Of a question: the milliseconds that a backend took for its answer."""
    tokens: int = 0
    cost: int = 0
    """Billionths of a dollar."""
    text: str = ""
    exit: int = 0
    """Of a command that did not end with 0."""


@dataclass(slots=True)
class Line:
    """All attempts of one step."""

    task: str
    step: str
    bars: list[Bar] = field(default_factory=list)
    heat: int = 0
    """0 to 4: its share of what the step took that took most."""

    @property
    def tokens(self) -> int:
        """Tokens of all bars, prompts and answers."""
        return sum(bar.tokens for bar in self.bars)

    @property
    def cost(self) -> int:
        """Billionths of a dollar of all bars."""
        return sum(bar.cost for bar in self.bars)

    @property
    def total(self) -> int:
        """Milliseconds of all bars."""
        return sum(bar.end - bar.start for bar in self.bars)

    @property
    def longest(self) -> int:
        """Milliseconds of the longest bar."""
        return max(bar.end - bar.start for bar in self.bars)

    @property
    def allowed(self) -> int:
        """Bars that failed and were allowed to."""
        return sum(bar.state == ALLOWED for bar in self.bars)

    @property
    def failed(self) -> int:
        """Bars that failed or were refused."""
        return sum(bar.state in ("failed", "refused") for bar in self.bars)


def bars_of(run: Run) -> list[Bar]:
    """The newest attempts in order of time."""
    kinds = (Kind.PERMIT, Kind.ACT, Kind.PLAN, Kind.ROUTE, Kind.END)
    rows = RunRecord.objects.filter(run=run, kind__in=kinds).order_by("-seq").values_list("line", flat=True)
    found: list[Bar] = []
    steps: dict[str, list[str]] = {}
    for line in reversed(list(rows[: MOST * 3])):
        record = decode(bytes(line))
        if record.kind == Kind.PERMIT:
            body = record.body
            bar = Bar(record.seq, record.task, record.step, record.at, record.at)
            bar.ask = body.get("act") == "ask" or body.get("allow") == "ask"
            bar.text = words.one_line(words.action(body), 80)
            if body.get("allow") is False:
                bar.state = "refused"
            found.append(bar)
            known = steps.setdefault(record.task, [])
            known += [record.step] if record.step not in known else []
        elif found:
            last = found[-1]
            last.end = max(last.end, record.at)
            if record.authority == Authority.PROPOSAL:
                cost = cost_of(record.side)
                last.tokens, last.cost = last.tokens + cost.tokens, last.cost + cost.nanousd
            if record.authority == Authority.PROPOSAL and last.ask:
                last.worked = max(0, min(count(record.side.get("ms")), last.end - last.start))
            if record.kind == Kind.END:
                last.state = str(record.body.get("state")) if last.state == "running" else last.state
            elif record.authority == Authority.COMMIT and last.state != "refused":
                last.state = _ended(last, record.body, steps[last.task])
            elif record.kind == Kind.ACT:
                last.exit = count(record.body.get("exit"))
    found = found[-MOST:]
    for bar in found:  # a step that a fork took over begun, and did
        if bar.start < run.forked_at <= bar.end:
            bar.start = run.forked_at
    for bar in found:  # what no route answered led on to the next
        if bar.state == "running":
            bar.state = str(run.state) if bar is found[-1] else "succeeded"
            if bar.state in ("running", "waiting"):
                bar.end = max(bar.end, time.time_ns() // 1_000_000)
            if bar.state == "running":  # while a worker is at it a question is the backend's
                bar.worked = bar.end - bar.start
    return found


def _ended(bar: Bar, route: Mapping[str, Any], steps: list[str]) -> str:
    """What became of an attempt. One that failed, after which the next step was done all the same, was
    allowed to: that is neither success nor failure."""
    target = str(route.get("to", ""))
    failed = route.get("signal") in ("fail", "timeout")
    onward = bool(target) and not target.endswith("/") and target not in steps[: steps.index(bar.step) + 1]
    if failed and not onward:
        return "failed"
    return ALLOWED if failed or bar.exit else "succeeded"


def _word(bar: Bar) -> str:
    if bar.state != ALLOWED:
        return words.state(bar.state)
    return f"Exit {bar.exit}, and went on" if bar.exit else "Failed, and went on"


def lines_of(bars: Iterable[Bar]) -> list[Line]:
    """Rows in the order in which steps first came."""
    found: dict[tuple[str, str], Line] = {}
    for bar in bars:
        found.setdefault((bar.task, bar.step), Line(bar.task, bar.step)).bars.append(bar)
    lines = list(found.values())
    weights = [line.cost for line in lines]
    weights = weights if any(weights) else [line.tokens for line in lines]
    most = max(weights, default=0)
    for line, weight in zip(lines, weights, strict=True):
        line.heat = -(-4 * weight // most) if most else 0
    return lines


class Axis:
    """From milliseconds to pixels; idle spans are folded and remembered in `folds`."""

    def __init__(self, bars: list[Bar]) -> None:
        busy = sorted((bar.start, bar.start if bar.ask else bar.end) for bar in bars)
        busy += [(bar.end - bar.worked, bar.end) for bar in bars if bar.ask]
        spans: list[list[int]] = []
        for start, end in sorted(busy):
            if spans and start - spans[-1][1] <= FOLD_MS:
                spans[-1][1] = max(spans[-1][1], end)
            else:
                spans.append([start, end])
        total = sum(end - start for start, end in spans) or 1
        room = max(100.0, WIDTH - LEFT - 24 - FOLDED * (len(spans) - 1))
        fold = min(FOLDED, (WIDTH - LEFT - 124) / max(1, len(spans) - 1))
        self.spans: list[tuple[int, int, float, float]] = []
        self.folds: list[tuple[float, int]] = []
        x = float(LEFT)
        for place, (start, end) in enumerate(spans):
            wide = room * (end - start) / total
            self.spans.append((start, end, x, wide))
            x += wide
            if place + 1 < len(spans):
                self.folds.append((x + fold / 2, spans[place + 1][0] - end))
                x += fold
        self.scale = room / total

    def x(self, at: int) -> float:
        """The pixel of a moment; waiting is drawn shorter than it was."""
        for start, end, x, wide in self.spans:
            if at <= end:
                return x + max(0, at - start) * (wide / (end - start) if end > start else 0)
        return self.spans[-1][2] + self.spans[-1][3] if self.spans else LEFT

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Places of the scale with the time since the first attempt; none where time is folded."""
        begun = self.spans[0][0]
        step = next((step for step in STEPS if step * self.scale >= TICK), 0)
        free = 0.0
        for start, end, x, wide in self.spans:
            first = begun + -(-(start - begun) // step) * step if step else start
            for at in range(first, end + 1, step) if step else (start,):
                place = x + (at - start) * (wide / (end - start) if end > start else 0)
                label = _after(at - begun, step)
                if min(place, _middle(label)) - LETTER * len(label) / 2 >= free:
                    free = min(place, _middle(label)) + LETTER * len(label) / 2 + LETTER
                    yield place, label


def _middle(label: str) -> float:
    """Where a text ends at the right edge."""
    return WIDTH - LETTER * len(label) / 2


def _after(ms: int, step: int) -> str:
    """As exact as the scale: places a fifth of a second apart differ after minutes too."""
    if not ms:
        return "0"
    if ms < 1000:
        return f"{ms} ms"
    minutes, rest = divmod(ms, 60_000)
    seconds = f"{rest / 1000:g} s" if step < 1000 else f"{round(rest / 1000)} s"
    shown = [f"{minutes // 60} h" * (minutes >= 60), f"{minutes % 60} min" * (minutes % 60 > 0)]
    shown.append(seconds * (rest > 0 and (ms < 3_600_000 or step < 60_000)))
    return " ".join(filter(None, shown))


def svg(run: Run, address: str, bars: list[Bar]) -> SafeString | None:
    """The drawing; None when nothing was attempted yet."""
    if not bars:
        return None
    lines, axis = lines_of(bars), Axis(bars)
    top = TOP if axis.folds else 4
    high = top + ROW * len(lines) + SCALE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="timeline-svg" role="group" '
        f'viewBox="0 0 {WIDTH} {high}" width="{WIDTH}" height="{high}" '
        f'aria-label="Timeline: {len(bars)} attempts of {len(lines)} steps; left and right go along a step; '
        f'the table below says the same">'
    ]
    labelled = float(LEFT)
    for x, idle in axis.folds:
        parts.append(_fold(x, idle, high, x - labelled >= APART))
        labelled = x if x - labelled >= APART else labelled
    for place, line in enumerate(lines):
        y = top + place * ROW
        name = f"{line.task} / {line.step}" if line.step else line.task
        short = name if len(name) <= 25 else f"{name[:24]}…"
        parts.append(
            f"<g><title>{escape(name)}</title>"
            f'<text class="row-name" x="6" y="{y + 16}">{escape(short)}</text>'
            f'<path class="rail" d="M{LEFT} {y + ROW - 1}H{WIDTH - 12}"/></g>'
        )
        parts += [_bar(bar, axis, y, address, bar is line.bars[-1]) for bar in line.bars]
    foot = top + ROW * len(lines)
    for x, after in axis.ticks():
        parts.append(
            f'<path class="rail" d="M{x:.1f} {foot - 1}v5"/>'
            f'<text x="{min(x, _middle(after)):.1f}" y="{foot + 17}" '
            f'text-anchor="{"middle" if x > LEFT else "start"}">'
            f"{escape(after)}</text>"
        )
    parts.append("</svg>")
    return mark_safe("".join(parts))


def _bar(bar: Bar, axis: Axis, y: int, address: str, newest: bool) -> str:
    """The Tab key stops at the newest of a step; arrows go to the others (run.js)."""
    left, right = axis.x(bar.start), axis.x(bar.end)
    wide = max(3.0, right - left)
    label = f"{bar.text}: {_word(bar)}, {words.took(bar.end - bar.start)}"
    stop = "" if newest else 'tabindex="-1" '
    return (
        f'<a href="{escape(address)}?tab=records&amp;seq={bar.seq}#record" data-seq="{bar.seq}" {stop}'
        f'aria-label="{escape(f"Record {bar.seq}, {bar.task} {bar.step}, {label}")}">'
        f'<title>{escape(label)}</title><rect class="bar {bar.state}{" ask" if bar.ask else ""}" '
        f'x="{left:.1f}" y="{y + 5}" width="{wide:.1f}" height="15" rx="3"/></a>'
    )


def _fold(x: float, idle: int, high: int, labelled: bool) -> str:
    took = escape(words.took(idle))
    text = f'<text x="{x:.1f}" y="14" text-anchor="middle">{took}</text>' if labelled else ""
    return (
        f'<g class="fold"><title>{escape(words.took(idle))} idle</title>'
        f'<path d="M{x - 3:.1f} {TOP - 4}v{high - TOP - 2}M{x + 3:.1f} {TOP - 4}v{high - TOP - 2}"/>'
        f"{text}</g>"
    )


def pane(run: Run, address: str) -> dict[str, Any]:
    """What the tab shows."""
    bars = bars_of(run)
    drawing = svg(run, address, bars)
    return {
        "timeline": drawing,
        "folded": 'class="fold"' in (drawing or ""),
        "lines": lines_of(bars),
        "attempts": len(bars),
        "tokens": sum(bar.tokens for bar in bars),
        "cost": sum(bar.cost for bar in bars),
        "most": MOST,
    }
