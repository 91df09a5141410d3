"""The report of a run that ended without success: words from templates, evidence by hash."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from spak import data
from spak.kernel.replay import replay
from spak.ledger.chain import is_record_line
from spak.records import Record, decode
from spak.runner.views import causes, refusals

GOLDEN = Path(__file__).parents[1] / "golden" / "kernel-1"
LEDGERS = sorted(GOLDEN.glob("*.jsonl"))


def read(path: Path) -> list[Record]:
    return [decode(line) for line in path.read_bytes().splitlines(keepends=True) if is_record_line(line)]


def report(found: list[Record]) -> dict[str, Any] | None:
    cause = causes.sentence(found)
    state = replay(found).state
    return refusals.refusal(state, cause, refusals.evidence(found, cause))


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: path.stem)
def test_every_bad_end_has_codes_a_sentence_and_records_by_hash(path: Path) -> None:
    found = read(path)
    said = report(found)
    state = replay(found).state
    if not state.ended or state.status == "succeeded":
        assert said is None
        return
    assert said is not None
    assert said["codes"] and said["sentence"].split("; ") == [refusals.words(code) for code in said["codes"]]
    assert said["knob"] == found[-1].body.get("knob", "")
    hashes = {record.seq: (record.kind, record.hash) for record in found}
    assert said["records"][-1]["kind"] == "end"
    for record in said["records"]:
        assert hashes[record["seq"]] == (record["kind"], record["hash"]) and len(record["hash"]) == 43
    assert {record["seq"] for record in said["records"]} >= set(causes.numbers(said["cause"]))
    decided = {record.content for record in found if record.seq in {r["seq"] for r in said["records"]}}
    assert set(said["evidence"]) <= decided


def test_a_loop_names_every_result_that_repeats() -> None:
    found = read(GOLDEN / "watchdog.jsonl")
    said = report(found)
    assert said is not None and said["codes"] == ["run.watchdog_loop"] and said["knob"] == ""
    acts = [record.hash for record in found if record.kind == "act"][-3:]
    assert set(acts) <= {record["hash"] for record in said["records"]}


def test_a_used_up_budget_names_its_knob_and_the_last_decision() -> None:
    said = report(read(GOLDEN / "budget.jsonl"))
    assert said is not None
    assert (said["codes"], said["sentence"]) == (["budget.steps"], "its step limit is reached")
    assert re.fullmatch(r"BUDGET \{ steps: \d+ \}", said["knob"])
    assert [record["kind"] for record in said["records"]][-2:] == ["route", "end"]


def test_every_code_that_ends_a_run_has_a_phrase() -> None:
    text = data.path("docs/errors.md").read_text(encoding="utf-8")
    section = text[text.index("## Runs") : text.index("## Policies")]
    codes = re.findall(r"^- `([a-z]+\.\w+)`", section, re.MULTILINE)
    assert len(codes) > 25 and [code for code in codes if not refusals.words(code)] == []


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        ("look failed: record 7", [7]),
        ("look gave the same result 3 times: records 12, 19, 26", [12, 19, 26]),
        ("the same steps: records 3-5, 7-9", [3, 4, 5, 7, 8, 9]),
        ("it failed 40 times: records 10 to 13", [10, 11, 12, 13]),
        ("5 of 9 records do not hold", []),
        ("", []),
    ],
)
def test_the_numbers_of_a_sentence(sentence: str, numbers: list[int]) -> None:
    assert causes.numbers(sentence) == numbers
