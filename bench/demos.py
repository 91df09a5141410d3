"""Whole demos, one after another: how much faster the best kernel is each time, and the median of all.

    python -m bench.demos [--json] [--aim X] [COUNT]      COUNT is 10 unless given

Each is `spak demo` with a seed of its own. The floor is the naive kernel at -O2, measured again at the end of
the same run. A line for each demo has the speed-up with its interval (95 %, from the medians of the best and
the naive kernel), the larger spread of both, evaluations, CPU and wall time; then the median of all speed-ups
beside the aim. Each demo counts, whatever it gave. One that fails makes it exit 1, as does a median below the
aim. Ctrl+C ends the list early.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from typing import Any

from bench.bench_demo import whole

AIM = 20.0


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m bench.demos")
    arguments.add_argument("--json", action="store_true", help="one JSON document on standard output")
    arguments.add_argument("--aim", type=float, default=AIM, help="of the median, times the naive kernel")
    arguments.add_argument("count", nargs="?", type=int, default=10)
    given = arguments.parse_args()
    if given.count < 1:
        arguments.error("COUNT: 1 or more")
    found: list[dict[str, Any]] = []
    failed = 0
    try:
        for seed in range(1, given.count + 1):
            load = os.getloadavg()[0]
            try:
                one = figures(whole(seed), seed, load)
            except RuntimeError as error:
                failed += 1
                print(f"seed {seed}: {error}", file=sys.stderr)
                continue
            found.append(one)
            print(line(one), file=sys.stderr if given.json else sys.stdout, flush=True)
    except KeyboardInterrupt:
        print("demos: ended early", file=sys.stderr)
    if not found:
        return 1
    median = statistics.median(one["speedup"] for one in found)
    if given.json:
        print(
            json.dumps({"demos": found, "failed": failed, "median": median, "floor": 1.0, "aim": given.aim})
        )
    else:
        print(verdict(found, median, given.aim))
    return 1 if failed or median < given.aim else 0


def figures(seen: dict[str, Any], seed: int, load: float) -> dict[str, Any]:
    """What is kept of a demo's document."""
    metrics = seen["metrics"]
    spread = max(metrics["spread_ppm"], metrics["baseline_spread_ppm"]) / 1e4
    return {
        "seed": seed,
        "speedup": metrics["speedup"],
        "low": metrics["speedup_low"],
        "high": metrics["speedup_high"],
        "spread": round(spread, 1),
        "baseline_ms": metrics["baseline_ms"],
        "best_ms": metrics["best_ms"],
        "evaluations": metrics["evaluations"],
        "cpu_s": seen["cpu_s"],
        "wall_s": seen["wall_s"],
        "load": round(load, 1),
    }


def line(one: dict[str, Any]) -> str:
    """A demo in one line."""
    return (
        f"seed {one['seed']:2}  {one['speedup']:5.1f}x ({one['low']:.1f} to {one['high']:.1f})"
        f"  {one['baseline_ms']:.2f} to {one['best_ms']:.3f} ms, spread {one['spread']} %,"
        f" {one['evaluations']} evaluations,"
        f" {one['cpu_s']:.0f} CPU-s, {one['wall_s']:.0f} s at load {one['load']}"
    )


def verdict(found: list[dict[str, Any]], median: float, aim: float) -> str:
    """The median beside floor and aim."""
    word = "PASS" if median >= aim else "MISSED"
    least, most = (pick(one["speedup"] for one in found) for pick in (min, max))
    return (
        f"median of {len(found)}: {median:.1f}x over naive -O2 (floor 1), from {least:.1f} to {most:.1f};"
        f" aim >= {aim:g}: {word}"
    )


if __name__ == "__main__":
    sys.exit(main())
