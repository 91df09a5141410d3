"""Findings against planted faults, beside healthy runs that look alike; and what each finding names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from bench.planted import FAULTS, HEALTHY, Prompts, Runs, healthy, planted, work
from bench.scripted import checked, exited, ledger, planned, root
from spak import config
from spak.errors import OuterError
from spak.evolve.analyze import CODES, Analysis, analyze, prompts_of, read, transitions
from spak.kernel.state import Effect
from spak.lang import check, parse
from spak.lang.diagnostics import Severity
from spak.lang.edit import apply_all

SEEDS = (11, 12)


def found(made: tuple[Runs, Prompts]) -> Analysis:
    runs, prompts = made
    return analyze([read(run, f"r{number}") for number, run in enumerate(runs)], prompts.get)


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_planted_fault_is_found_and_nothing_else(kind: str, seed: int) -> None:
    assert {item.code for item in found(planted(kind, seed)).findings} == {kind}


@pytest.mark.parametrize("kind", HEALTHY)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_found_in_a_healthy_run(kind: str, seed: int) -> None:
    assert found(healthy(kind, seed)).findings == ()


@pytest.mark.parametrize("kind", FAULTS)
def test_a_finding_names_records_of_its_run_and_an_edit_that_can_be_made(kind: str) -> None:
    made = planted(kind, 3)
    texts = {f"r{number}": run[0].body["rules"]["spec"] for number, run in enumerate(made[0])}
    counts = {f"r{number}": len(run) for number, run in enumerate(made[0])}
    for item in found(made).findings:
        assert item.records
        assert all(0 <= number < counts[item.run] for number in item.records)
        assert item.to_json()["edit"] is None or item.edit
        if item.edit:
            text = apply_all(texts[item.run], item.edit).text
            assert text != texts[item.run]
            assert not [bad for bad in check(parse(text), config.catalog()) if bad.severity == Severity.ERROR]
    edits: Mapping[str, bool] = {item.code: bool(item.edit) for item in found(made).findings}
    without = {"tool_failure", "rejected_answers", "flaky_validator", "budget_burn"}
    assert edits == {kind: kind not in without}


def test_an_action_that_is_denied_again_is_found() -> None:
    asked = {"n": 0}

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            asked["n"] += 1
            path = ".git/hooks/pre-commit" if asked["n"] < 3 else "a.txt"
            return planned(("write_file", {"path": path, "content": "x"}))
        return checked(True) if effect.act == "validate" else exited(0, "w", r3=root(count))

    records = ledger(work(), script)
    denied = [item.seq for item in records if item.kind == "permit" and item.body["allow"] is False]
    assert len(denied) == 2
    made = analyze([read(records, "r")]).findings
    assert [(item.code, list(item.records)) for item in made] == [("denied", denied)]


def test_an_empty_trace_is_an_error() -> None:
    with pytest.raises(OuterError) as caught:
        read([])
    assert caught.value.code == "outer.empty"
    with pytest.raises(OuterError):
        read(planted("loop", 1)[0][0][:1])


def test_transitions_are_declared_and_observed() -> None:
    runs, _ = planted("dead_edge", 1)
    rows = {(row["task"], row["trigger"]): row for row in transitions([read(run) for run in runs])}
    assert rows["write", "fail"]["taken"] == 21
    assert rows["write", "success"]["taken"] == 7
    assert rows["write", "timeout"] == {
        "task": "write", "trigger": "timeout", "to": "hand_over", "taken": 0, "visits": 28, "declared": True,
    }  # fmt: skip


def test_prompts_are_made_again_by_replay() -> None:
    runs, prompts = planted("resent_tokens", 1)
    again = prompts_of(runs[0])
    assert {name: [dict(item) for item in items] for name, items in again.items()} == {
        name: [dict(item) for item in items] for name, items in prompts.items()
    }


def test_every_code_is_documented() -> None:
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs/outer-loop.md").read_text()
    assert [code for code in CODES if f"| `{code}` |" not in page] == []
