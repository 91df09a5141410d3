"""An honest job for the outer loop: a poor tuner spec over eight sizes of attention.

The values are real: each point of a small space is compiled once by gcc and timed at each size by the
processor time that it takes (`measured`, about a minute of it). The searches are real: the kernel runs the
spec's tuner, and a script answers its measurements from that table. A run is right when the best kernel that
it found takes at most NEAR times as long as the best of the space at that size.

Fixed before scoring: the space, the sizes and their splits, NEAR, the base, the training runs that a
proposer has, the plan of a campaign. Proposers see runs of training sizes (rules those of the base, evolution
its own), the gate judges on the gate's sizes, and sealed sizes decide, with seeds that nothing used before,
on the base and on what a person would have merged.

    python -m bench.outer_tuner [TABLE.json [rules|evolution]]

The table is made where the file does not exist; without a proposer both have their campaign.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from bench.scripted import exited, ledger
from spak import canon, config, data
from spak.kernel.state import Effect
from spak.lang import parse
from spak.outer.analyze import read
from spak.outer.campaigns import Campaign, Judging, Pair, Plan, advance
from spak.outer.gate import Candidate
from spak.outer.propose import Scored, Training, evolve, from_findings
from spak.outer.stats import wilson
from spak.ports import PlanRequest
from spak.program import compile as compile_program
from spak.proposers import PROPOSERS
from spak.records import Kind, Record
from spak.runner.history import History
from spak.tools.instantiate import render

SPACE: Mapping[str, tuple[Any, ...]] = {
    "LAYOUT": ("PACKED", "DOT"),
    "ROWS": (1, 2, 4),
    "TILE": (16, 64, 256),
    "EXP": ("EXPF", "P5"),
    "FLAGS": ("-O2", "-O3 -march=native"),
}
SIZES = {
    "train": (64, 192, 384),
    "gate": (96, 256, 512),
    "sealed": (128, 640),
}
NEAR = 1.1
REPEATS = 5
TRAINING, PAIRS, CANDIDATES, ROUNDS, LAST = 60, 60, 2, 1, 100
"""Training runs, pairs of a candidate, candidates of a campaign, campaigns, runs of a sealed size."""
BASE = """AGENT Poor_Tuner LEVEL 5 {{
  CONFIG {{ MODE full_auto BUDGET {{ steps: 600 }} }}
  START -> baseline
  TASK baseline {{
    VALIDATOR CpuProfiler {{ problem: "attention", binary: "a.so", source: "a.c", role: "baseline" }}
    NEXT {{ success -> tune }}
  }}
  TASK tune {{
    TOOLS [instantiate]
    PROPOSER tuner {{ strategy: "random" tool: "instantiate" args: {{ template: "tiled.c", path: "b.c" }} }}
    SPACE {{ {space} }}
    step draft: llm.plan {{ role: "coder" }}
    VALIDATOR CpuProfiler {{ problem: "attention", binary: "b.so", source: "b.c" }}
    RULE {{ patience: 3, evaluations: 40 }}
    RETRIES 60
    NEXT {{ metric_improved -> tune, success -> tune, fail -> tune, plateau -> done }}
  }}
  TASK done {{ step show: tool.list_files {{ path: "." }} }}
}}
"""
Table = dict[str, dict[str, int]]
"""Nanoseconds by size and point."""


def base() -> str:
    return BASE.format(
        space=" ".join(f"{name}: {json.dumps(list(values))}" for name, values in SPACE.items())
    )


def name_of(point: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={point[name]}" for name in SPACE)


def measured() -> Table:
    """Every point of the space at every size: the least processor time of REPEATS calls."""
    sizes = sorted(size for found in SIZES.values() for size in found)
    table: Table = {str(size): {} for size in sizes}
    template = (data.path("specs/examples") / "attention_tuner/tiled.c").read_bytes()
    draw, most = Random(1), max(sizes) * 64
    held = {name: _floats(most if name != "scratch" else 1 << 20) for name in ("Q", "K", "V", "O", "scratch")}
    for name in ("Q", "K", "V"):
        for place in range(most):
            held[name][place] = draw.gauss(0, 1)
    with tempfile.TemporaryDirectory(prefix="spak-tuner-") as folder:
        for number, values in enumerate(itertools.product(*SPACE.values())):
            point = dict(zip(SPACE, values, strict=True))
            source, binary = Path(folder) / f"k{number}.c", Path(folder) / f"k{number}.so"
            macros = {key: value for key, value in point.items() if key != "FLAGS"}
            source.write_bytes(render(template, macros))
            flags = str(point["FLAGS"]).split()
            words = ["gcc", *flags, "-shared", "-fPIC", "-o", str(binary), str(source), "-lm"]
            subprocess.run(words, check=True, capture_output=True)
            kernel = ctypes.CDLL(str(binary)).attn
            kernel.argtypes = [ctypes.c_long, *[ctypes.POINTER(ctypes.c_float)] * 5]
            kernel.restype = None
            for size in sizes:
                table[str(size)][name_of(point)] = min(_timed(kernel, size, held) for _ in range(REPEATS))
    return table


def _floats(count: int) -> Any:
    """So many floats, aligned as the kernel wants them."""
    raw = ctypes.create_string_buffer(count * 4 + 64)
    return (ctypes.c_float * count).from_buffer(raw, -ctypes.addressof(raw) % 64)


def _timed(kernel: Any, size: int, held: Mapping[str, Any]) -> int:
    before = time.process_time_ns()
    kernel(size, held["Q"], held["K"], held["V"], held["O"], held["scratch"])
    return max(time.process_time_ns() - before, 1)


@cache
def _program(text: str) -> Any:
    return compile_program(parse(text), config.catalog(), {})


def searched(text: str, values: Mapping[str, int], seed: int) -> tuple[list[Record], int]:
    """A run of a tuner spec at one size, and the time of the best kernel that it found."""
    program = _program(text)
    history = History(rules={name: task.rule for name, task in program.tasks.items() if task.rule})
    tried: list[str] = []
    worst = max(values.values())
    best = [worst]

    def script(effect: Effect, count: int) -> object:
        task = program.tasks[effect.task]
        if effect.act == "plan":
            given = PlanRequest(
                effect.id, effect.task, effect.step, effect.turn, effect.seed, task.proposing.options,
                task.proposing.space, {}, history.of(effect.task),
            )  # fmt: skip
            found = PROPOSERS["tuner"]().propose(given)
            listed = [{"tool": one.tool, "args": dict(one.args), "params": dict(one.params)} for one in found]
            tried[:] = [name_of(found[0].params)] if found else []
            return Kind.PLAN, {"by": "tuner", "candidates": listed}, {"ms": 1}
        if effect.act == "validate":
            now = values[tried[0]] if tried else worst
            pairs = [{"candidate": [now], "incumbent": [best[0]]}] * 8
            best[0] = min(best[0], now) if _wins(now, best[0]) else best[0]
            return Kind.ACT, _measurement(now, pairs), {"ms": max(now // 1_000_000, 1)}
        more = {"r3": canon.content_hash([count])} if effect.cls == "effect" else {}
        return exited(0, f"n{count}", **more)

    return ledger(text, script, seed, heard=history.feed), best[0]  # type: ignore[arg-type]


def _wins(now: int, before: int) -> bool:
    return 100 * now < 99 * before


def _measurement(now: int, pairs: list[Any]) -> dict[str, Any]:
    from spak.kernel.metric_decision import DEFAULTS, decide

    for count in range(1, len(pairs) + 1):  # the profiler stops as soon as the kernel's rule has decided
        if decide(pairs[:count], DEFAULTS).outcome != "undecided":
            pairs = pairs[:count]
            break
    return {
        "outcome": "exited", "status": "measured", "metrics": {"time_ns": now}, "pairs": pairs,
        "checks": [{"name": "correct", "ok": True, "code": ""}],
        "subject": {"source": {"$blob": canon.content_hash([now])}},
        "key": canon.content_hash([now, len(pairs)]),
    }  # fmt: skip


def right(best: int, values: Mapping[str, int]) -> bool:
    """Whether a search found a kernel that is nearly the best of the space."""
    return best <= NEAR * min(values.values())


def evolved(text: str, table: Table, seed: int) -> list[Candidate]:
    """Candidates by evolution on the training sizes; its cost of a run is the kernels that were measured."""

    def run(case: str, new: str, k: int) -> Scored:
        made, best = searched(new, table[case], Random(f"train/{seed}/{case}/{k}").randrange(1 << 30))
        tried = sum(record.kind == Kind.PLAN for record in made)
        return Scored(right(best, table[case]), float(tried), read(made, f"{case}-{k}"))

    cases = [str(size) for size in SIZES["train"]]
    return evolve(text, cases, run, config.catalog(), Random(seed), TRAINING)


def found_by_rules(text: str, table: Table, seed: int) -> list[Candidate]:
    """Candidates of the default proposer, from runs of the spec at the training sizes."""
    runs = []
    for number in range(TRAINING):
        size = str(SIZES["train"][number % len(SIZES["train"])])
        made, _ = searched(text, table[size], Random(f"train/{seed}/{size}/{number}").randrange(1 << 30))
        runs.append((f"{size}-{number}", made))
    return from_findings(Training.of(runs, {}), text)


PROPOSE = {"rules": found_by_rules, "evolution": evolved}


def improve(table: Table, seed: int = 1, proposer: str = "evolution") -> tuple[str, list[tuple[str, str]]]:
    """The spec after the campaigns, and each verdict; whatever is fit is merged in place of a review."""
    text, told = base(), []
    cases = tuple(str(size) for size in SIZES["gate"])
    with tempfile.TemporaryDirectory(prefix="spak-tuner-") as folder:
        for number in range(ROUNDS):
            made = PROPOSE[proposer](text, table, seed + number)
            plan = Plan(
                "poor", text, "sizes", f"sizes-{number}", (), cases, candidates=CANDIDATES, pairs=PAIRS
            )
            found = Campaign.create(Path(folder), f"c{number}", plan)

            def pair(case: str, k: int, new: str, old: str = text, number: int = number) -> Pair:
                drawn = Random(f"gate/{seed}/{number}/{case}/{k}").randrange(1 << 30)
                before, after = (
                    right(searched(one, table[case], drawn)[1], table[case]) for one in (old, new)
                )
                return Pair(case, k, after - before)

            judging = Judging(config.catalog(), (), pair)
            advance(found, Path(folder), lambda current, made=made: made, judging)  # type: ignore[misc]
            told += [(item.candidate.rationale, f"{item.verdict} ({item.why})") for item in found.tested]
            fit = next((item for item in found.tested if item.verdict == "fit"), None)
            if fit is None:
                break
            text = fit.candidate.text(text)
    return text, told


def scored(text: str, table: Table, split: str, runs: int = LAST) -> dict[str, tuple[int, float]]:
    """By size: how many of so many runs were right, and how many kernels a run measured."""
    found = {}
    for size in SIZES[split]:
        values = table[str(size)]
        made = [searched(text, values, Random(f"{split}/{size}/{k}").randrange(1 << 30)) for k in range(runs)]
        tried = sum(record.kind == Kind.PLAN for records, _ in made for record in records)
        found[str(size)] = sum(right(best, values) for _, best in made), tried / runs
    return found


def main(where: Path | None, proposers: Sequence[str]) -> None:
    if where is not None and where.is_file():
        table = json.loads(where.read_text(encoding="utf-8"))
    else:
        table = measured()
        spent = time.process_time() + sum(os.times()[2:4])
        print(f"{sum(len(found) for found in table.values())} kernels measured, {spent:.0f} s of CPU")
        if where is not None:
            where.write_text(json.dumps(table), encoding="utf-8")
    _sealed("base", base(), table)
    for proposer in proposers:
        text, told = improve(table, proposer=proposer)
        for why, word in told:
            print(f"{proposer}: {word}: {why}", flush=True)
        changed = [line for line in text.splitlines() if line not in base().splitlines()]
        print(f"{proposer}: merged", *(changed or ["nothing"]), sep="\n", flush=True)
        if text != base():
            _sealed(f"merged from {proposer}", text, table)
    print(f"{time.process_time():.0f} s of CPU")


def _sealed(name: str, text: str, table: Table) -> None:
    found = scored(text, table, "sealed")
    passed = sum(count for count, _ in found.values())
    low, high = wilson(passed, LAST * len(found))
    each = ", ".join(
        f"{size}: {count} of {LAST}, {tried:.1f} kernels" for size, (count, tried) in found.items()
    )
    print(f"sealed, {name}: {passed / LAST / len(found):.3f} [{low:.3f}, {high:.3f}] ({each})", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]) if given else None, given[1:] or tuple(PROPOSE))
