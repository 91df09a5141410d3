"""`spak show` and `spak runs`: looking changes nothing, and every way to name a run works."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
from pathlib import Path

import pytest

from cli_calls import Cli

DOCUMENT = {
    "run", "state", "task", "summary_hash", "chain_head", "records",
    "metrics", "artifacts", "waiting", "refusal", "recorded",
}  # fmt: skip

WRITES = '''
POLICY """
Decl wrote(Path, N) bound [/string, /number] descr [fold("count"), within("20 steps")].
feed_wrote(P) :- event(E), uses_path(E, /edits, _, P).
forbidden(A) :- uses_path(A, /edits, _, P), wrote(P, N), 4 <= N.
"""
TASK Write {
  STEP one: tool.write_file { path: "a.txt" content: "1" }
  STEP two: tool.write_file { path: "a.txt" content: "2" }
  success: file_exists("a.txt")
}
'''


def test_an_ended_run(cli: Cli, ended: str, runs: Path) -> None:
    before = (runs / ended / "trace.jsonl").read_bytes()
    done = cli("show", ended, "--json")
    assert done.code == 0
    assert set(done.json) == DOCUMENT | {"registers", "monitors"}
    assert done.json["monitors"] == []
    assert (done.json["run"], done.json["state"], done.json["task"]) == (ended, "succeeded", "Hello")
    assert done.json["records"] == before.count(b"\n")
    assert done.json["chain_head"] == json.loads(before.splitlines()[-1])["#"]
    assert done.json["waiting"] is None and done.json["refusal"] is None
    assert list(done.json["registers"]) == [f"R{number}" for number in range(8)]
    registers = done.json["registers"]
    assert registers["R7"]["summary"] == done.json["summary_hash"]
    assert registers["R1"]["deadline_ms"] == 3_600_000 and registers["R2"] == {"used": 0, "remaining": None}
    assert (registers["R7"]["task_id"], registers["R7"]["depth"], registers["R7"]["tokens"]) == (
        "Hello",
        1,
        0,
    )
    assert (runs / ended / "trace.jsonl").read_bytes() == before


def test_what_the_law_remembers_is_shown_beside_its_limits(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(WRITES, encoding="utf-8")
    assert cli("run", "a.spak").code == 0
    done = cli("show", "latest")
    line = next(line for line in done.err.splitlines() if "wrote" in line and "within" in line)
    assert line.strip().startswith('wrote of "a.txt" within 20 steps: 2 of 4, ')
    (found,) = cli("show", "latest", "--json").json["monitors"]
    assert found | {"age": "", "records": []} == {
        "fold": "wrote", "kind": "count", "key": ['"a.txt"'], "window": "20 steps", "value": 2,
        "holds": True, "age": "", "limit": 4, "records": [], "others": 0,
    }  # fmt: skip
    assert len(found["records"]) == 2


def test_a_waiting_run_shows_its_question(cli: Cli, waiting: str) -> None:
    done = cli("show", "--json")
    assert (done.code, done.json["state"]) == (0, "waiting")
    question = done.json["waiting"]
    assert question["prompt"] == "Say one word."
    assert {question[name] for name in ("kind", "task", "step", "role")} == {
        "llm.query",
        "Ask",
        "question",
        "coder",
    }
    assert done.json["registers"]["R6"]["id"] == question["id"]
    people = cli("show")
    assert people.code == 0 and people.out == "" and "Say one word." in people.err


def test_the_prompt_of_a_record(cli: Cli, waiting: str) -> None:
    wrong = cli("show", "--prompt", "1", "--json")
    assert (wrong.code, wrong.error) == (2, "usage.record")
    seq = wrong.json["error"]["hint"].removeprefix("these did: ")
    assert cli("show", waiting, "--prompt", seq).out == "Say one word.\n"
    done = cli("show", waiting, "--prompt", seq, "--json")
    assert done.json == {"run": waiting, "seq": int(seq), "prompt": "Say one word."}


def test_every_way_to_name_a_run(cli: Cli, ended: str, runs: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(runs, elsewhere)
    for selector in (ended, ended[:9], "latest", f".spak/runs/{ended}", str(elsewhere / ended)):
        assert cli("show", selector, "--json").json["run"] == ended, selector
    shutil.rmtree(runs)
    assert cli("show", "latest", "--runs-dir", "elsewhere", "--json").json["run"] == ended
    assert cli("show", "latest", "--json", env={"SPAK_RUNS_DIR": "elsewhere"}).json["run"] == ended


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("2", "fits 2 runs"),
        ("nothing", "no run starts with 'nothing'"),
        ("", "no run starts with ''"),
        ("x" * 5000, "no run starts with"),
        (".", "no run starts with"),
        (".spak/runs", "holds no run"),
        ("../../etc", "no run starts with"),
    ],
)
def test_a_name_that_fits_no_run_or_more_than_one(
    cli: Cli, ended: str, runs: Path, selector: str, message: str
) -> None:
    shutil.copytree(runs / ended, runs / "2999-second")
    for verb in ("show", "resume", "replay", "export", "step", "cancel"):
        done = cli(verb, selector, "--json")
        assert (done.code, done.error) == (2, "usage.run"), verb
        assert message in done.json["error"]["message"]


def test_latest_is_the_newest(cli: Cli, ended: str, runs: Path) -> None:
    shutil.copytree(runs / ended, runs / "2999-second")
    assert cli("show", "latest", "--json").json["run"] == "2999-second"
    assert cli("show", "2999", "--json").json["run"] == "2999-second"


def test_a_list_of_runs(cli: Cli, ended: str, runs: Path) -> None:
    (runs / "empty").mkdir()
    (runs / "stray.txt").write_text("not a run")
    done = cli("runs", "--json")
    assert done.code == 0
    assert done.json == {"runs": [{"run": ended, "state": "succeeded", "task": "Hello", "problem": ""}]}
    assert cli("runs").out == f"{ended}  succeeded  Hello\n"
    assert cli("runs", "--runs-dir", "nowhere", "--json").json == {"runs": []}


def test_a_success_that_nothing_checked_is_not_called_one(
    cli: Cli, runs: Path, ended: str, tmp_path: Path
) -> None:
    """As on the platform's pages. The document of --json and the exit code keep the state."""
    (tmp_path / "bare.spak").write_text('task Bare { step one: tool.list_files { path: "." } }')
    done = cli("run", "bare.spak")
    assert done.code == 0 and re.search(r"^run \S+: completed, unchecked in TASK Bare$", done.err, re.M)
    bare = max(path.name for path in runs.iterdir() if path.name != ended)
    assert cli("show", bare, "--json").json["state"] == "succeeded"
    assert "checked" not in cli("show", bare, "--json").json
    assert f"run {bare}: completed, unchecked" in cli("show", bare).err
    assert f"run {ended}: succeeded" in cli("show", ended).err
    listed = f"{ended}  succeeded            Hello\n{bare}  completed, unchecked Bare\n"
    assert cli("runs").out == listed
    rows = cli("runs", "--json").json["runs"]
    assert [(row["state"], set(row)) for row in rows] == [
        ("succeeded", {"run", "state", "task", "problem"})
    ] * 2
    cli("report", bare, "-o", "r.html")
    assert "completed, unchecked" in (tmp_path / "r.html").read_text()
    (runs / bare / "context.json").unlink()  # the ledger knows it as well
    assert cli("runs").out == listed


def test_one_damaged_run_does_not_hide_the_others(cli: Cli, ended: str, runs: Path) -> None:
    shutil.copytree(runs / ended, runs / "2999-second")
    (runs / "2999-second/context.json").unlink()
    trace = runs / "2999-second/trace.jsonl"
    trace.write_bytes(trace.read_bytes().replace(b"hello", b"hullo"))
    first, second = cli("runs", "--json").json["runs"]
    assert (first["run"], first["state"]) == (ended, "succeeded")
    assert (second["run"], second["state"], second["problem"]) == ("2999-second", "", "ledger.tampered")


def test_a_run_that_never_stopped_is_shown_as_its_ledger_has_it(cli: Cli, waiting: str, runs: Path) -> None:
    (runs / waiting / "context.json").unlink()
    assert cli("runs", "--json").json["runs"][0]["state"] == "waiting"


def test_a_run_is_running_while_somebody_holds_it_and_paused_after(cli: Cli, runs: Path) -> None:
    (runs.parent.parent / "calm.spak").write_text('task Calm { step a: tool.list_files { path: "." } }')
    run = cli("run", "calm.spak", "--timeout", "0", "--json").json["run"]
    (runs / run / "context.json").unlink()
    with (runs / run / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert cli("show", "--json").json["state"] == "running"
        assert cli("runs", "--json").json["runs"][0]["state"] == "running"
        busy = cli("resume", run, "--json")
        assert (busy.code, busy.error) == (1, "ledger.busy")
    assert cli("show", "--json").json["state"] == "paused"
