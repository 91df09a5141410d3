"""Golden ledgers: runs of each kernel that this one replays lead to the summary of then.

A failure says that the same proposals under the same rules now lead to other decisions. If that is meant,
raise SEMANTICS (VERSIONING.md) and run make.py; if not, it is a bug, whatever the other tests say.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spak.kernel.replay import replay
from spak.ledger.chain import is_record_line
from spak.ledger.verify import verify
from spak.program.semantics import SEMANTICS
from spak.records import decode

HERE = Path(__file__).resolve().parent
LEDGERS = sorted(HERE.glob("kernel-*/*.jsonl"))


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_golden_ledger_replays_to_its_summary(path: Path) -> None:
    expected = json.loads((path.parent / "expected.json").read_text(encoding="utf-8"))[path.stem]
    lines = path.read_bytes().splitlines(keepends=True)
    found = replay(decode(line) for line in lines if is_record_line(line))
    assert found.difference is None
    assert {
        "records": found.records,
        "state": found.state.status,
        "codes": list(found.state.r7.codes),
        "summary": found.state.summary,
    } == expected


def test_this_version_has_its_golden_ledgers_and_they_end_in_every_way() -> None:
    own = HERE / f"kernel-{SEMANTICS}"
    expected = json.loads((own / "expected.json").read_text(encoding="utf-8"))
    assert set(expected) == {path.stem for path in own.glob("*.jsonl")}
    assert {entry["state"] for entry in expected.values()} == {"succeeded", "failed", "refused"}


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_golden_ledger_is_whole(path: Path) -> None:
    report = verify(iter(path.read_bytes().splitlines(keepends=True)), exported=True)
    assert report.ok, report.problems
