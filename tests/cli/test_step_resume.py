"""`spak step`, `spak resume`, `spak approve`, `spak cancel` and `spak fork`."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cli_calls import Cli
from spak.workspace import Workspace

TWO = """
AGENT Two LEVEL 2 {
  START -> go
  TASK go {
    step one: llm.query { role: "a" prompt_template: "First?" output_var: first }
    step two: llm.query { role: "b" prompt_template: "After {{first}}?" output_var: second }
    step keep: tool.write_file { path: "both.txt" content: "{{first}} {{second}}" }
  }
}
"""


BOUNDED = """
AGENT Bounded LEVEL 2 {
  CONFIG { BUDGET { steps: 2 EXTEND } }
  START -> go
  TASK go {
    step one: llm.query { role: "a" prompt_template: "First?" output_var: first }
    step two: tool.write_file { path: "1.txt" content: "{{first}}" }
    step three: tool.write_file { path: "2.txt" content: "{{first}}" }
  }
}
"""


# ---- extensions ----------------------------------------------------------------------------------------


@pytest.fixture
def bounded(cli: Cli, tmp_path: Path) -> str:
    """A run that waits for its first answer, with a budget of two of its three steps."""
    (tmp_path / "bounded.spak").write_text(BOUNDED.replace("EXTEND", "extend_percent: 100"))
    return str(cli("run", "bounded.spak", "--json").json["run"])


def test_a_budget_is_extended_before_it_is_used_up(cli: Cli, bounded: str) -> None:
    done = cli("step", "--extend", "steps=1", "--answer", "word", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert cli("show", "--json").json["registers"]["R1"]["steps_left"] == 0
    assert cli("replay", bounded, "--json").json["equal"] is True
    lines = cli("export", bounded, "--as", "aep").out.splitlines()
    given = [line for line in map(json.loads, lines) if line["op"] == "YIELD"]
    assert [(line["pre"]["R1"], line["post"]["R1"]) for line in given] == [(2, 3)]


def test_a_budget_that_is_used_up_is_not_extended(cli: Cli, bounded: str) -> None:
    done = cli("step", "--answer", "word", "--json")
    assert (done.code, done.json["refusal"]["codes"]) == (5, ["budget.steps"])
    late = cli("resume", bounded, "--extend", "steps=1", "--json")
    assert (late.code, late.error) == (1, "budget.used_up")
    assert cli("show", "--json").json["records"] == done.json["records"]


def test_an_extension_above_the_cap_is_refused_and_the_run_still_waits(cli: Cli, bounded: str) -> None:
    before = cli("show", "--json").json["registers"]
    for _ in range(2):
        late = cli("resume", bounded, "--extend", "steps=3", "--json")
        assert (late.code, late.error) == (1, "budget.cap")
    assert cli("show", "--json").json["registers"] == before
    assert cli("resume", bounded, "--extend", "steps=2", "--json").code == 4
    assert cli("resume", bounded, "--extend", "steps=1", "--json").error == "budget.cap"


@pytest.mark.parametrize(
    "given",
    ["steps=0", "steps=-5", "steps=", "steps", "steps=2.5", "turns=3", "steps=\u0663", f"steps={'9' * 40}"],
)
def test_an_extension_that_makes_no_sense_is_wrong_usage(cli: Cli, bounded: str, given: str) -> None:
    assert cli("resume", bounded, "--extend", given, "--json").code == 2
    other = cli("resume", bounded, "--extend", "tokens=5", "--json")
    assert (other.code, other.error) == (1, "budget.extension")


# ---- a workspace that is held --------------------------------------------------------------------------


def test_a_held_workspace_is_a_named_error_within_its_time(
    cli: Cli, tmp_path: Path, waiting: str, runs: Path
) -> None:
    (tmp_path / "spak.toml").write_text("[workspace]\nwait_s = 0.1\n")
    place = Workspace(runs / waiting / "workspace", runs / waiting / "store")
    with place.lock():
        held = cli("step", "--answer", "word", "--json")
    assert (held.code, held.error) == (1, "workspace.busy")
    assert f"process {os.getpid()} (" in held.json["error"]["message"]
    assert cli("step", "--answer", "word", "--json").code == 0


# ---- step ----------------------------------------------------------------------------------------------


def test_an_answer_is_taken_and_the_run_goes_on(cli: Cli, waiting: str, runs: Path) -> None:
    done = cli("step", "--resume", "--answer", "word", "--json")
    assert (done.code, done.json["state"], done.json["run"]) == (0, "succeeded", waiting)
    assert (runs / waiting / "workspace/word.txt").read_text() == "word"
    assert [item["name"] for item in done.json["artifacts"]] == ["before.txt", "word.txt"]
    again = cli("step", waiting, "--answer", "word", "--json")
    assert (again.code, again.json["records"]) == (0, done.json["records"])
    other = cli("step", waiting, "--answer", "another", "--json")
    assert (other.code, other.error) == (1, "run.not_waiting")


@pytest.mark.parametrize("text", ["", "two\nlines\n", "☃", "x" * 100_000, "{{question}}", '{"$blob":"x"}'])
def test_any_text_is_an_answer(cli: Cli, tmp_path: Path, waiting: str, runs: Path, text: str) -> None:
    (tmp_path / "answer").write_text(text)
    assert cli("step", waiting, "--answer-file", "answer", "--json").code == 0
    assert (runs / waiting / "workspace/word.txt").read_text() == text
    assert cli("replay", waiting, "--json").json["equal"] is True


def test_an_answer_from_standard_input_gives_the_same_run(cli: Cli, waiting: str) -> None:
    fork = cli("fork", waiting, "--at", "5", "--json").json["run"]
    by_pipe = cli("step", waiting, "--answer-file", "-", "--json", stdin=b"word").json
    by_flag = cli("step", fork, "--answer", "word", "--json").json
    assert by_pipe["summary_hash"] == by_flag["summary_hash"]


def test_a_step_without_answer_or_backend_still_waits(cli: Cli, waiting: str) -> None:
    before = cli("show", "--json").json["summary_hash"]
    for flags in ([], ["--resume"], ["--backend", "manual"]):
        done = cli("step", *flags, "--json")
        assert (done.code, done.json["state"]) == (4, "waiting")
        assert done.json["summary_hash"] == before
    wrong = cli("step", "--backend", "nobody", "--json")
    assert (wrong.code, wrong.error) == (7, "unavailable.backend")


def test_the_next_question_waits_again(cli: Cli, tmp_path: Path, runs: Path) -> None:
    (tmp_path / "two.spak").write_text(TWO)
    run = cli("run", "two.spak", "--json").json["run"]
    second = cli("step", "--answer", "here", "--json")
    assert (second.code, second.json["waiting"]["prompt"]) == (4, "After here?")
    assert cli("step", "--answer", "there", "--json").code == 0
    assert (runs / run / "workspace/both.txt").read_text() == "here there"


def test_killed_before_the_prompt_was_measured_and_answered_by_hand(
    cli: Cli, tmp_path: Path, runs: Path
) -> None:
    (tmp_path / "two.spak").write_text(
        TWO.replace("LEVEL 2 {", "LEVEL 2 { CONFIG { BUDGET { tokens: 9000 } }")
    )
    run = cli("run", "two.spak", "--json", "--seed", "7").json["run"]
    lines = (runs / run / "trace.jsonl").read_bytes().splitlines(keepends=True)
    shutil.copytree(runs, tmp_path / "kept")
    summaries = set()
    for kept in (len(lines), len(lines) - 1, len(lines) - 2):  # without the decision, without the measurement
        shutil.rmtree(runs)
        shutil.copytree(tmp_path / "kept", runs)
        (runs / run / "trace.jsonl").write_bytes(b"".join(lines[:kept]))
        for text, code in (("here", 4), ("there", 0)):
            done = cli("step", run, "--answer", text, "--json")
            assert done.code == code, done.err
        summaries.add(done.json["summary_hash"])
    assert len(summaries) == 1


# ---- resume and approve --------------------------------------------------------------------------------


def test_resume_changes_nothing_in_a_run_that_ended(cli: Cli, ended: str, runs: Path) -> None:
    before = (runs / ended / "trace.jsonl").read_bytes()
    done = cli("resume", ended, "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert (runs / ended / "trace.jsonl").read_bytes() == before


def test_resume_of_a_waiting_run_waits(cli: Cli, waiting: str) -> None:
    done = cli("resume", waiting, "--json")
    assert (done.code, done.json["state"]) == (4, "waiting")


def test_resume_puts_the_workspace_back(cli: Cli, waiting: str, runs: Path) -> None:
    (runs / waiting / "workspace/before.txt").write_text("changed meanwhile")
    (runs / waiting / "workspace/stray.txt").write_text("stray")
    assert cli("resume", waiting, "--json").code == 4
    assert (runs / waiting / "workspace/before.txt").read_text() == "before\n"
    assert not (runs / waiting / "workspace/stray.txt").exists()


def test_in_place_changes_come_home_at_each_stop_and_meet_what_is_there(cli: Cli, tmp_path: Path) -> None:
    from cli_calls import ASK

    (tmp_path / "ask.spak").write_text(ASK)
    (tmp_path / "own").mkdir()
    assert cli("run", "ask.spak", "--workspace", "own", "--in-place", "--json").code == 4
    assert (tmp_path / "own/before.txt").read_text() == "before\n"
    (tmp_path / "own/before.txt").write_text("mine now")
    done = cli("step", "--answer", "word", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert (tmp_path / "own/before.txt").read_text() == "mine now"
    assert (tmp_path / "own/word.txt").read_text() == "word"
    assert cli("apply", "latest", "--undo", "--json").code == 0
    assert not (tmp_path / "own/word.txt").exists()


def test_nothing_waits_for_an_approval(cli: Cli, waiting: str) -> None:
    for flags in ([], ["--deny"], ["--expires", "60"]):
        done = cli("approve", waiting, *flags, "--json")
        assert (done.code, done.error) == (1, "run.no_approval")
    assert cli("approve", waiting, "--expires", "0", "--json").error == "usage.arguments"


# ---- cancel --------------------------------------------------------------------------------------------


def test_a_cancelled_run_has_ended(cli: Cli, waiting: str) -> None:
    done = cli("cancel", waiting, "--json")
    assert (done.code, done.json["state"]) == (6, "cancelled")
    assert done.json["refusal"]["codes"] == ["run.cancelled"]
    assert cli("resume", waiting, "--json").json == {**done.json}
    assert cli("step", waiting, "--answer", "x", "--json").error == "run.not_waiting"
    assert cli("replay", waiting, "--json").json["equal"] is True


def test_an_ended_run_cannot_be_cancelled(cli: Cli, ended: str) -> None:
    done = cli("cancel", ended, "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")


def test_cancelling_needs_no_sandbox(cli: Cli, waiting: str) -> None:
    gone = {"SPAK_SANDBOX_LAUNCHER": "gone"}
    assert cli("resume", waiting, "--json", env=gone).error == "unavailable.sandbox"
    assert cli("cancel", waiting, "--json", env=gone).json["state"] == "cancelled"


# ---- fork ----------------------------------------------------------------------------------------------


def test_a_fork_tries_another_answer(cli: Cli, waiting: str, runs: Path) -> None:
    first = cli("step", waiting, "--answer", "word", "--json").json
    done = cli("fork", waiting, "--at", "5", "--json")
    assert (done.code, done.json["state"]) == (4, "waiting")
    assert done.json["run"] != waiting and done.json["waiting"]["prompt"] == "Say one word."
    other = cli("step", done.json["run"], "--answer", "other", "--json")
    assert other.code == 0 and other.json["summary_hash"] != first["summary_hash"]
    assert (runs / done.json["run"] / "workspace/word.txt").read_text() == "other"
    assert (runs / waiting / "workspace/word.txt").read_text() == "word"
    for run in (waiting, done.json["run"]):
        assert cli("replay", run, "--json").json["equal"] is True
        assert cli("ledger", "verify", run).code == 0


def test_a_fork_of_everything_is_the_same_run_again(cli: Cli, ended: str) -> None:
    shown = cli("show", ended, "--json").json
    done = cli("fork", ended, "--at", str(shown["records"]), "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert done.json["summary_hash"] == shown["summary_hash"]


def test_a_fork_in_the_middle_can_go_on(cli: Cli, ended: str) -> None:
    shown = cli("show", ended, "--json").json
    done = cli("fork", ended, "--at", "2", "--json")
    assert done.json["state"] == "paused"
    assert done.code == 0
    assert cli("resume", done.json["run"], "--json").json["summary_hash"] == shown["summary_hash"]


def test_a_fork_at_no_record(cli: Cli, ended: str, runs: Path) -> None:
    done = cli("fork", ended, "--at", "999", "--json")
    assert (done.code, done.error) == (1, "run.fork")
    assert [path.name for path in runs.iterdir()] == [ended]


def test_a_fork_that_fails_leaves_nothing(cli: Cli, waiting: str, runs: Path, tmp_path: Path) -> None:
    """A run that was exported without its store has its records and not its files."""
    shutil.rmtree(runs / waiting / "store")
    assert cli("export", waiting, "-o", "run.jsonl").code == 0
    assert cli("import", "run.jsonl", "--runs-dir", "taken").code == 0
    for verb in (("fork", "--at", "3"), ("step", "--answer", "word"), ("resume",)):
        done = cli(*verb, "--runs-dir", "taken", "--json")
        assert (done.code, done.error) == (1, "workspace.object"), verb
    assert [path.name for path in (tmp_path / "taken").iterdir()] == [waiting]
    assert cli("show", "--runs-dir", "taken", "--json").json["state"] == "waiting"
