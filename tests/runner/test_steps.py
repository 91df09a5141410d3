"""A run as tuples of its steps: whole, in order, the same each time, and rewarded by the rule of the docs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from host_kit import start
from spak import canon
from spak.ledger.chain import is_record_line
from spak.records import Record, decode
from spak.runner.views.steps import steps

GOLDEN = Path(__file__).parents[1] / "golden"
LEDGERS = sorted(GOLDEN.glob("kernel-*/*.jsonl"))
MEMBERS = {"state", "context", "response", "items", "output", "signal", "reward", "next_state"}
LETTERS = {"ask": "a", "plan": "a", "tool": "t", "validate": "v", "check": "v", "sealed": "v"}


class Held:
    """The blobs of an exported file."""

    def get(self, digest: str) -> bytes:
        return b"a long text"


def records(path: Path) -> list[Record]:
    return [decode(line) for line in path.read_bytes().splitlines(keepends=True) if is_record_line(line)]


def of(path: Path) -> list[dict[str, Any]]:
    return list(steps(records(path), Held()))  # type: ignore[arg-type]


def expected(found: Iterable[Record]) -> list[str]:
    """The letters of each step, from the permits of effects that came back (docs/registers.md)."""
    came = {record.attempt for record in found if record.kind in ("act", "plan")}
    done = [
        (record.task, LETTERS[str(record.body["act"])])
        for record in found
        if record.kind == "permit" and record.attempt in came and record.body.get("act") in LETTERS
    ]
    letters = ["".join(letter for _, letter in same) for _, same in groupby(done, key=lambda pair: pair[0])]
    return [step for part in letters for step in re.findall(r"(?:at?v?|tv?|v)", part)]


def drop_denied(found: list[Record]) -> list[Record]:
    return [r for r in found if not (r.kind == "permit" and r.body.get("allow") is False)]


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: path.stem)
def test_each_effect_is_in_one_step_and_the_states_join(path: Path) -> None:
    found, lines = drop_denied(records(path)), of(path)
    shapes = expected(found)
    assert len(lines) == len(shapes)
    for line, shape in zip(lines, shapes, strict=True):
        assert set(line) == MEMBERS
        assert (line["output"] is not None) == ("t" in shape)
        assert (line["context"] is not None) <= ("a" in shape)
        assert (line["response"] is not None) <= ("a" in shape)
        assert -1 <= line["reward"] <= 1 and line["state"]["seq"] < line["next_state"]["seq"]
        assert set(line["state"]) == {"seq", "status", *(f"R{number}" for number in range(8))}
    assert all(before["next_state"] == after["state"] for before, after in pairwise(lines))
    last = next(record for record in reversed(found) if record.authority == "commit")
    assert lines[-1]["next_state"]["seq"] == last.seq
    assert lines[-1]["next_state"]["status"] == last.body["state"], "the end belongs to the last step"


def test_the_golden_runs_have_every_shape_of_a_step() -> None:
    shapes = {shape for path in LEDGERS for shape in expected(drop_denied(records(path)))}
    assert {"a", "at", "atv", "t", "tv"} <= shapes


@pytest.mark.parametrize("path", LEDGERS, ids=lambda path: path.stem)
def test_two_exports_are_the_same_bytes(path: Path) -> None:
    assert [canon.dumps(line) for line in of(path)] == [canon.dumps(line) for line in of(path)]


def test_the_reward_of_a_measurement_is_its_gain() -> None:
    path = GOLDEN / "kernel-1/tuning.jsonl"
    measured = [(line["signal"], line["reward"]) for line in of(path)]
    times = [r.body["metrics"]["time_ns"] for r in records(path) if "metrics" in r.body]
    best, gains = times[0], []
    for route in (r for r in records(path) if r.kind == "route" and "best" in r.body):
        gains.append((best - route.body["best"]) / best)
        best = route.body["best"]
    assert [reward for signal, reward in measured if signal == "metric_improved"] == gains
    assert gains and 0 < gains[0] < 1
    assert ("fail", -1) in measured and ("plateau", 0) in measured


def test_what_was_not_taken_costs_and_a_verdict_earns() -> None:
    rolled_back = of(GOLDEN / "kernel-1/undone.jsonl")
    assert {line["reward"] for line in rolled_back} == {-1}
    refused = [line for line in of(GOLDEN / "kernel-1/found.jsonl") if line["output"] is None]
    assert [(line["signal"], line["reward"]) for line in refused] == [("fail", -1), ("success", 0)]
    assert refused[0]["next_state"]["R4"]["code"] == "policy.not_in_tools"
    assert [line["reward"] for line in of(GOLDEN / "kernel-1/hello.jsonl")] == [0, 1]
    polled = [line["reward"] for line in of(GOLDEN / "kernel-1/polled.jsonl")]
    assert polled == [0, 0, -1, 0, -1], "only the last poll has failed"


SPEC = """
task Asks {
  step a: tool.look { text: "seen" output_var: seen }
  step q: llm.query { role: "coder" prompt: "Mend {{seen}}?" output_var: text }
  step w: tool.write { path: "a.txt" text: text }
}
"""


def test_a_question_that_waits_is_in_no_step_until_it_is_answered(tmp_path: Path) -> None:
    run = start(tmp_path, SPEC)
    run.advance("full_auto")
    now = lambda: list(steps((record for record, _ in run.ledger.read()), run.ledger.blobs))  # noqa: E731
    assert [(line["response"], line["output"]) for line in now()] == [(None, "seen")]
    run.answer("Yes.")
    run.advance("full_auto")
    look, asked = now()
    assert look["next_state"] == asked["state"] and asked["state"]["R6"]["act"] == "ask"
    assert asked["context"][-1]["text"].count("Mend seen?") == 1
    assert (asked["response"], asked["output"], asked["signal"]) == ("Yes.", "written", "success")
    assert [item["type"] for item in asked["items"]] == ["message", "function_call", "function_call_output"]
    assert asked["next_state"]["status"] == "succeeded"
    run.close()
