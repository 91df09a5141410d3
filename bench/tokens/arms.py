"""The policies that are compared, each a function from a recorded run to its prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.tokens import replay
from bench.tokens.measure import Figures, measure
from bench.tokens.replay import Prompts
from bench.tokens.trajectories import Trajectory

Arm = Callable[[Trajectory, dict[int, str]], Prompts]

ARMS: dict[str, Arm] = {
    "full history": lambda run, texts: replay.full(run),
    "last 5 tool results": lambda run, texts: replay.last_results(run, 5),
    "flush every 8 messages": lambda run, texts: replay.flush(run, 8),
    "FIFO": lambda run, texts: replay.ours(run, "FIFO", texts=texts),
    "SUMMARIZE": lambda run, texts: replay.ours(run, "SUMMARIZE", texts=texts),
    "FLUSH_ON_TRANSITION": lambda run, texts: replay.ours(run, "FLUSH_ON_TRANSITION", texts=texts),
    "PRUNE_ON_CONFIRM": lambda run, texts: replay.ours(run, "PRUNE_ON_CONFIRM", texts=texts),
    "FLUSH, demonstrations pinned": lambda run, texts: replay.ours(
        run, "FLUSH_ON_TRANSITION", pinned=True, texts=texts
    ),
    "system message and goal alone": lambda run, texts: replay.floor(run),
}


def figures(runs: Sequence[Trajectory], prompts: Arm) -> list[Figures]:
    return [measure(run, prompts) for run in runs]
