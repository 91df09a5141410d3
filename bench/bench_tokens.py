"""Prompts of recorded runs through our context builder, against full history and the rows to beat.

Always the synthetic set; where SPAK_TRAJECTORIES names a folder of recorded runs (tau-bench JSON, SWE-agent
`.traj`), those too. The floor of a saving is what "all but the system message dropped every 8 messages"
saves on the same runs, which loses what it drops; aims are the published figures of that row. The claims of
the papers stand beside ours with their definitions: docs/context.md. More detail: `python -m bench.tokens`.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

from bench.tokens import measure, synthetic
from bench.tokens.arms import ARMS, figures
from bench.tokens.trajectories import Trajectory, read
from spak import tokens
from spak.kernel import context

AIMS = {"tau-bench": ("> 36", "> 20"), "swe-agent": ("> 39", "> 26")}
OURS = "FLUSH_ON_TRANSITION"
BEATEN = "flush every 8 messages"


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    given = os.environ.get("SPAK_TRAJECTORIES")
    sets = {**synthetic.runs(), **(read(Path(given)) if given else {})}
    found = [row for name, runs in sets.items() for row in _set(name, runs)]
    return found + _long_run() + _overhead()


def _set(name: str, runs: list[Trajectory]) -> list[dict[str, Any]]:
    base = figures(runs, ARMS["full history"])
    ours, beaten = figures(runs, ARMS[OURS]), figures(runs, ARMS[BEATEN])
    least, cheapest = AIMS.get(name, ("", ""))
    sums, dropped = measure.total(ours), measure.total(beaten)
    kept = 100 * (sums.shown + sums.behind) / max(1, sums.needed)
    shown = 100 * sums.shown / max(1, sums.needed)
    lossy = 100 * dropped.shown / max(1, dropped.needed)
    made = [
        _row(f"{name} ({len(runs)} runs), {OURS}: prompt tokens saved",
             measure.saved(base, ours), measure.saved(base, beaten), "%", least),
        _row(f"{name}: cost saved, cached at 0.1",
             measure.saved(base, ours, 0.1), measure.saved(base, beaten, 0.1), "%", cheapest),
        _row(f"{name}: literals that calls need, kept in all",
             kept, lossy, "%", ">= 99"),
        _row(f"{name}: of them in the prompt itself",
             shown, lossy, "%", ">= 99"),
        _row(f"{name}: peak prompt", sums.peak, measure.total(base).peak, "tokens", "< 1 of floor"),
    ]  # fmt: skip
    for policy in ("FIFO", "SUMMARIZE", "PRUNE_ON_CONFIRM"):
        other = figures(runs, ARMS[policy])
        made.append(_row(f"{name}, {policy}: prompt tokens saved", measure.saved(base, other), None, "%", ""))
    floor = measure.saved(base, figures(runs, ARMS["system message and goal alone"]))
    claim = (
        f"{name}: tokens saved, beside AEP's claim of 79.9 % (its own runs); most that can be: {floor:.0f}"
    )
    return [*made, _row(claim, measure.saved(base, ours), 79.9, "%", "")]


def _long_run() -> list[dict[str, Any]]:
    """One run of 500 turns: its longest prompt beside that of its first half, and beside its history."""
    long = synthetic.desk(random.Random("500"), 125)
    half = Trajectory("half", long.messages[: len(long.messages) // 2])
    made = []
    for policy in ("FLUSH_ON_TRANSITION", "SUMMARIZE", "FIFO"):
        ours, first = figures([long], ARMS[policy])[0], figures([half], ARMS[policy])[0]
        name = f"{long.turns} turns, {policy}: peak prompt beside that of {half.turns} turns"
        made.append(_row(name, ours.peak, first.peak, "tokens", "<= 1.05 of floor"))
    base, ours = figures([long], ARMS["full history"])[0], figures([long], ARMS[OURS])[0]
    share = 100 * ours.tokens / base.tokens
    return [
        *made,
        _row("500 turns: prompt tokens, of full history (SPAK's claim < 50 %)", share, 50, "%", "< 50"),
        _row(
            "500 turns: whole history to longest prompt (codeNERD's claim > 100:1)",
            base.peak / ours.peak, 100, ":1", "",
        ),
    ]  # fmt: skip


def _overhead() -> list[dict[str, Any]]:
    """What our own frame adds to a prompt's fixed part, which recordings do not have."""
    return [_row("format of answers, per prompt, cached", tokens.of_text(context.PACKET), None, "tokens", "")]


def _row(name: str, ours: float, floor: float | None, unit: str, aim: str) -> dict[str, Any]:
    floor = None if floor is None else round(floor, 2)
    return {"name": name, "ours": round(ours, 2), "floor": floor, "unit": unit, "aim": aim}
