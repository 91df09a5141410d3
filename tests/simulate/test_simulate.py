"""The simulator: seeds hold, a seed repeats, and a planted bug is found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 4
MUTANTS = ("a lease is taken without a new fence", "the lock of the sweep is kept")


def simulate(*words: str) -> subprocess.CompletedProcess[str]:
    """What `python -m simulate` says and gives."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPAK_", "DJANGO_"))}
    paths = os.pathsep.join(str(ROOT / name) for name in (".", "agents", "platform"))
    return subprocess.run(
        [sys.executable, "-m", "simulate", *words],
        cwd=ROOT, env={**kept, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_seeds_hold_and_say_what_they_came_through() -> None:
    done = simulate("--seeds", str(SEEDS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SEEDS} seeds without a violation" in done.stdout
    least = re.search(r"at least (\d+) runs, (\d+) workers and (\d+) faults", done.stdout)
    assert least is not None and tuple(map(int, least.groups())) >= (3, 2, 20), done.stdout
    reached = re.findall(r"branches of (\w+) +(\d+) of (\d+)", done.stdout)
    assert [name for name, *_ in reached] == ["leases", "sweep", "writer"]
    assert all(int(seen) > int(of) / 3 for _, seen, of in reached), done.stdout


@pytest.mark.parametrize("seed", [3])
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    done = simulate("--seed", str(seed))
    assert done.returncode == 0, done.stdout + done.stderr
    ((first, again),) = re.findall(r"trace (\w+), again (\w+)", done.stdout)
    assert first == again


def test_planted_bugs_are_found_and_name_their_seeds() -> None:
    done = simulate("--seeds", "8", "--mutants", *MUTANTS)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^(.+?) +found by seed \d+: ", done.stdout, re.MULTILINE)
    assert found == list(MUTANTS)
