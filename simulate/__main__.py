"""`python -m simulate`: seeds one after the other, what they found, and planted bugs.

    --seeds N       seeds 1 to N (1000), from --first on
    --seed N        one seed, with its faults; twice, and the traces must be the same
    --mutants       plant each bug of the list, or those named, and look for the seed that finds it
    --processes N   so many at a time (2)

Ends with 1 when an invariant was violated: the seed is printed, is done again, and shrunk to fewer faults.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence

SHOWN = 100


def main() -> int:
    """What `make simulate` calls."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a seed
        os.execve(
            sys.executable, [sys.executable, "-m", "simulate", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )  # fmt: skip
    parser = argparse.ArgumentParser(prog="simulate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--mutants", nargs="*", metavar="NAME")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    from simulate.lanes import Lanes

    with Lanes(asked.processes) as lanes:
        if asked.mutants is not None:
            return _mutants(lanes, asked.seeds, asked.mutants)
        if asked.seed is not None:
            return _one(lanes, asked.seed)
        return _many(lanes, asked.first, asked.seeds)


def _one(lanes: object, seed: int) -> int:
    from simulate.faults import drawn
    from simulate.lanes import Job, Lanes

    assert isinstance(lanes, Lanes)
    for fault in drawn(seed):
        print(f"  {fault.at:6} {fault.kind:11} {fault.seconds or ''}")
    first, again = lanes.one(Job(seed)), lanes.one(Job(seed))
    print(f"seed {seed}: trace {first.trace}, again {again.trace}; {first.points} points, "
          f"{first.virtual_s:.0f} virtual seconds, {first.records} records")  # fmt: skip
    if first.trace != again.trace:
        print("the same seed gave two traces")
        return 1
    if first.violation:
        return _violated(lanes, seed, first.violation)
    print("no violation")
    return 0


def _violated(lanes: object, seed: int, violation: str) -> int:
    from simulate.lanes import Lanes
    from simulate.shrink import shrunk

    assert isinstance(lanes, Lanes)
    print(f"VIOLATION in seed {seed}: {violation}")
    small = shrunk(lanes, seed)
    print(f"seed {seed} needs {len(small.plan)} of its faults: {small.violation}")
    for fault in small.plan:
        print(f"  {fault.at:6} {fault.kind:11} {fault.seconds or ''}")
    print(f'again: make simulate ARGS="--seed {seed}"')
    return 1


def _many(lanes: object, first: int, many: int) -> int:
    from simulate import reached
    from simulate.lanes import Job, Lanes

    assert isinstance(lanes, Lanes)
    began = time.monotonic()
    faults: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    lines: set[tuple[str, int, int]] = set()
    records = takeovers = done = runs = 0
    alone_s = 0.0
    least = {"faults": 10**9, "runs": 10**9, "workers": 10**9}
    jobs = (Job(seed, traced=seed < first + reached.SEEDS) for seed in range(first, first + many))
    results = lanes.found(jobs)
    for job, found in results:
        done += 1
        if found.violation:
            results.close()  # shrinking waits for processes too, and must not meet the other seeds'
            return _violated(lanes, job.seed, found.violation)
        faults += found.faults
        errors += found.errors
        lines |= found.arcs
        records, takeovers, runs = records + found.records, takeovers + found.takeovers, runs + found.runs
        alone_s = max(alone_s, found.alone_s)
        sizes = {"faults": found.faults.total(), "runs": found.runs, "workers": found.workers}
        least = {name: min(size, least[name]) for name, size in sizes.items()}
        if done % SHOWN == 0:
            print(f"  {done} seeds, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{done} seeds without a violation in {time.monotonic() - began:.0f} s")
    print(f"  runs                  {runs:,}, records {records:,}; at least {least['runs']} runs, "
          f"{least['workers']} workers and {least['faults']} faults in each seed")  # fmt: skip
    print(f"  faults                {faults.total():,}: "
          + ", ".join(f"{kind} {count:,}" for kind, count in faults.most_common()))  # fmt: skip
    print(f"  pauses with takeover  {takeovers:,}")
    print(f"  without a holder      {alone_s:.0f} s at most, of a run that read running")
    for name, (seen, all_of) in reached.counted(lines).items():
        print(f"  branches of {name:9} {seen} of {all_of}")
    for error, count in errors.most_common(8):
        print(f"  workers logged        {count:,} x {error}")
    return 0


def _mutants(lanes: object, seeds: int, names: Sequence[str]) -> int:
    from simulate import mutants
    from simulate.lanes import Job, Lanes

    assert isinstance(lanes, Lanes)
    missed, tried = [], names or list(mutants.MUTANTS)
    for name in tried:
        for job, found in lanes.found(Job(seed, mutant=name) for seed in range(1, seeds + 1)):
            if found.violation:
                print(f"{name:32} found by seed {job.seed}: {found.violation[:150]}", flush=True)
                break
        else:
            missed.append(name)
            print(f"{name:32} NOT FOUND in {seeds} seeds", flush=True)
    print(f"{len(tried) - len(missed)} of {len(tried)} planted bugs found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
