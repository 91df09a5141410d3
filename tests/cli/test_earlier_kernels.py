"""Runs of an earlier kernel: shown and reported as they were recorded, deleted, and refused otherwise.

`tests/earlier` holds two of them: one of semantics 1, which ended, and one of semantics 5, which waits.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_calls import HELLO, Cli
from spak.ledger.chain import is_record_line
from spak.program.semantics import REPLAYS_EARLIER
from spak.records import Record, decode
from spak.runner.views.as_recorded import Reading, program_of
from spak.workspace import Copied

EARLIER = Path(__file__).parents[1] / "earlier"
ENDED, WAITING = "20261122-003107-2f6a2a17", "20261129-072656-39433def"


@pytest.fixture
def runs(cli: Cli, tmp_path: Path) -> Path:
    for name in ("ended", "waiting"):
        assert cli("import", str(EARLIER / f"{name}.jsonl"), "--json").code == 0
    return tmp_path / ".spak/runs"


def records(name: str) -> list[Record]:
    lines = (EARLIER / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    return [decode(line) for line in lines if is_record_line(line)]


@pytest.mark.parametrize("run", [ENDED, WAITING])
@pytest.mark.parametrize(
    "verb",
    [
        ("replay",),
        ("resume",),
        ("cancel",),
        ("step", "--answer", "yes"),
        ("approve", "--deny"),
        ("fork", "--at", "2"),
        ("apply",),
        ("apply", "--undo"),
        ("apply", "--branch", "spak/x"),
        ("analyze",),
        ("show", "--prompt", "5"),
        ("show", "--proof", "2"),
        ("export", "--as", "events"),
        ("suite", "keep", "--suite", "cases"),
    ],
    ids=" ".join,
)
def test_whatever_needs_a_replay_is_refused_and_changes_nothing(
    cli: Cli, runs: Path, tmp_path: Path, run: str, verb: tuple[str, ...]
) -> None:
    Copied(str(tmp_path), 1).write(runs / run)
    before = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    words = verb[:2] if verb[0] == "suite" else verb[:1]
    done = cli(*words, run, *verb[len(words) :], "--json")
    assert (done.code, done.error) == (1, "ledger.semantics"), done.err
    assert f"commit {REPLAYS_EARLIER}" in done.json["error"]["hint"]
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "cases").exists()


@pytest.mark.parametrize("name", ["ended", "waiting"])
def test_its_file_is_verified_and_not_replayed(cli: Cli, name: str) -> None:
    assert cli("ledger", "verify", str(EARLIER / f"{name}.jsonl"), "--json").json["ok"] is True
    assert cli("replay", str(EARLIER / f"{name}.jsonl"), "--json").error == "ledger.semantics"


def test_one_that_ended_is_shown_and_reported_as_it_was_recorded(cli: Cli, runs: Path) -> None:
    shown = cli("show", ENDED, "--json").json
    assert (shown["state"], shown["task"], shown["records"], shown["refusal"]) == (
        "succeeded",
        "Hello",
        11,
        None,
    )
    assert shown["summary_hash"] == "kaCWZmt78N5Ovj7xNvDd_pwCsJdlFKtIP-PRP5-mt7o", "folded from its commits"
    assert cli("report", ENDED, "--json").code == 0
    page = (runs / ENDED / "report.html").read_text()
    assert "<h1>Hello</h1>" in page and "11 records, verified" in page
    assert "an earlier kernel made it (semantics 1)" in page and "DIFFERENT" not in page


def test_one_that_waits_is_over_since_nobody_can_go_on_with_it(cli: Cli, runs: Path) -> None:
    shown = cli("show", WAITING, "--json").json
    assert (shown["state"], shown["waiting"]) == ("cancelled", None)
    assert shown["refusal"]["codes"] == ["ledger.semantics"]
    assert f"commit {REPLAYS_EARLIER}" in shown["refusal"]["knob"]
    assert cli("report", WAITING, "--json").code == 0
    listed = {row["run"]: row["state"] for row in cli("runs", "--json").json["runs"]}
    assert listed == {ENDED: "succeeded", WAITING: "cancelled"}
    assert cli("runs", "--delete", WAITING, "--json").json == {"removed": [WAITING]}


def test_policies_are_compared_on_the_other_runs_alone(cli: Cli, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "law.mg").write_text("")
    assert cli("run", HELLO, "--json").code == 0
    done = cli("policy", "diff", "law.mg", "law.mg", "--json")
    assert (done.code, done.json["runs"]) == (0, 1)
    assert done.err.count("is left out: an earlier kernel made it") == 2
    assert cli("policy", "diff", "law.mg", "law.mg", "--run", ENDED, "--json").error == "ledger.semantics"


def test_a_search_does_not_begin_with_it(cli: Cli, runs: Path) -> None:
    assert cli("run", HELLO, "--prior", ENDED, "--json").error == "ledger.semantics"


@pytest.mark.parametrize("number", [1, 5, 6, "1", None])
def test_its_number_is_never_taken_for_one_of_now(number: object) -> None:
    """Under the old name no number is known, under the new one no other."""
    first = records("ended")[0]
    for name in ("semantics", "kernel"):
        rules = {key: value for key, value in first.body["rules"].items() if key != "semantics"}
        if (name, number) == ("kernel", 1):
            continue
        found = Reading()
        found.feed(first._replace(body={**first.body, "rules": {**rules, name: number}}))
        assert found.unreplayed is not None and found.unreplayed.code == "ledger.semantics"
        assert found.rules is None and found.state.ended is (name == "semantics"), "a newer one may go on"


def test_what_it_used_is_counted_from_its_records() -> None:
    found = Reading()
    for record in records("waiting"):
        side = {"ms": 5, "usage": {"input": 3, "output": 4}, "tokens": 7} if record.kind == "act" else {}
        found.feed(record._replace(side=side))
    assert (found.state.r1.steps, found.state.r1.elapsed_ms, found.state.r2) == (1, 5, 7)
    assert found.records == 6 and found.difference is None


def test_a_spec_that_does_not_compile_today_has_no_program() -> None:
    body = json.loads(json.dumps(records("ended")[0].body))
    assert program_of(body) is not None
    body["rules"]["spec"] = "task"
    assert program_of(body) is None and program_of({"rules": 3}) is None
