"""Marked blocks of a C kernel evolved by a recording: what fails and why, never how fast it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_kit import EXAMPLES, run_dir, spak
from spak.ledger.files import FileLedgers
from spak.patch import blocks
from spak.records import Kind
from spak.runner.blobs import expand

NAME = "evolve_softmax"


@pytest.mark.sandbox
def test_a_kernel_evolves_and_gcc_is_heard(tmp_path: Path) -> None:
    recording = EXAMPLES / "answers" / f"{NAME}.jsonl"
    arguments = ("run", str(EXAMPLES / f"{NAME}.spak"), "--from", str(recording), "--seed", "3", "--json")
    code, seen = spak(tmp_path, *arguments)
    assert (code, seen["state"], seen["metrics"]["evaluations"]) == (0, "succeeded", 4), seen
    folder = run_dir(tmp_path, seen)
    reader = FileLedgers(folder.parent).reader(seen["run"])
    try:
        plans = [record for record, _ in reader.read() if record.kind == Kind.PLAN]
        asked = [str(expand(record.body["asked"], reader.blobs)) for record in plans]
        answers = [str(expand(record.body["answer"], reader.blobs)) for record in plans]
    finally:
        reader.close()
    given = [json.loads(line)["text"] for line in recording.read_text(encoding="utf-8").splitlines()]
    assert answers == given and len(asked) == 4
    assert "Earlier tries" not in asked[0] and '"failed":"non_finite"' in asked[1]
    assert "Subtract the row's maximum" in asked[1]
    assert '"failed":"tool.exit"' in asked[2] and "expected" in asked[2], "the compiler's message"
    naive = blocks.read((EXAMPLES / NAME / "naive.c").read_text(encoding="utf-8"))
    kept = blocks.read((folder / "workspace/best.c").read_text(encoding="utf-8"))
    assert kept.around == naive.around and list(kept.blocks) == ["helpers", "row"]
    code, replayed = spak(tmp_path, "replay", "latest", "--json")
    assert (code, replayed["equal"]) == (0, True)
