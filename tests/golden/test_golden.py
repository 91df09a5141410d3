"""Golden ledgers: runs of each semantics version that this kernel knows replay to the summary of then.

A failure says that the same proposals under the same rules now lead to other decisions. If that is meant,
raise SEMANTICS (VERSIONING.md) and run make.py; if not, it is a bug, whatever the other tests say.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from spak.errors import UserError
from spak.kernel import rules
from spak.kernel.replay import replay
from spak.ledger.chain import is_record_line
from spak.ledger.verify import verify
from spak.program.semantics import BY_VERSION, SEMANTICS, Decisions
from spak.records import decode

HERE = Path(__file__).resolve().parent
LEDGERS = sorted(HERE.glob("semantics-*/*.jsonl"))


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
    own = HERE / f"semantics-{SEMANTICS}"
    expected = json.loads((own / "expected.json").read_text(encoding="utf-8"))
    assert set(expected) == {path.stem for path in own.glob("*.jsonl")}
    assert {entry["state"] for entry in expected.values()} == {"succeeded", "failed", "refused"}


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_golden_ledger_is_whole(path: Path) -> None:
    report = verify(iter(path.read_bytes().splitlines(keepends=True)), exported=True)
    assert report.ok, report.problems


@pytest.mark.parametrize("flag", [field.name for field in fields(Decisions)])
def test_each_flag_decides_in_a_golden_ledger(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = rules._compiled.__wrapped__  # type: ignore[attr-defined]  # what is kept has the flag as it is
    monkeypatch.setattr(rules, "_compiled", compiled)
    assert any(_differs(path, flag, monkeypatch) for path in _by_size(flag)), flag


def _by_size(flag: str) -> list[Path]:
    """The ledgers, those of the versions on whose border the flag is first, then the short ones."""
    first = min(number for number, decides in BY_VERSION.items() if getattr(decides, flag))
    near = {f"semantics-{first}", f"semantics-{first - 1}"}
    return sorted(LEDGERS, key=lambda path: (path.parent.name not in near, path.stat().st_size))


def _differs(path: Path, flag: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a run's decisions, or that it can be read at all, depend on a flag of its version."""
    number = int(path.parent.name.removeprefix("semantics-"))
    known = BY_VERSION[number]
    other = replace(known, **{flag: not getattr(known, flag)})
    monkeypatch.setattr(rules, "BY_VERSION", {**BY_VERSION, number: other})
    lines = path.read_bytes().splitlines(keepends=True)
    try:
        return replay(decode(line) for line in lines if is_record_line(line)).difference is not None
    except UserError:
        return True
