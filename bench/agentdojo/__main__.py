"""`python -m bench.agentdojo [SUITE...] [--json]`: the whole frontier, by suite and in all.

Prints one row per suite and gate: strict utility of all user tasks, of the held-out (odd) ones alone, and
attacks that succeeded, with the attacker's calls after the user's (late), as soon as they were shown (early),
and either way. Needs the development dependency `agentdojo`; takes about two minutes of CPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from bench.agentdojo import SUITES
from bench.agentdojo.replay import Replay, Score, asking, baselines, ours

LEVELS = ("strict", "open")
ASKS = ("typed", "worded", "pointed")


def held_out(task: str) -> bool:
    """The policies were developed on the even user tasks; the odd ones were first run when they were done."""
    return int(task.rsplit("_", 1)[-1]) % 2 == 1


def frontier(suites: tuple[str, ...] = SUITES) -> list[dict[str, Any]]:
    """One row per suite and gate, the totals last."""
    rows: list[dict[str, Any]] = []
    for suite in suites:
        replay = Replay(suite)
        gates = [*baselines(suite), *(ours(suite, level) for level in LEVELS)]
        gates += [asking(suite, how) for how in ASKS]
        print(f"agentdojo: {suite} ...", file=sys.stderr, flush=True)
        scores = replay.score(gates, lambda _: True)
        rows += [row(suite, name, score, replay.suite.user_tasks) for name, score in scores.items()]
    names = list(dict.fromkeys(each["gate"] for each in rows))
    return rows + [_sum(name, [each for each in rows if each["gate"] == name]) for name in names]


def row(suite: str, gate: str, score: Score, tasks: Any) -> dict[str, Any]:
    return {
        "suite": suite,
        "gate": gate,
        "tasks": score.tasks,
        "strict": len(score.strict),
        "held_out_tasks": sum(held_out(name) for name in tasks),
        "held_out": sum(held_out(name) for name in score.strict),
        "unasked": score.unasked,
        "questions": score.questions,
        "pairs": score.pairs,
        "late": len(score.late),
        "early": len(score.early),
        "either": len(score.either),
        "held_out_either": sum(held_out(user) for user, _ in score.either),
    }


def _sum(gate: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    counts = [name for name in rows[0] if name not in ("suite", "gate")]
    return {"suite": "all", "gate": gate, **{name: sum(each[name] for each in rows) for name in counts}}


def share(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m bench.agentdojo")
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}")
    given = arguments.parse_args()
    unknown = sorted(set(given.suites) - set(SUITES))
    if unknown:
        print(f"agentdojo: no suite {unknown[0]}; there are: {', '.join(SUITES)}", file=sys.stderr)
        return 2
    rows = frontier(tuple(given.suites) or SUITES)
    if given.json:
        print(json.dumps(rows, indent=2))
        return 0
    head = (
        f"{'suite':10} {'gate':31} {'strict utility':>16} {'held out':>9} {'unasked':>8} {'questions':>9}"
        f" {'late':>9} {'early':>6} {'ASR':>7}"
    )
    print(head)
    for each in rows:
        useful = f"{each['strict']}/{each['tasks']} {share(each['strict'], each['tasks']):5.1f} %"
        print(
            f"{each['suite']:10} {each['gate']:31} {useful:>16}"
            f" {each['held_out']:>4}/{each['held_out_tasks']:<4} {each['unasked']:>8} {each['questions']:>9}"
            f" {each['late']:>4}/{each['pairs']:<4} {each['early']:>6}"
            f" {share(each['either'], each['pairs']):5.1f} %"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
