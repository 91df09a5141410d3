"""Why a run ended, in a sentence with record numbers, from the ledger alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from host_kit import Timer, start
from spak.ledger.chain import is_record_line
from spak.ports import Measurement
from spak.records import Kind, Record, decode
from spak.runner.views import causes

GOLDEN = Path(__file__).parents[1] / "golden"


def records(name: str) -> list[Record]:
    lines = (GOLDEN / "kernel-1" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    return [decode(line) for line in lines if is_record_line(line)]


def acts(found: list[Record]) -> list[int]:
    return [record.seq for record in found if record.kind == Kind.ACT]


def test_a_loop_of_one_result() -> None:
    found = records("watchdog")
    numbers = ", ".join(map(str, acts(found)[-3:]))
    assert causes.sentence(found) == f"write gave the same result 3 times: records {numbers}"


def test_a_loop_of_a_longer_turn() -> None:
    found = records("turns")
    numbers = acts(found)[-6:]
    spans = ", ".join(f"{numbers[at]}-{numbers[at + 1]}" for at in (0, 2, 4))
    wanted = f"the same steps (look, write) gave the same results 3 times: records {spans}"
    assert causes.sentence(found) == wanted


def test_rollbacks_on_one_tool() -> None:
    found = records("undone")
    routes = [item.seq for item in found if item.kind == Kind.ROUTE and item.body.get("txn") == "rollback"]
    numbers = ", ".join(map(str, routes))
    wanted = f"write was rolled back 3 times in a row (tool.timeout): records {numbers}"
    assert causes.sentence(found) == wanted


def test_polls_that_were_used_up() -> None:
    found = records("polled")
    assert causes.sentence(found).startswith("step x did not end with exit 0 in 2 polls: records ")
    assert causes.sentence(found).endswith(", ".join(map(str, acts(found)[-2:])))


@pytest.mark.parametrize("name", ["hello", "tuning", "budget"])
def test_other_ends_need_no_sentence(name: str) -> None:
    assert causes.sentence(records(name)) == ""


@pytest.mark.parametrize("name", ["watchdog", "turns", "undone", "polled"])
def test_the_tail_says_as_much_as_the_whole(name: str) -> None:
    found = records(name)
    assert causes.sentence(found[1:]) == causes.sentence(found)


@pytest.mark.parametrize("name", ["watchdog", "turns", "undone", "polled", "planned"])
def test_no_part_of_a_ledger_makes_it_fail(name: str) -> None:
    found = records(name)
    for start_ in range(len(found)):
        assert isinstance(causes.sentence(found[start_:]), str)
    assert causes.sentence(found[:-1]) == ""


def test_a_denial_names_the_reason_and_its_record(tmp_path: Path) -> None:
    run = start(tmp_path, 'task a { step s: tool.look { text: "x" } }', law="")
    found = [record for record, _ in run.ledger.read()]
    permit = next(record.seq for record in found if record.kind == Kind.PERMIT)
    told = causes.sentence(found)
    assert told.startswith("look was denied: ") and told.endswith(f": record {permit}")
    run.close()


@pytest.mark.parametrize("status", ["unavailable", "void"])
def test_a_validator_that_could_not_measure_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: Any
) -> None:
    failed = {"name": "ran", "ok": False, "code": "launcher", "detail": "no device is here"}
    monkeypatch.setattr(Timer, "measure", lambda self, call: Measurement(status, checks=(failed,)))
    run = start(tmp_path, JUDGED)
    run.advance("full_auto")
    found = [record for record, _ in run.ledger.read()]
    assert run.state.r7.codes == (f"validator.{status}",)
    assert causes.sentence(found).startswith("Timer failed")
    assert "(no device is here): record" in causes.sentence(found)
    run.close()


JUDGED = 'task a { step w: tool.write { path: "c.txt" text: "LONG" } VALIDATOR Timer { file: "c.txt" } }'


def test_a_validator_says_what_it_saw(tmp_path: Path) -> None:
    """The code alone (`incorrect`) says nothing of what is wrong; the check's detail does."""
    run = start(tmp_path, JUDGED.replace("LONG", "x" * 950))
    run.advance("full_auto")
    found = [record for record, _ in run.ledger.read()]
    last = acts(found)[-1]
    assert run.state.r7.codes == ("incorrect",)
    assert causes.sentence(found) == f"Timer failed (950 bytes, at most 899): record {last}"
    run.close()


def test_of_a_long_detail_both_ends_are_shown(tmp_path: Path) -> None:
    run = start(tmp_path, JUDGED.replace("LONG", "x" * 950))
    run.advance("full_auto")
    found = [record for record, _ in run.ledger.read()]
    at = next(at for at, record in enumerate(found) if record.seq == acts(found)[-1])
    told = "exit 1, expected 0: Traceback " + "and so on " * 50 + "ValueError: a bad row"
    found[at] = found[at]._replace(side={"details": {"correct": told}})
    sentence = causes.sentence(found)
    assert sentence.startswith("Timer failed (exit 1, expected 0: Traceback and so on ")
    assert " ... " in sentence and f"ValueError: a bad row): record {acts(found)[-1]}" in sentence
    assert len(sentence) < 250
    for details, shown in (
        ({}, ""),
        ({"correct": {"$blob": "x", "size": 9000, "head": "the beginning"}}, " (the beginning)"),
        ({"correct": 7}, ""),
        (7, ""),
    ):
        found[at] = found[at]._replace(side={"details": details})
        assert causes.sentence(found) == f"Timer failed{shown}: record {acts(found)[-1]}"
    run.close()


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("exit_code(w) == 1", ""),
        ('exit_code(w) == 1 and file_exists("c.txt")', ""),
        ('file_exists("c.txt") and file_exists("d.txt")', ' (file_exists("d.txt") does not hold)'),
        ("exit_code(x) == 0", " (step x ended with exit 1, record 5)"),
        (
            'exit_code(x) == 0 and file_contains("c.txt", "ä")',
            ' (file_contains("c.txt", "ä") does not hold; step x ended with exit 1, record 5)',
        ),
        (
            " and ".join(f'file_exists("{name}")' for name in "defgh"),
            " (" + "; ".join(f'file_exists("{name}") does not hold' for name in "def") + "; and 2 more)",
        ),
    ],
)
def test_success_conditions_that_do_not_hold(tmp_path: Path, condition: str, shown: str) -> None:
    wrong = 'step x: tool.write { path: "c.txt" text: "x" exit: 1 on_fail: continue }'
    last = wrong if "(x)" in condition else ""
    text = f'task a {{ step w: tool.write {{ path: "c.txt" text: "x" }} {last} success: {condition} }}'
    run = start(tmp_path, text)
    run.advance("full_auto")
    found = [record for record, _ in run.ledger.read()]
    wanted = f"the success conditions do not hold{shown}: record {acts(found)[-1]}"
    assert causes.sentence(found) == wanted
    run.close()


@pytest.mark.parametrize("out", ["no room\ninside\n", {"$blob": "x", "head": "no room\ninside"}])
def test_a_sandbox_that_did_not_start_says_why(out: Any) -> None:
    codes = {"state": "failed", "codes": ["tool.launcher"]}
    found = [
        Record(Kind.PERMIT, "commit", {"act": "tool", "name": "run", "allow": True}, "T", "look", seq=1),
        Record(Kind.ACT, "proposal", {"outcome": "launcher", "out": out}, "T", "look", seq=2),
        Record(Kind.ROUTE, "commit", {"code": "tool.launcher", "signal": "fail"}, "T", "look", seq=3),
        Record(Kind.END, "commit", codes, "T", "look", seq=4),
    ]
    wanted = "run in step look failed (the sandbox did not start: no room inside): record 2"
    assert causes.sentence(found) == wanted


def test_many_records_are_shown_by_their_ends() -> None:
    assert causes._listed(range(20)) == "0 to 19"
