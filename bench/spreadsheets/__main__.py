"""`python -m bench.spreadsheets [PIPELINES]`: a line for each arm, and the claims of seed 001 beside ours."""

from __future__ import annotations

import statistics
import sys
import time

from bench.spreadsheets import figures
from bench.spreadsheets.figures import ARMS, CHAT, OURS, Outcome

PIPELINES = 50
HEADS = ("", "right", "tokens", "95 %", "median", "calls", "loops", "corrupted", "first", "retries", "s")
FORM = "{:41} {:>5} {:>9} {:>19} {:>9} {:>5} {:>5} {:>9} {:>6} {:>7} {:>5}"
CLAIMS = """
                                seed 001 (a claim)            here
                              baseline         AEP     chat loop        ours
tokens, mean                   312,450      62,890 {tokens}
  where both are right                             {equal}
first call fits its schema        64 %        86 % {first}  the same draws
pipelines with a loop             18 %         0 % {loops}
corrupted files                      2           0 {corrupted}
time, mean                       8m42s       2m13s {seconds}  s, without a model
"""


def main() -> int:
    pipelines, began = int(sys.argv[1]) if len(sys.argv) > 1 else PIPELINES, time.monotonic()
    found = figures.outcomes(pipelines)
    print(FORM.format(*HEADS))
    for arm in ARMS:
        print(_line(arm, figures.of(found, arm)))
    arms = figures.of(found, CHAT), figures.of(found, OURS)
    print(
        CLAIMS.format(
            tokens=_pair(*map(_tokens, arms)),
            equal=_pair(*map(_tokens, figures.both_right(found, CHAT, OURS))),
            first=_pair(*(f"{100 * figures.first(arm):.1f} %" for arm in arms)),
            loops=_pair(*(f"{100 * statistics.fmean(o.loop for o in arm):.0f} %" for arm in arms)),
            corrupted=_pair(*(str(sum(o.corrupted for o in arm)) for arm in arms)),
            seconds=_pair(*(f"{statistics.fmean(o.seconds for o in arm):.2f}" for arm in arms)),
        )
    )
    ends = sorted({end for outcome in arms[1] for end in outcome.ends})
    print(f"runs of ours ended: {', '.join(ends)}")
    print(f"{sum(o.replayed for o in arms[1])} of {pipelines}: all ledgers verify and replay")
    cpu = sum(outcome.cpu_s for outcome in found)
    print(f"{len(found)} pipelines in {time.monotonic() - began:.0f} s, {cpu:.0f} s of CPU")
    return 0


def _line(arm: str, found: list[Outcome]) -> str:
    tokens = [outcome.tokens for outcome in found]
    value, low, high = figures.mean(tokens)
    return FORM.format(
        arm,
        f"{sum(outcome.whole for outcome in found)}/{len(found)}",
        f"{value:,.0f}",
        f"{low:,.0f}-{high:,.0f}",
        f"{statistics.median(tokens):,.0f}",
        f"{statistics.fmean(o.calls for o in found):.1f}",
        sum(o.loop for o in found),
        sum(o.corrupted for o in found),
        f"{100 * figures.first(found):.1f} %",
        f"{figures.retries(found):.2f}",
        f"{statistics.fmean(o.seconds for o in found):.2f}",
    )


def _tokens(found: list[Outcome]) -> str:
    return f"{statistics.fmean(outcome.tokens for outcome in found):,.0f}"


def _pair(chat: str, ours: str) -> str:
    return f"{chat:>13} {ours:>11}"


if __name__ == "__main__":
    sys.exit(main())
