"""`python -m bench.tokens [FOLDER]`: the whole table, per set of recorded runs and policy.

Without a folder: the synthetic set that ships with the project.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.tokens import measure, synthetic
from bench.tokens.arms import ARMS, figures
from bench.tokens.trajectories import read
from spak import tokens

HEADS = ("policy", "tokens saved %", "95 %", "median", "cost saved at 0.1 %", "95 %", "median", "at 0.25 %")
MORE = ("peak", "in the prompt %", "behind refs %", "lost %", "recalls")


def main() -> int:
    sets = read(Path(sys.argv[1])) if len(sys.argv) > 1 else synthetic.runs()
    for name, runs in sets.items():
        found = {arm: figures(runs, prompts) for arm, prompts in ARMS.items()}
        base = found["full history"]
        sent = measure.total(base)
        print(
            f"\n{name}: {len(runs)} runs, {sent.tokens:,} prompt tokens, each token sent "
            f"{sent.tokens / sent.fresh:.1f} times, {sent.needed} literals, {tokens.tokenizer()}"
        )
        print(" | ".join((*HEADS, *MORE)))
        for arm, runs_of_arm in found.items():
            print(line(arm, base, runs_of_arm))
    return 0


def line(arm: str, base: list[measure.Figures], other: list[measure.Figures]) -> str:
    low, high = measure.interval(base, other)
    cheap, dear = measure.interval(base, other, 0.1)
    middle, middle_cost = measure.medians(base, other, 0.1)
    all_of = measure.total(other)
    needed = max(1, all_of.needed)
    lost = all_of.needed - all_of.shown - all_of.behind
    cells = (
        arm,
        f"{measure.saved(base, other):.1f}",
        f"{low:.1f}..{high:.1f}",
        f"{middle:.1f}",
        f"{measure.saved(base, other, 0.1):.1f}",
        f"{cheap:.1f}..{dear:.1f}",
        f"{middle_cost:.1f}",
        f"{measure.saved(base, other, 0.25):.1f}",
        f"{all_of.peak:,}",
        f"{100 * all_of.shown / needed:.1f}",
        f"{100 * all_of.behind / needed:.1f}",
        f"{100 * lost / needed:.1f}",
        f"{all_of.recalls}",
    )
    return " | ".join(cells)


if __name__ == "__main__":
    sys.exit(main())
