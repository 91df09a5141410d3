"""A run that is answered from a recording, stopped in every way there is, goes on with the next answer."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_calls import Background, Cli

STEPS = "\n".join(
    f'  step q{n}: llm.query {{ prompt_template: "Question {n}" output_var: a{n} }}\n'
    f'  step w{n}: tool.write_file {{ path: "{n}.txt" content: a{n} }}'
    for n in range(1, 5)
)
SPEC = f'task Four {{\n{STEPS}\n  success: file_exists("4.txt")\n}}\n'
WAITING = SPEC.replace(
    "  step q3", '  step wait: tool.run { cmd: "python3 wait.py" on_fail: continue }\n  step q3'
)
SCRIPT = "import time; time.sleep(3)"
ANSWERS = ["A1", "A2", "A3", "A4"]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    (tmp_path / "four.spak").write_text(SPEC)
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in ANSWERS))
    return path


def configured(folder: Path) -> None:
    (folder / "spak.toml").write_text('[llm]\nmode = "recorded"\nrecording = "answers.jsonl"\n')


def written(runs: Path, run: str) -> list[str]:
    return [(runs / run / f"workspace/{n}.txt").read_text() for n in range(1, 5)]


@pytest.mark.parametrize("how", ["flag", "configured", "run"])
def test_each_step_gets_the_next_answer(
    cli: Cli, tmp_path: Path, runs: Path, answers: Path, how: str
) -> None:
    named = {"flag": ("--from", "answers.jsonl"), "configured": (), "run": ("--from", "latest")}[how]
    if how == "configured":
        configured(tmp_path)
    if how == "run":
        assert cli("run", "four.spak", "--from", "answers.jsonl", "--json").json["state"] == "succeeded"
    begun = cli("run", "four.spak", *named, "--mode", "stepwise")
    name = r"answers\.jsonl" if how != "run" else r"\S+"
    assert re.search(f"^recording {name}: 4 answers$", begun.err, re.M), begun.err
    run = max(path.name for path in runs.iterdir())
    states = [cli("step", run, "--resume", "--json").json["state"] for _ in range(4)]
    assert states == ["waiting"] * 3 + ["succeeded"]
    assert written(runs, run) == ANSWERS


def test_a_run_goes_on_when_its_source_is_gone(cli: Cli, runs: Path, answers: Path) -> None:
    run = cli("run", "four.spak", "--from", "answers.jsonl", "--mode", "stepwise", "--json").json["run"]
    answers.unlink()
    assert cli("step", run, "--json").code == 4
    done = cli("resume", run, "--mode", "full_auto", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded"), done.err
    assert written(runs, run) == ANSWERS


def test_an_answer_by_hand_takes_none_of_the_recorded(cli: Cli, runs: Path, answers: Path) -> None:
    run = cli("run", "four.spak", "--from", "answers.jsonl", "--mode", "stepwise", "--json").json["run"]
    cli("step", run, "--json")
    cli("step", run, "--answer", "mine", "--json")
    assert cli("resume", run, "--mode", "full_auto", "--json").code == 0
    assert written(runs, run) == ["A1", "mine", "A2", "A3"]


def test_a_fork_goes_on_after_what_its_parent_was_given(cli: Cli, runs: Path, answers: Path) -> None:
    run = cli("run", "four.spak", "--from", "answers.jsonl", "--mode", "stepwise", "--json").json["run"]
    cli("step", run, "--json")
    count = cli("step", run, "--json").json["records"]
    fork = cli("fork", run, "--at", str(count), "--json").json["run"]
    assert cli("resume", fork, "--mode", "full_auto", "--json").code == 0
    assert written(runs, fork) == ANSWERS


@pytest.mark.sandbox
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill_9", "sigterm"])
def test_a_run_that_was_killed_goes_on_with_the_next_answer(
    cli: Cli, tmp_path: Path, runs: Path, answers: Path, number: int
) -> None:
    (tmp_path / "four.spak").write_text(WAITING)
    (tmp_path / "four").mkdir()
    (tmp_path / "four/wait.py").write_text(SCRIPT)
    begun = Background(tmp_path, "run", "four.spak", "--from", "answers.jsonl", "--json")
    begun.until(lambda: any(runs.glob("*/workspace/2.txt")))
    begun.kill(number)
    begun.done()
    (run,) = [path.name for path in runs.iterdir()]
    until_free(lambda: cli("resume", run, "--timeout", "0", "--json").code)
    after = cli("resume", run, "--json")
    assert after.code == 0, after.err
    assert written(runs, run) == ANSWERS


def until_free(call: Callable[[], int]) -> int:
    """The call's exit code, once the tool of the killed runner has let go of the workspace."""
    until = time.monotonic() + 60
    while (code := call()) == 1 and time.monotonic() < until:
        time.sleep(0.1)
    return code


def test_a_used_up_recording_is_reported_and_can_be_made_longer(
    cli: Cli, tmp_path: Path, runs: Path, answers: Path
) -> None:
    configured(tmp_path)
    answers.write_text("".join(json.dumps({"text": text}) + "\n" for text in ANSWERS[:2]))
    done = cli("run", "four.spak", "--json")
    assert (done.code, done.error) == (1, "llm.exhausted")
    run = done.json["run"]
    problem = done.json["error"]
    assert "all 2" in problem["message"] and "step q3 of TASK Four" in problem["message"]
    assert problem["hint"].startswith(f"add answers to {answers.name} and spak resume RUN")
    assert "--answer-file" in problem["hint"] and "--from" in problem["hint"]
    assert cli("show", run, "--json").json["state"] == "waiting"
    with answers.open("a") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in ANSWERS[2:])
    assert cli("resume", run, "--json").code == 0
    assert written(runs, run) == ANSWERS


def test_a_used_up_recording_that_was_named_says_how_to_go_on(cli: Cli, runs: Path, answers: Path) -> None:
    answers.write_text(json.dumps({"text": "A1"}) + "\n")
    done = cli("run", "four.spak", "--from", "answers.jsonl", "--json")
    assert done.error == "llm.exhausted"
    assert done.json["error"]["hint"].startswith("spak resume RUN --from RUN2 takes a longer recording")
    answers.write_text("".join(json.dumps({"text": text}) + "\n" for text in ANSWERS))
    after = cli("resume", done.json["run"], "--from", "answers.jsonl")
    assert after.code == 0 and "recording answers.jsonl: 4 answers\n" in after.err
    assert written(runs, done.json["run"]) == ANSWERS


def test_another_recording_can_be_named_later_and_stays(
    cli: Cli, tmp_path: Path, runs: Path, answers: Path
) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("B1", "B2")))
    run = cli("run", "four.spak", "--from", "answers.jsonl", "--mode", "stepwise", "--json").json["run"]
    for arguments in ((), (), ("--from", "more.jsonl"), ()):
        done = cli("step", run, *arguments, "--json")
    assert done.json["state"] == "succeeded"
    assert written(runs, run) == ["A1", "A2", "B1", "B2"]


def test_a_file_that_was_changed_meanwhile_is_refused(cli: Cli, tmp_path: Path, answers: Path) -> None:
    configured(tmp_path)
    run = cli("run", "four.spak", "--mode", "stepwise", "--json").json["run"]
    cli("step", run, "--json")
    answers.write_text(json.dumps({"text": "changed"}) + "\n")
    done = cli("step", run, "--json")
    assert (done.code, done.error) == (1, "llm.another_recording")
    assert done.json["run"] == run
    assert cli("step", run, "--answer", "by hand", "--json").json["state"] == "waiting"


def test_a_recording_of_another_spec_is_refused(cli: Cli, tmp_path: Path, answers: Path) -> None:
    assert cli("run", "four.spak", "--from", "answers.jsonl", "--json").json["state"] == "succeeded"
    (tmp_path / "other.spak").write_text(SPEC.replace("Four", "Five"))
    done = cli("run", "other.spak", "--from", "latest", "--json")
    assert (done.code, done.error) == (1, "llm.another_question")
    message = done.json["error"]["message"]
    assert "step q1 of TASK Four" in message and "step q1 of TASK Five" in message


@pytest.mark.parametrize("content", ["{", '{"answers": 3}', '{"name": "x", "answers": [3]}'])
def test_a_damaged_copy_is_refused(cli: Cli, runs: Path, answers: Path, content: str) -> None:
    run = cli("run", "four.spak", "--from", "answers.jsonl", "--mode", "stepwise", "--json").json["run"]
    (runs / run / "recording.json").write_text(content)
    done = cli("resume", run, "--json")
    assert (done.code, done.error) == (7, "llm.recorded")
    again = cli("resume", run, "--from", os.fspath(answers), "--mode", "full_auto", "--json")
    assert again.code == 0, again.err


@pytest.mark.parametrize("verb", ["step", "resume"])
def test_a_recording_and_another_backend_exclude_each_other(cli: Cli, answers: Path, verb: str) -> None:
    run = cli("run", "four.spak", "--from", "answers.jsonl", "--mode", "stepwise", "--json").json["run"]
    done = cli(verb, run, "--from", "answers.jsonl", "--backend", "manual", "--json")
    assert (done.code, done.error) == (2, "usage.arguments")


def test_a_run_whose_judge_nobody_can_ask_says_how_it_goes_on(cli: Cli, tmp_path: Path, runs: Path) -> None:
    judge = 'VALIDATOR Judge { artifact: "a.txt" rubric: "It greets." }'
    write = 'step w: tool.write_file { path: "a.txt" content: "hello" }'
    (tmp_path / "judged.spak").write_text(f"AGENT J LEVEL 2 {{ START -> a TASK a {{ {write} {judge} }} }}\n")
    verdict = json.dumps({"pass": True, "reasons": ["it does"]})
    (tmp_path / "verdict.jsonl").write_text(json.dumps({"text": verdict}) + "\n")
    stopped = cli("run", "judged.spak", "--json")
    assert (stopped.code, stopped.json["error"]["code"]) == (7, "unavailable.judge")
    run = stopped.json["run"]
    assert (runs / run / "context.json").exists()
    done = cli("resume", run, "--from", "verdict.jsonl", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded"), done.err


def test_answers_that_do_not_say_what_they_took_are_not_counted_as_none(cli: Cli, tmp_path: Path) -> None:
    """With a BUDGET of tokens there is a line about models; a recording need not say how many were used."""
    agent = (
        "AGENT A LEVEL 4 { CONFIG { BUDGET { tokens: 1000 } } START -> a TASK a {"
        ' step q: llm.query { prompt_template: "Say a word." output_var: word }'
        ' step w: tool.write_file { path: "a.txt" content: word } } }\n'
    )
    (tmp_path / "asking.spak").write_text(agent)
    (tmp_path / "one.jsonl").write_text(json.dumps({"text": "hello"}) + "\n")
    done = cli("run", "asking.spak", "--from", "one.jsonl", "--mode", "full_auto")
    assert done.code == 0, done.err
    assert "models: 0 of 1000 tokens, " in done.err and "0 answers" not in done.err
