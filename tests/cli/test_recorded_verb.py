"""`spak run --backend recorded --from RUN` and `spak show --prompt`: the same answers, prompts as sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_calls import ASK, Cli


@pytest.fixture
def answered(cli: Cli, tmp_path: Path) -> str:
    """A run of ASK that a person answered."""
    (tmp_path / "ask.spak").write_text(ASK)
    run = cli("run", "ask.spak", "--mode", "stepwise", "--seed", "7", "--json").json["run"]
    assert cli("step", run, "--answer", "hello", "--json").json["state"] == "succeeded"
    return str(run)


@pytest.mark.parametrize("named", ["run", "latest", "folder"])
def test_a_run_is_repeated_with_its_recorded_answers(cli: Cli, answered: str, runs: Path, named: str) -> None:
    source = {"run": answered, "latest": "latest", "folder": str(runs / answered)}[named]
    done = cli("run", "ask.spak", "--seed", "7", "--backend", "recorded", "--from", source, "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert (runs / done.json["run"] / "workspace/word.txt").read_text() == "hello"
    first = cli("show", answered, "--json").json["summary_hash"]
    assert done.json["summary_hash"] == first
    assert cli("replay", done.json["run"], "--json").json["equal"] is True


def test_from_alone_means_recorded(cli: Cli, answered: str) -> None:
    done = cli("run", "ask.spak", "--seed", "7", "--from", answered, "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (("--from", "nowhere"), 2, "usage.run"),
        (("--backend", "manual", "--from", "latest"), 2, "usage.arguments"),
    ],
)
def test_what_cannot_be_repeated_is_said(
    cli: Cli, answered: str, runs: Path, arguments: tuple[str, ...], exit_code: int, code: str
) -> None:
    before = sorted(path.name for path in runs.iterdir())
    done = cli("run", "ask.spak", *arguments, "--json")
    assert (done.code, done.error) == (exit_code, code)
    assert sorted(path.name for path in runs.iterdir()) == before


def test_a_run_without_answers_repeats_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ask.spak").write_text(ASK)
    run = cli("run", "ask.spak", "--mode", "stepwise", "--json").json["run"]
    done = cli("run", "ask.spak", "--from", run, "--json")
    assert (done.code, done.error) == (7, "llm.recorded")


def test_a_prompt_is_shown_as_it_was_sent(cli: Cli, answered: str) -> None:
    lines = cli("ledger", "verify", answered, "--json")
    assert lines.code == 0
    asked = [seq for seq in range(1, 20) if cli("show", answered, "--prompt", str(seq)).code == 0]
    assert len(asked) == 1
    assert cli("show", answered, "--prompt", str(asked[0])).out == "Say one word.\n"


def test_answers_that_were_given_to_another_prompt_are_counted_and_shown(
    cli: Cli, tmp_path: Path, runs: Path, answered: str
) -> None:
    same = cli("run", "ask.spak", "--seed", "7", "--from", answered, "--json")
    assert same.json["recorded"] is None and "recording:" not in cli("show", same.json["run"]).err
    (tmp_path / "ask.spak").write_text(ASK.replace("Say one", "Say only one"))
    done = cli("run", "ask.spak", "--seed", "7", "--from", answered, "--json").json
    noted = done["recorded"]
    record = (runs / done["run"] / "trace.jsonl").read_text().splitlines()[noted["first_record"]]
    assert noted["other_prompts"] == 1 and "(recorded, another prompt)" in record
    line = (
        f"1 answer was recorded for another prompt of the same step, first in record {noted['first_record']}"
    )
    assert cli("show", done["run"], "--json").json["recorded"] == noted
    assert line in cli("show", done["run"]).err
    assert line.partition(",")[0] in cli("run", "ask.spak", "--seed", "7", "--from", answered).err
    assert line in cli("resume", done["run"]).err
