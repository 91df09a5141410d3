"""Strategies of the tuner and of Kernel Tuner on measured spaces: evaluations until within 5 % of the best.

Only when named (`make bench ARGS=strategies`): the first time it installs the packages of
requirements-strategies.lock, with their hashes, into `.venv-strategies`. Every strategy runs SEEDS seeds
with a budget of BUDGET evaluations of distinct points on every shipped space, and looks each point up instead
of measuring it. A search that finds nothing good in its budget counts as more than BUDGET; the median and its
95 % interval (order statistics) are censored in the same way.

What was found is written to bench/strategies.json; `python -m bench.strategies_figures` makes the table and
the picture of docs/tuner.md from it. A row compares the default strategy with the best other one on a space:
the share of pairs of seeds in which it needed more evaluations, 0.5 where both are alike.

    python -m bench.bench_strategies [SPACE...]     measures some spaces only and keeps the others' results
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.bench_peers import installed
from bench.sizes import QUICK, sized
from bench.space_replay import evaluations, search
from spak import data
from spak.proposers import space as parsing
from spak.proposers.strategies import STRATEGIES
from spak.proposers.tuner import DEFAULTS
from spak.spaces import Cache, Header, Row, read
from spak.spaces.cache import Source

ROOT = Path(__file__).resolve().parents[1]
LOCK, PLACE = ROOT / "requirements-strategies.lock", ROOT / ".venv-strategies"
RESULTS = ROOT / "bench" / "strategies.json"
SEEDS, BUDGET, WITHIN = sized(100, 3), sized(100, 10), 1.05
HELD_OUT = ("rmsnorm",)
"""Spaces on which nothing was chosen."""
THEIRS = (
    "random_sample",
    "minimize",
    "basinhopping",
    "diff_evo",
    "genetic_algorithm",
    "greedy_mls",
    "ordered_greedy_mls",
    "greedy_ils",
    "dual_annealing",
    "mls",
    "pso",
    "simulated_annealing",
    "firefly_algorithm",
    "bayes_opt",
    "hybrid_vndx",
    "adaptive_tabu_greywolf",
)
"""Of Kernel Tuner 1.5: all but brute_force, nsga2 and nsga3 (several objectives), and skopt and
pyatf_strategies, whose packages are not among its dependencies."""

Found = dict[str, list[int | None]]
"""Evaluations of each seed by strategy; None where the budget did not suffice."""


def rows() -> list[dict[str, Any]]:
    """The default strategy beside the best other one, for each space."""
    results = measured(sorted(spaces())[: sized(None, 2)])
    return [_row(name, found["strategies"]) for name, found in results["spaces"].items()]


def spaces() -> dict[str, Cache]:
    """The shipped spaces by name."""
    folder = data.path("specs/problems/spaces")
    found = {path.name.removesuffix(".jsonl.gz"): read(path) for path in sorted(folder.glob("*.jsonl.gz"))}
    return {**found, "attention": attention()}


def attention() -> Cache:
    """The table of an earlier time (tests/proposers), which has the least time of each point."""
    table = json.loads((ROOT / "tests/proposers/attention_times.json").read_text())
    space = parsing.parse(table["space"])
    names = [name for name in table["space"] if name != "require"]
    points = (
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(table["space"][name] for name in names))
    )
    numbers = [number for point in points if (number := space.number(point)) is not None]
    times = dict(zip(numbers, table["us"], strict=True))
    found = [
        Row(number, space.point(number), "ok", median_ns=1000 * times[number]) for number in sorted(times)
    ]
    source = Source.of("attention.py", b"")
    return Cache(Header(source, source, table["space"], space.size, 512, "", "", "", {}), found, space)


def measured(names: Sequence[str]) -> dict[str, Any]:
    """Run all strategies on these spaces; the results of all spaces, as they are in RESULTS."""
    python = None if QUICK else installed(PLACE, LOCK)
    known = json.loads(RESULTS.read_text())["spaces"] if RESULTS.exists() and not QUICK else {}
    for name in names:
        cache = spaces()[name]
        found: Found = {}
        for label, evaluated in (*_ours(cache), *(_theirs(python, cache) if python else ())):
            found.setdefault(label, []).append(evaluated)
            if len(found[label]) == SEEDS:
                print(f"{name}: {label}: {_median(found[label])}", file=sys.stderr, flush=True)
        best = cache.best()
        assert best is not None
        known[name] = {
            "points": cache.header.points,
            "good": sum(
                row.outcome == "ok" and row.median_ns <= WITHIN * best.median_ns for row in cache.rows
            ),
            "strategies": found,
        }
        document = {"seeds": SEEDS, "budget": BUDGET, "within": WITHIN, "spaces": dict(sorted(known.items()))}
        if not QUICK:
            RESULTS.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    return {"spaces": known}


def interval(found: Sequence[int | None]) -> tuple[float, float]:
    """The 95 % interval of the median: the 40th and 61st of 100, in general by the normal approximation."""
    ordered = sorted(BUDGET + 1 if item is None else item for item in found)
    half = 0.98 * len(ordered) ** 0.5
    low = max(round(len(ordered) / 2 - half), 1)
    high = min(round(len(ordered) / 2 + half) + 1, len(ordered))
    return ordered[low - 1], ordered[high - 1]


def slower(one: Sequence[int | None], other: Sequence[int | None]) -> tuple[float, float]:
    """The share of pairs in which `one` needs more evaluations than `other`, ties half, and its 95 %
    half-width by the standard error of the Mann-Whitney statistic for equal distributions."""
    left, right = ([BUDGET + 1 if item is None else item for item in side] for side in (one, other))
    share = sum((a > b) + 0.5 * (a == b) for a in left for b in right) / (len(left) * len(right))
    error = ((len(left) + len(right) + 1) / (12 * len(left) * len(right))) ** 0.5
    return share, 1.96 * error


def _row(name: str, found: Mapping[str, Sequence[int | None]]) -> dict[str, Any]:
    default = DEFAULTS["strategy"]
    rival = min((label for label in found if label != default), key=lambda label: _rank(found[label]))
    share, half = slower(found[default], found[rival])
    words = f"{default} {_median(found[default])}, {rival} {_median(found[rival])}"
    return {
        "name": f"{name}: pairs of seeds in which the default is slower ({words})",
        "ours": round(share, 2),
        "floor": round(0.5 + half, 2),
        "unit": "",
        "aim": "<= 1.0 of floor",
    }


def _rank(found: Sequence[int | None]) -> tuple[float, float]:
    numbers = [BUDGET + 1 if item is None else item for item in found]
    return median(numbers), sum(numbers)


def _median(found: Sequence[int | None]) -> str:
    middle = _rank(found)[0]
    return f"> {BUDGET}" if middle > BUDGET else f"{middle:g}"


def _ours(cache: Cache) -> Iterator[tuple[str, int | None]]:
    best = cache.best()
    assert best is not None
    good = WITHIN * best.median_ns
    for name, strategy in STRATEGIES.items():
        for seed in range(SEEDS):
            yield name, evaluations(search(cache, strategy, seed, BUDGET, good), good)


def _theirs(python: Path, cache: Cache) -> Iterator[tuple[str, int | None]]:
    best = cache.best()
    assert best is not None
    choices = cache.space.choices
    texts = {name for name, values in choices.items() if any(isinstance(value, str) for value in values)}
    job = {
        "parameters": {
            name: list(range(len(values)) if name in texts else values) for name, values in choices.items()
        },
        "points": [
            [
                [
                    choices[name].index(value) if name in texts else value
                    for name, value in row.params.items()
                ],
                row.median_ns if row.outcome == "ok" else None,
            ]
            for row in cache.rows
        ],
        "good": WITHIN * best.median_ns,
        "budget": BUDGET,
        "seeds": list(range(SEEDS)),
        "strategies": list(THEIRS),
    }
    script = Path(__file__).with_name("strategies_theirs.py")
    done = subprocess.run(
        [str(python), str(script)], input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=True
    )
    for line in done.stdout.splitlines():
        said = json.loads(line)
        yield f"kt: {said['strategy']}", said["evaluations"]


if __name__ == "__main__":
    began = time.monotonic()
    measured(sys.argv[1:] or sorted(spaces()))
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
