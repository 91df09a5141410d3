"""A problem that ships, tuned by the example, with a short loop; no test rests on how fast the result is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli_kit import EXAMPLES, run_dir, spak
from spak import data
from spak.ledger.files import FileLedgers
from spak.validators.problems import shipped

PROBLEMS = data.path("specs/problems")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("gemm_tuner/naive.c", "gemm.c"),
        ("gemm_tuner/template.c", "gemm_template.c"),
        ("attention_tuner/naive.c", "attention.c"),
    ],
)
def test_the_examples_begin_with_the_kernels_of_the_problems(theirs: str, ours: str) -> None:
    assert (EXAMPLES / theirs).read_bytes() == (PROBLEMS / ours).read_bytes()


@pytest.mark.sandbox
def test_it_runs_to_its_end_and_replays(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "gemm_tuner", tmp_path / "gemm_tuner")
    text = (EXAMPLES / "gemm_tuner.spak").read_text(encoding="utf-8")
    short = text.replace("evaluations: 24", "evaluations: 4")
    assert short != text
    (tmp_path / "gemm_tuner.spak").write_text(short, encoding="utf-8")
    code, seen = spak(tmp_path, "run", "gemm_tuner.spak", "--seed", "3", "--json")
    assert (code, seen["state"], seen["task"]) == (0, "succeeded", "finalize"), seen["refusal"]
    assert seen["metrics"]["baseline_ms"] > 0 and seen["metrics"]["best_ms"] > 0
    folder = run_dir(tmp_path, seen)
    genesis = FileLedgers(folder.parent).genesis(seen["run"])
    assert genesis.body["rules"]["problems"] == {"gemm": shipped()["gemm"]}
    code, replayed = spak(tmp_path, "replay", "latest", "--json")
    assert (code, replayed["equal"]) == (0, True)
