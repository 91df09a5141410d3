"""A run in the shapes of others: events of seed 002, register snapshots of AEP, Open Responses items.

The rules of register traces are asked by an oracle that knows nothing of the kernel; it is run over every
golden ledger, and over traces that were made wrong on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from host_kit import start
from spak.ledger.chain import is_record_line
from spak.records import Record, decode
from spak.runner.views.aep import REGISTERS, public, snapshots
from spak.runner.views.events import events
from spak.runner.views.items import items

GOLDEN = Path(__file__).parents[1] / "golden"
LEDGERS = sorted(GOLDEN.glob("kernel-*/*.jsonl"))
EVENT = {"timestamp", "task", "step", "type", "prompt", "response", "status"}


def records(path: Path) -> Iterator[Record]:
    lines = path.read_bytes().splitlines(keepends=True)
    return (decode(line) for line in lines if is_record_line(line))


class Held:
    """The blobs of an exported file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, digest: str) -> bytes:
        return b"a long text"


def named(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


# ---- AEP


def broken(trace: list[dict[str, Any]]) -> list[str]:
    """What is wrong with a register trace, by rules of those who wrote no line of the kernel."""
    found: list[str] = []
    snapshot: dict[str, Any] = {}
    for number, line in enumerate(trace):
        pre, post, op, status = line["pre"], line["post"], line["op"], line["status"]
        if number and pre != trace[number - 1]["post"]:
            found.append(f"{number}: registers changed between two operations")
        if op not in ("BOOT", "LOAD", "VALIDATE", "EXEC", "COMMIT", "EXIT"):
            found.append(f"{number}: unknown operation")
        if post["R1"] < 0 or (op == "EXEC" and post["R1"] == 0 and status != "EXHAUSTED"):
            found.append(f"{number}: the counter is used up without a signal")
        if post["R7"] < pre["R7"]:
            found.append(f"{number}: R7 goes back")
        if op == "COMMIT" and not post["R7"] > pre["R7"]:
            found.append(f"{number}: R7 does not grow at a commit")
        if op not in ("BOOT", "COMMIT") and post["R7"] != pre["R7"]:
            found.append(f"{number}: R7 moves without a commit")
        if op != "BOOT" and post["R2"] != pre["R2"]:
            found.append(f"{number}: R2 is touched")
        if op == "LOAD":
            snapshot = json.loads(post["R3"])
            if {name: pre[name] for name in snapshot} != snapshot or "R3" in snapshot:
                found.append(f"{number}: the snapshot is not what was there before")
        if status in ("ROLLBACK", "FAULT") and op != "EXIT":
            if any(post[name] != snapshot[name] for name in ("R0", "R5", "R6")):
                found.append(f"{number}: not what the snapshot says after a rollback")
            if not json.loads(post["R4"] or "{}").get("error_code"):
                found.append(f"{number}: R4 has no code after a rollback")
    if not trace or trace[0]["op"] != "BOOT":
        found.append("no BOOT")
    return found


@pytest.mark.parametrize("path", LEDGERS, ids=named)
def test_register_traces_of_golden_ledgers_keep_the_rules(path: Path) -> None:
    trace = list(snapshots(records(path)))
    assert broken(trace) == []
    assert trace[-1]["op"] == "EXIT" and all(set(line["post"]) == set(REGISTERS) for line in trace)
    ends = [record for record in records(path) if record.kind == "end"]
    codes = ends[0].body.get("codes") or [""]
    assert trace[-1]["code"] == codes[0]
    if codes[0]:
        assert json.loads(trace[-1]["post"]["R4"])["error_code"] == public(codes[0])


def test_rollbacks_and_used_up_budgets_are_in_the_golden_traces() -> None:
    """The oracle has something to look at."""
    seen = {line["status"] for path in LEDGERS for line in snapshots(records(path))}
    assert seen == {"OK", "FAULT", "ROLLBACK", "EXHAUSTED"}


def _set(op: str, status: str, register: str, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    def change(trace: list[dict[str, Any]]) -> None:
        line = next(line for line in trace if (line["op"], line["status"]) == (op, status))
        line["post"] = {**line["post"], register: value}

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("EXEC", "OK", "R1", -1),
        _set("EXEC", "OK", "R1", 0),
        _set("COMMIT", "OK", "R7", 0),
        _set("EXEC", "OK", "R7", 2**60),
        _set("COMMIT", "OK", "R2", "rm -r ."),
        _set("COMMIT", "ROLLBACK", "R5", "other"),
        _set("COMMIT", "ROLLBACK", "R0", ""),
        _set("COMMIT", "ROLLBACK", "R4", ""),
        _set("LOAD", "OK", "R3", "{}x"),
    ],
)
def test_the_oracle_finds_what_is_wrong(change: Callable[[list[dict[str, Any]]], None]) -> None:
    trace = list(snapshots(records(GOLDEN / "kernel-1/undone.jsonl")))
    assert broken(trace) == []
    change(trace)
    try:
        found = broken(trace)
    except ValueError:
        found = ["not JSON"]
    assert found


def test_snapshots_do_not_grow_with_the_run() -> None:
    trace = list(snapshots(records(GOLDEN / "kernel-1/planned.jsonl")))
    sizes = [len(line["post"]["R3"]) for line in trace if line["op"] == "LOAD"]
    assert len(sizes) >= 40 and max(sizes) - min(sizes) < 30


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("run.watchdog_loop", "WATCHDOG_LOOP"),
        ("schema.type", "SCHEMA_TYPE"),
        ("budget.steps", "BUDGET_STEPS"),
    ],
)
def test_public_codes(code: str, shown: str) -> None:
    assert public(code) == shown


# ---- events


@pytest.mark.parametrize("path", LEDGERS, ids=named)
def test_events_have_the_shape_of_seed_002(path: Path) -> None:
    found = list(events(records(path), Held(path)))  # type: ignore[arg-type]
    assert found and found[-1]["type"] == "end"
    for event in found:
        assert set(event) == EVENT
        assert datetime.fromisoformat(event["timestamp"]).tzinfo is not None
        assert all(event[name] is None or isinstance(event[name], str) for name in EVENT)


SPEC = """
task Asks {
  step a: tool.look { text: "seen" output_var: seen }
  step q: llm.query { role: "coder" prompt: "Mend {{seen}}?" output_var: text }
  step w: tool.write { path: "a.txt" text: text }
}
"""


def test_an_open_question_is_the_last_event(tmp_path: Path) -> None:
    run = start(tmp_path, SPEC)
    assert run.advance("full_auto") == "waiting"
    read = lambda: (record for record, _ in run.ledger.read())  # noqa: E731
    look, asked = events(read(), run.ledger.blobs)
    assert (look["type"], look["prompt"], look["response"], look["status"]) == (
        "tool.look", '{"text":"seen"}', "seen", "success",
    )  # fmt: skip
    assert (asked["task"], asked["step"], asked["type"]) == ("Asks", "q", "llm.query")
    assert (asked["response"], asked["status"]) == (None, "waiting") and "Mend seen?" in asked["prompt"]
    run.answer("Yes.")
    run.advance("full_auto")
    _, answered, wrote, end = events(read(), run.ledger.blobs)
    assert (answered["response"], answered["status"]) == ("Yes.", "success")
    assert wrote["type"] == "tool.write" and json.loads(wrote["prompt"])["text"] == "Yes."
    assert (end["type"], end["status"]) == ("end", "succeeded")
    run.close()


# ---- items


@pytest.mark.parametrize("path", LEDGERS, ids=named)
def test_items_fit_open_responses(path: Path) -> None:
    found = list(items(records(path), Held(path)))  # type: ignore[arg-type]
    assert len({item["id"] for item in found}) == len(found)
    calls: dict[str, str] = {}
    for item in found:
        match item["type"]:
            case "message":
                part = item["content"][0]["type"]
                assert part == ("output_text" if item["role"] == "assistant" else "input_text")
            case "reasoning":
                assert item["summary"] == [] and item["content"][0]["type"] == "reasoning_text"
            case "function_call":
                assert isinstance(json.loads(item["arguments"]), dict) and item["call_id"] not in calls
                calls[item["call_id"]] = ""
            case "function_call_output":
                assert calls[item["call_id"]] == "" and isinstance(item["output"], str)
                calls[item["call_id"]] = "answered"
            case other:
                raise AssertionError(other)
        if item["type"] != "reasoning":
            assert item["status"] in ("completed", "incomplete")
    assert list(calls.values()).count("") == 0, "each call has its output"


def test_a_question_and_its_answer_are_messages(tmp_path: Path) -> None:
    run = start(tmp_path, SPEC)
    run.advance("full_auto")
    run.answer("Yes.")
    run.advance("full_auto")
    found = list(items((record for record, _ in run.ledger.read()), run.ledger.blobs))
    shown = [(item["type"], item.get("role", item.get("name", ""))) for item in found]
    assert shown[:2] == [("function_call", "look"), ("function_call_output", "")]
    assert shown[-3:] == [("message", "assistant"), ("function_call", "write"), ("function_call_output", "")]
    assert found[-3]["content"][0]["text"] == "Yes."
    run.close()


def test_a_call_that_does_not_fit_gets_r4_as_its_output() -> None:
    found = list(items(records(GOLDEN / "kernel-1/turns.jsonl"), Held(GOLDEN)))  # type: ignore[arg-type]
    refused = [item for item in found if item["type"] == "function_call" and item["status"] == "incomplete"]
    assert [item["name"] for item in refused] == ["launch", "halt"]
    outputs = {item["call_id"]: item for item in found if item["type"] == "function_call_output"}
    told = json.loads(outputs[refused[0]["call_id"]]["output"])
    assert told["code"] == "policy.not_in_tools" and told["payload"] == {"text": "x"}
