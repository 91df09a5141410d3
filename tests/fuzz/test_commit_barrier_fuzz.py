"""2,000 random sequences of write, check, add and commit by every door: no commit of files nobody checked.

`make fuzz` runs it; `make test` has a sample (tests/runner/test_commit_barrier.py). They run without a
sandbox: the law and the run's own repository alone decide what is in a commit.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest

from barrier_kit import ACTIONS, WALK, opened

SEQUENCES = 2_000
PARTS = 20


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_sequence_commits_what_was_not_checked(part: int) -> None:
    draw = random.Random(f"barrier {part}")
    made = 0
    for _ in range(SEQUENCES // PARTS):
        with tempfile.TemporaryDirectory() as folder:
            barrier = opened(Path(folder) / "run")
            names = []
            for _ in range(draw.randint(6, 16)):
                names.append(draw.choice(draw.choices(WALK, (1, 4, 1))[0]))
                barrier.do(ACTIONS[names[-1]])
                assert barrier.unchecked() == [], list(zip(names, barrier.codes, strict=True))
            made += len(barrier.commits())
    assert made, "commits are made at all"
