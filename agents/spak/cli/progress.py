"""Progress of a run for people who watch: one line per candidate or step, and what is under way.

On a terminal also what a model writes, while it comes, and the last line of what a tool puts out: without
secrets, and nothing that a terminal obeys.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spak.cli.common import printable
from spak.runner.live import Live

if TYPE_CHECKING:
    from rich.text import Text

    from spak.cli.session import Session
    from spak.kernel.state import State
    from spak.ports import Heard
    from spak.records import Record
    from spak.runner.history import Attempted

PACE_S = 0.25


@contextmanager
def progress(held: Session, enabled: bool) -> Iterator[None]:
    """Show a run's progress on standard error while the block runs: live on a terminal, else line by line."""
    if not enabled:
        yield
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("starting") as status:
        watcher = Watcher(held, console, status)
        if pending := held.run.state.r6:
            watcher.place = _place(pending.task, pending.step, pending.name)
        held.listen(watcher.see)
        if console.is_terminal:
            held.run.performer.on_text = watcher.text
            held.run.performer.hearing = watcher.hearing
        yield


class Watcher:
    """Prints a line for each finished candidate or step; keeps the status line at what is under way."""

    def __init__(self, held: Session, console: Any, status: Any) -> None:
        self.held = held
        self.console = console
        self.status = status
        self.shown = len(held.run.history.rows)
        self.place = "starting"
        self.line = ""
        """What a model has written of a line that is not whole."""
        self.live: Live | None = None
        self.tool = ""
        self.looked = 0.0

    def text(self, text: str) -> None:
        """Some text of an answer; an empty one when it begins again."""
        if not text:
            self._line(f"{self.line} … and again, from the beginning:")
            self.line = ""
            return
        *whole, self.line = (self.line + text).split("\n")
        width = max(self.console.width - 4, 20)
        for line in whole:
            self._line(line)
        while len(self.line) > width:
            self._line(self.line[:width])
            self.line = self.line[width:]
        self._under_way()

    @contextmanager
    def hearing(self) -> Iterator[Heard]:
        """Around a tool: the status line shows the last line that it put out, whenever it is drawn."""
        self.live = Live(self.held.run.performer.redactor)
        self.status.update(self)
        try:
            yield self.live.heard
        finally:
            self.live = None
            self._under_way()

    def __rich__(self) -> Text:
        live, now = self.live, time.monotonic()
        if live is not None and live.news and now - self.looked >= PACE_S:
            self.looked, self.tool = now, live.look().last_line
        return self._text(self.tool)

    def _under_way(self) -> None:
        """The status line: where the run is, and the end of what a model is writing."""
        self.tool = ""
        self.status.update(self._text(self.line))

    def _text(self, words: str) -> Text:
        from rich.text import Text

        room = self.console.width - len(self.place) - 6
        tail = printable(words)[-room:] if room > 0 else ""
        return Text(f"{self.place}  {tail}")

    def _line(self, text: str) -> None:
        if text.strip():
            self.console.print(
                f"  │ {printable(text)}", style="dim", highlight=False, markup=False, soft_wrap=True
            )

    def see(self, record: Record, state: State) -> None:
        """A record was appended."""
        if record.kind == "permit":
            place = _place(record.task, record.step, record.body.get("name", record.body["act"]))
            self.place = printable(f"{place}{self._count(record.task, state)}{self._best(state)}")
            self._under_way()
        rows = self.held.run.history.rows
        for row in rows[self.shown :]:
            self.console.print(printable(candidate_line(row)), highlight=False, markup=False, soft_wrap=True)
        self.shown = len(rows)

    def _count(self, task: str, state: State) -> str:
        """How far a metric loop has come, of what its rule allows at most."""
        rule = self.held.run.rules.program.tasks[task].rule
        if rule is None or not rule.evaluations:
            return ""
        return f", evaluation {state.r7.evaluations + 1} of at most {rule.evaluations}"

    def _best(self, state: State) -> str:
        best, rows = state.r7.best, self.held.run.history.rows
        if best is None:
            return ""
        per_unit, unit = (
            (rows[-1].per_unit, rows[-1].unit) if rows else (state.r7.metrics.get("per_unit", 1e6), "ms")
        )
        improved = [row for row in rows if row.outcome == "improved" and row.value is not None]
        course = trend(row.value or 0.0 for row in improved)
        shown = f"{course} {best.value / per_unit:.3f} {unit}".strip()
        roof = improved[-1].roof_percent if improved else None
        reached = "" if roof is None else f", {roof:.0f} % of roof"
        return f"  (best so far {shown}{reached})"


def _place(task: str, step: str, name: str) -> str:
    return printable(f"TASK {task}, step {step}: {name}")


BARS = "▁▂▃▄▅▆▇█"
MOST_BARS = 12


def trend(values: Iterable[float]) -> str:
    """The course of the best as a row of bars, the newest last; empty for fewer than two values."""
    found = list(values)[-MOST_BARS:]
    low, high = min(found, default=0.0), max(found, default=0.0)
    if len(found) < 2 or low == high:
        return ""
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1))] for value in found)


def candidate_line(row: Attempted) -> str:
    """One line of the table of candidates: first what decided, then what was measured, if anything was."""
    glyphs = {"improved": "●", "measured": "○", "fail": "×", "static": "□", "done": "✓"}
    glyph = glyphs.get(row.outcome, "?")
    word = row.code if row.outcome == "fail" else row.outcome
    shown = " ".join(f"{name}={item}" for name, item in row.params.items()) or row.tool
    parts = [f"{row.number:3d} {glyph} {word:<14.14}"]
    if row.ratio is not None:
        parts.append(f"{row.ratio:5.2f} of best, won {row.wins:2d} of {row.pairs:2d} pairs")
    if row.shown is not None:
        parts.append(f"{row.shown:8.3f} {row.unit}".rstrip())
    if row.roof_percent is not None:
        parts.append(f"{row.roof_percent:2.0f} % of roof")
    return "  ".join([*parts, shown])
