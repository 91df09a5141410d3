"""An honest job for the outer loop: heuristics of which some help a faulty model and others do not.

The model is a script: an attempt passes with chance GOOD where a heuristic that helps was injected for it,
else with chance BAD. Heuristics fire in their order, one after each fail, and a task has few tries, so that
useless ones before useful ones cost passes. The loop knows nothing of that: it sees ledgers, proposes edits
of findings, and its gate judges them on fresh pairs. Rates and texts were fixed before scoring.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from bench.planted import work
from bench.scripted import checked, exited, ledger, planned, root
from spak import config
from spak.evolve.analyze import read
from spak.evolve.campaigns import Campaign, Judging, Pair, Plan, advance
from spak.evolve.gate import Candidate, rehearse
from spak.evolve.propose import Scored, Training, evolve, from_findings
from spak.kernel.state import Effect
from spak.records import Record

USELESS = ("Stand on one leg.", "Believe in yourself.")
USEFUL = ("Read the first line that begins with E.", "Sort the intervals first.")
GOOD, BAD = 0.75, 0.0
FIRST = 0.1
"""The chance that the first attempt, before any heuristic, passes."""
TRIES = 3
PAST, CASES, PAIRS, EVOLVE = 30, 12, 120, 150
MARGIN = "1/10"
"""Of campaigns with one: a candidate that only removes has to be no worse by ten points."""


def base() -> str:
    listed = " ".join(f'HEURISTIC "{text}"' for text in (*USELESS, *USEFUL))
    return work(TRIES, f"SYSTEM_MODEL M {{ {listed} }}")


def played(text: str, seed: int) -> list[Record]:
    """A run of a spec by the faulty model."""
    draw, state = Random(seed), {"n": 0, "passes": False}

    def script(effect: Effect, count: int) -> object:
        if effect.act == "plan":
            state["n"] += 1
            shown = " ".join(item["text"] for item in effect.items)
            helped = any(item in shown for item in USEFUL)
            chance = FIRST if state["n"] == 1 else GOOD if helped else BAD
            state["passes"] = draw.random() < chance
            return planned(("write_file", {"path": "a.txt", "content": f"draft {state['n']}"}))
        if effect.act == "validate":
            return checked(bool(state["passes"]))
        return exited(
            0, f"w{state['n']}", **({"r3": root(int(state["n"]))} if effect.cls == "effect" else {})
        )

    return ledger(text, script, seed % 3)  # type: ignore[arg-type]


def passes(run: list[Record]) -> bool:
    return run[-1].kind == "end" and run[-1].body["state"] == "succeeded"


def improve(
    rounds: int = 4, seed: int = 1, proposer: str = "rules", margin: str = "0"
) -> tuple[str, list[tuple[str, str]]]:
    """The spec after so many campaigns, each on what the one before gave, and every verdict with its reason.

    A person who merges each fit candidate stands in for review.
    """
    text, told = base(), []
    cases = tuple(f"c{number}" for number in range(CASES))
    with tempfile.TemporaryDirectory(prefix="spak-job-") as folder:
        for number in range(rounds):
            past = [(f"r{item}", played(text, 10_000 * number + item + seed)) for item in range(PAST)]
            if proposer == "evolution":
                candidates, _ = evolved(text, EVOLVE, seed + number)
            else:
                candidates = from_findings(Training.of(past, {}), text)
            plan = Plan("job.spak", text, "job", f"job-{number}", (), cases, pairs=PAIRS, margin=margin)
            found = Campaign.create(Path(folder), f"round-{number}", plan)

            def pair(case: str, k: int, new: str, old: str = text, number: int = number) -> Pair:
                drawn = Random(f"{seed}/{number}/{case}/{k}").randrange(1 << 30)
                before, after = passes(played(old, drawn)), passes(played(new, drawn))
                return Pair(case, k, after - before)

            rehearsed = [rehearse(name, run) for name, run in past[:5]]
            advance(
                found,
                Path(folder),
                lambda current, made=candidates: made,
                Judging(config.catalog(), rehearsed, pair),
            )  # type: ignore[misc]
            told += [(item.candidate.rationale, f"{item.verdict} ({item.why})") for item in found.tested]
            fit = next((item for item in found.tested if item.verdict == "fit"), None)
            if fit is None:
                break
            text = fit.candidate.text(text)
    return text, told


def evolved(text: str, budget: int, seed: int = 1) -> tuple[list[Candidate], int]:
    """Candidates by evolution on training cases, and the runs that it made."""
    spent = [0]

    def run(case: str, new: str, k: int) -> Scored:
        spent[0] += 1
        made = played(new, Random(f"{seed}/{case}/{k}").randrange(1 << 30))
        tokens = float(sum(record.side.get("tokens", 0) for record in made if record.side))
        return Scored(passes(made), tokens, read(made, f"{case}-{k}"))

    cases = [f"t{number}" for number in range(10)]
    return evolve(text, cases, run, config.catalog(), Random(seed), budget), spent[0]


def rate(text: str, runs: int = 200, seed: int = 77) -> float:
    """The share of fresh runs that pass: seeds that no campaign used."""
    return sum(passes(played(text, (1 << 31) + seed * runs + number)) for number in range(runs)) / runs


if __name__ == "__main__":  # python -m bench.heuristics_job [rules|evolution] [SEED]
    import sys

    how = sys.argv[1] if len(sys.argv) > 1 else "rules"
    drawn = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for chosen in ("0", MARGIN):
        found, verdicts = improve(proposer=how, margin=chosen, seed=drawn)
        print(f"margin {chosen}, seed {drawn}")
        for why, word in verdicts:
            print(f"  {word}: {why}")
        for item in (*USELESS, *USEFUL):
            print(f"  {'kept' if item in found else 'dropped'}: {item}")
        print(f"  pass rate on fresh runs: {rate(base()):.3f} before, {rate(found):.3f} after")
