"""An honest job for the outer loop: a poor tuner spec over the kernels that ship.

The values are real: each naive kernel of specs/problems is built at each point of a space of gcc's options,
checked against its problem and timed (`bench.compiled_kernels`). The searches are real: the kernel runs the
spec's tuner, and a script answers its measurements from that table. A run is right when the best build that
it found takes at most NEAR times as long as the best of the space for that kernel.

Fixed before scoring: the space, which kernels are in which split (in turn, by name), NEAR, the base, the
training runs that a proposer has, the plan of a campaign. Proposers see runs of training kernels (rules those
of the base, evolution its own), the gate judges on the gate's kernels, and sealed kernels decide, with seeds
that nothing used before, on the base and on what a person would have merged.

    python -m bench.outer_tuner [TABLE.json [rules|evolution]]

The table is made where the file does not exist; without a proposer both have their campaign.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from bench.compiled_kernels import SPACE, Table, kernels, measured, name_of
from bench.scripted import exited, ledger
from spak import canon, config
from spak.evolve.analyze import read
from spak.evolve.campaigns import Campaign, Judging, Pair, Plan, advance
from spak.evolve.gate import Candidate
from spak.evolve.propose import Scored, Training, evolve, from_findings
from spak.evolve.stats import wilson
from spak.kernel.state import Effect
from spak.lang import parse
from spak.ports import PlanRequest
from spak.program import compile as compile_program
from spak.proposers import PROPOSERS
from spak.records import Kind, Record
from spak.runner.history import History

SPLITS = ("train", "gate", "sealed")
NEAR = 1.1
TRAINING, PAIRS, CANDIDATES, ROUNDS, LAST = 60, 60, 2, 1, 100
"""Training runs, pairs of a candidate, candidates of a campaign, campaigns, runs of a sealed kernel."""
BASE = """AGENT Poor_Tuner LEVEL 5 {{
  CONFIG {{ MODE full_auto BUDGET {{ steps: 600 }} }}
  START -> baseline
  TASK baseline {{
    VALIDATOR CpuProfiler {{ problem: "gemm", binary: "a.so", source: "a.c", role: "baseline" }}
    NEXT {{ success -> tune }}
  }}
  TASK tune {{
    TOOLS [instantiate]
    PROPOSER tuner {{ strategy: "random" tool: "instantiate" args: {{ template: "naive.c", path: "b.c" }} }}
    SPACE {{ {space} }}
    step draft: llm.plan {{ role: "coder" }}
    VALIDATOR CpuProfiler {{ problem: "gemm", binary: "b.so", source: "b.c" }}
    RULE {{ patience: 3, evaluations: 40 }}
    RETRIES 60
    NEXT {{ metric_improved -> tune, success -> tune, fail -> tune, plateau -> done }}
  }}
  TASK done {{ step show: tool.list_files {{ path: "." }} }}
}}
"""


def base() -> str:
    return BASE.format(
        space=" ".join(f"{name}: {json.dumps(list(values))}" for name, values in SPACE.items())
    )


def of_split(split: str) -> tuple[str, ...]:
    """The kernels of a split: by name, one to each split in turn."""
    return tuple(kernels()[SPLITS.index(split) :: len(SPLITS)])


@cache
def _program(text: str) -> Any:
    return compile_program(parse(text), config.catalog(), {})


def searched(text: str, values: Mapping[str, int | None], seed: int) -> tuple[list[Record], int]:
    """A run of a tuner spec for one kernel, and the time of the best build that it found."""
    program = _program(text)
    history = History(rules={name: task.rule for name, task in program.tasks.items() if task.rule})
    tried: list[str] = []
    worst = max(value for value in values.values() if value is not None)
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
            if now is None:
                return Kind.ACT, _wrong(count), {"ms": 1}
            pairs = [{"candidate": [now], "incumbent": [best[0]]}] * 8
            best[0] = min(best[0], now) if _wins(now, best[0]) else best[0]
            return Kind.ACT, _measurement(now, pairs), {"ms": max(now // 1_000_000, 1)}
        more = {"r3": canon.content_hash([count])} if effect.cls == "effect" else {}
        return exited(0, f"n{count}", **more)

    return ledger(text, script, seed, heard=history.feed), best[0]  # type: ignore[arg-type]


def _wins(now: int, before: int) -> bool:
    return 100 * now < 99 * before


def _measurement(now: int, pairs: list[Any]) -> dict[str, Any]:
    from spak.kernel.metric.decision import DEFAULTS, decide

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


def _wrong(count: int) -> dict[str, Any]:
    return {
        "outcome": "exited", "status": "checked", "key": canon.content_hash(["wrong", count]),
        "checks": [{"name": "correct", "ok": False, "code": "cpu.tolerance"}],
    }  # fmt: skip


def right(best: int, values: Mapping[str, int | None]) -> bool:
    """Whether a search found a build that is nearly the best of the space."""
    return best <= NEAR * min(value for value in values.values() if value is not None)


def evolved(text: str, table: Table, seed: int) -> list[Candidate]:
    """Candidates by evolution on the training kernels; its cost of a run is the builds that were measured."""

    def run(case: str, new: str, k: int) -> Scored:
        made, best = searched(new, table[case], Random(f"train/{seed}/{case}/{k}").randrange(1 << 30))
        tried = sum(record.kind == Kind.PLAN for record in made)
        return Scored(right(best, table[case]), float(tried), read(made, f"{case}-{k}"))

    return evolve(text, list(of_split("train")), run, config.catalog(), Random(seed), TRAINING)


def found_by_rules(text: str, table: Table, seed: int) -> list[Candidate]:
    """Candidates of the default proposer, from runs of the spec for the training kernels."""
    runs, train = [], of_split("train")
    for number in range(TRAINING):
        case = train[number % len(train)]
        made, _ = searched(text, table[case], Random(f"train/{seed}/{case}/{number}").randrange(1 << 30))
        runs.append((f"{case}-{number}", made))
    return from_findings(Training.of(runs, {}), text)


PROPOSE = {"rules": found_by_rules, "evolution": evolved}


def improve(table: Table, seed: int = 1, proposer: str = "evolution") -> tuple[str, list[tuple[str, str]]]:
    """The spec after the campaigns, and each verdict; whatever is fit is merged in place of a review."""
    text, told = base(), []
    cases = of_split("gate")
    with tempfile.TemporaryDirectory(prefix="spak-tuner-") as folder:
        for number in range(ROUNDS):
            made = PROPOSE[proposer](text, table, seed + number)
            plan = Plan(
                "poor", text, "kernels", f"kernels-{number}", (), cases, candidates=CANDIDATES, pairs=PAIRS
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
    """By kernel: how many of so many runs were right, and how many builds a run measured."""
    found = {}
    for case in of_split(split):
        values = table[case]
        made = [searched(text, values, Random(f"{split}/{case}/{k}").randrange(1 << 30)) for k in range(runs)]
        tried = sum(record.kind == Kind.PLAN for records, _ in made for record in records)
        found[case] = sum(right(best, values) for _, best in made), tried / runs
    return found


def main(where: Path | None, proposers: Sequence[str]) -> None:
    if where is not None and where.is_file():
        table = json.loads(where.read_text(encoding="utf-8"))
    else:
        table = measured()
        spent = time.process_time() + sum(os.times()[2:4])
        print(f"{sum(len(found) for found in table.values())} builds measured, {spent:.0f} s of CPU")
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
        f"{case}: {count} of {LAST}, {tried:.1f} builds" for case, (count, tried) in found.items()
    )
    print(f"sealed, {name}: {passed / LAST / len(found):.3f} [{low:.3f}, {high:.3f}] ({each})", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]) if given else None, given[1:] or tuple(PROPOSE))
